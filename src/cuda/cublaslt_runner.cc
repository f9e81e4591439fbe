#include "cuda/cublaslt_runner.h"

#include <array>
#include <cstdio>

#include "base/text.h"
#include "cuda/product_internal.h"

namespace flopsight::cuda {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

// "GPU-8f4e2b1c-…", as NVML and exporters print it.
std::string uuid_text(const abi::Uuid& uuid) {
  std::string out = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", uuid.bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += hex;
  }
  return out;
}

}  // namespace

CublasLtRunner::CublasLtRunner(std::unique_ptr<Library> library) : library_(std::move(library)) {}

CublasLtRunner::~CublasLtRunner() {
  const Functions& f = library_->functions();
  product_.reset();
  if (first_ != nullptr) f.cuEventDestroy_v2(first_);
  if (last_ != nullptr) f.cuEventDestroy_v2(last_);
  if (handle_ != nullptr) f.cublasLtDestroy(handle_);
  if (device_ >= 0) f.cuDevicePrimaryCtxRelease_v2(device_);
}

base::Result<std::unique_ptr<CublasLtRunner>> CublasLtRunner::open(const LibraryPaths& paths, int index) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Library> library, Library::load(paths));
  std::unique_ptr<CublasLtRunner> out(new CublasLtRunner(std::move(library)));
  FLOPSIGHT_RETURN_IF_ERROR(out->start(index));
  return out;
}

Status CublasLtRunner::check(int code, const char* doing) const {
  if (code == abi::kSuccess) return {};
  return Error{ErrorCode::kUnavailable, std::string(doing) + ": " + library_->driver_error(code)};
}

Status CublasLtRunner::start(int index) {
  const Functions& f = library_->functions();
  const int begun = f.cuInit(0);
  int count = 0;
  if (begun == abi::kSuccess) FLOPSIGHT_RETURN_IF_ERROR(check(f.cuDeviceGetCount(&count), "counting GPUs"));
  if (begun == abi::kCudaNoDevice || (begun == abi::kSuccess && count == 0)) {
    return Error{ErrorCode::kUnsupported, "the CUDA driver sees no GPU"};
  }
  FLOPSIGHT_RETURN_IF_ERROR(check(begun, "starting the CUDA driver"));
  if (index >= count) return Error{ErrorCode::kInvalid, "--gpu-index " + std::to_string(index) + ": this machine has " + std::to_string(count) + " GPUs, counted from 0"};
  int device = 0;
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuDeviceGet(&device, index), "opening the GPU"));
  std::array<char, 256> name{};
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device), "asking the GPU's name"));
  gpu_.name = base::printable(name.data());
  abi::Uuid uuid{};
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuDeviceGetUuid(&uuid, device), "asking the GPU's UUID"));
  gpu_.uuid = uuid_text(uuid);
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuDeviceGetAttribute(&gpu_.sm_count, abi::kMultiprocessorCount, device), "counting SMs"));
  int version = 0;
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuDriverGetVersion(&version), "asking the driver's version"));
  gpu_.cuda_version = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  gpu_.cublaslt_version = library_->cublaslt_version();
  abi::Context context = nullptr;
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuDevicePrimaryCtxRetain(&context, device), "opening the GPU"));
  device_ = device;
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuCtxSetCurrent(context), "opening the GPU"));
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuEventCreate(&first_, 0), "making an event"));
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuEventCreate(&last_, 0), "making an event"));
  const int made = f.cublasLtCreate(&handle_);
  if (made != abi::kSuccess) return Error{ErrorCode::kUnavailable, "starting cublasLt: status " + std::to_string(made)};
  return {};
}

base::Result<validation::Prepared> CublasLtRunner::prepare(const validation::Case& one) {
  product_.reset();  // its memory is free for the next one
  auto product = std::make_unique<Product>(*library_);
  FLOPSIGHT_RETURN_IF_ERROR(product->make(handle_, one));
  product_ = std::move(product);
  return product_->prepared();
}

Status CublasLtRunner::mark() { return check(library_->functions().cuEventRecord(first_, nullptr), "marking the time"); }

base::Result<units::Seconds> CublasLtRunner::run(std::uint64_t launches) {
  const Functions& f = library_->functions();
  for (std::uint64_t i = 0; i < launches; ++i) FLOPSIGHT_RETURN_IF_ERROR(product_->launch(handle_));
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuEventRecord(last_, nullptr), "marking the time"));
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuEventSynchronize(last_), "running a product"));
  float milliseconds = 0;
  FLOPSIGHT_RETURN_IF_ERROR(check(f.cuEventElapsedTime(&milliseconds, first_, last_), "asking how long a product took"));
  return units::Seconds(static_cast<double>(milliseconds) / 1000);
}

}  // namespace flopsight::cuda
