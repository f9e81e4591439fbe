#include "cuda/library.h"

#include <dlfcn.h>

#include <vector>

#include "base/text.h"

namespace flopsight::cuda {
namespace {

using base::Error;
using base::ErrorCode;

// The first that can be opened.
base::Result<void*> open_first(const std::vector<std::string>& names, std::string_view what) {
  std::string tried;
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* why = dlerror();
    if (tried.empty()) tried = why != nullptr ? why : name;
  }
  return Error{ErrorCode::kUnsupported, std::string(what) + " cannot be loaded: " + base::printable(tried, 300)};
}

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  // POSIX wants functions to be had through a pointer to an object.
  *reinterpret_cast<void**>(&out) = dlsym(library, name);
  return out != nullptr;
}

Error missing(std::string_view library, std::string_view name) {
  return Error{ErrorCode::kUnsupported, std::string(library) + " has no function " + std::string(name) + ": a newer one is expected"};
}

}  // namespace

base::Result<std::unique_ptr<Library>> Library::load(const LibraryPaths& paths) {
  std::unique_ptr<Library> out(new Library);
  const std::vector<std::string> drivers = paths.driver.empty() ? std::vector<std::string>{"libcuda.so.1"} : std::vector<std::string>{paths.driver};
  FLOPSIGHT_ASSIGN_OR_RETURN(out->driver_, open_first(drivers, "the CUDA driver"));
  const std::vector<std::string> blas = paths.cublaslt.empty()
                                            ? std::vector<std::string>{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"}
                                            : std::vector<std::string>{paths.cublaslt};
  FLOPSIGHT_ASSIGN_OR_RETURN(out->cublaslt_, open_first(blas, "cublasLt"));
  Functions& f = out->functions_;
#define FLOPSIGHT_CUDA_FIND(name, header_name, ...) \
  if (!find(out->driver_, #name, f.name)) return missing("the CUDA driver", #name);
  FLOPSIGHT_CUDA_FUNCTIONS(FLOPSIGHT_CUDA_FIND)
#undef FLOPSIGHT_CUDA_FIND
#define FLOPSIGHT_CUBLASLT_FIND(name, header_name, ...) \
  if (!find(out->cublaslt_, #name, f.name)) return missing("cublasLt", #name);
  FLOPSIGHT_CUBLASLT_FUNCTIONS(FLOPSIGHT_CUBLASLT_FIND)
#undef FLOPSIGHT_CUBLASLT_FIND
  if (!find(out->cublaslt_, "cublasLtGetVersion", f.cublasLtGetVersion)) return missing("cublasLt", "cublasLtGetVersion");
  return out;
}

// Neither library is closed: both keep threads and handlers of their own for as long as the process lives.
Library::~Library() = default;

std::string Library::driver_error(int code) const {
  const char* text = nullptr;
  if (functions_.cuGetErrorString(code, &text) != abi::kSuccess || text == nullptr) text = "unknown error";
  return base::printable(text, 120) + " (CUDA error " + std::to_string(code) + ")";
}

std::string Library::cublaslt_version() const {
  const std::size_t version = functions_.cublasLtGetVersion();
  // 11 and 12: 10000 for a major version, 100 for a minor one.
  return std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

}  // namespace flopsight::cuda
