// A CUDA driver and a cublasLt that are neither: one library with the functions of both, which answers from a script. Tests load it
// through the same path as the real ones.
//
// The script is the file that FLOPSIGHT_FAKE_CUDA names, a line for each setting, "key value"; without one, the defaults below.
// Time is the fake's own: a product takes what its tiles execute at `flops_per_second`, plus `launch_seconds`; with `real_time 1`,
// waiting for an event takes that long.

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "cuda/abi.h"
#include "gemm/tile.h"

namespace abi = flopsight::cuda::abi;

namespace {

struct Fake {
  std::map<std::string, std::string> script = {{"name", "NVIDIA H100 80GB HBM3"}, {"gpus", "1"},    {"sm_count", "132"},  {"flops_per_second", "6e14"},
                                               {"launch_seconds", "0"},           {"tile", "23"},   {"stages", "15"},     {"memory_bytes", "8e10"},
                                               {"real_time", "0"},                {"fail", ""},     {"fail_code", "999"}, {"unsupported_type", "-1"}};
  double now_seconds = 0;
  double waited_seconds = 0;
  double allocated_bytes = 0;
  std::map<unsigned long long, double> blocks;
  unsigned long long next_address = 4096;

  Fake() {
    const char* path = std::getenv("FLOPSIGHT_FAKE_CUDA");
    std::ifstream file(path != nullptr ? path : "");
    for (std::string line; std::getline(file, line);) {
      const std::size_t space = line.find(' ');
      if (space != std::string::npos) script[line.substr(0, space)] = line.substr(space + 1);
    }
  }
  double number(const char* key) { return std::atof(script[key].c_str()); }
  int failing(const char* function) { return script["fail"] == function ? static_cast<int>(number("fail_code")) : 0; }
};

Fake& fake() {
  static Fake one;
  return one;
}

struct FakeLayout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
};

double executed_flops(const FakeLayout& a, const FakeLayout& d) {
  const auto tile = flopsight::gemm::tile_of_cublaslt_id(static_cast<int>(fake().number("tile")));
  const auto up = [](std::uint64_t size, std::uint64_t side) { return std::ceil(static_cast<double>(size) / static_cast<double>(side)) * static_cast<double>(side); };
  const std::uint64_t k = flopsight::gemm::tile_k_of_cublaslt_stages(static_cast<int>(fake().number("stages"))).value_or(1);
  return 2 * up(d.rows, tile ? tile->m : 1) * up(d.columns, tile ? tile->n : 1) * up(a.rows, k);
}

}  // namespace

// Declared as the tables of abi.h declare them, so that a difference does not compile.
extern "C" {
#define FLOPSIGHT_FAKE_DECLARE(name, header_name, ...) int name(__VA_ARGS__);
FLOPSIGHT_CUDA_FUNCTIONS(FLOPSIGHT_FAKE_DECLARE)
FLOPSIGHT_CUBLASLT_FUNCTIONS(FLOPSIGHT_FAKE_DECLARE)
#undef FLOPSIGHT_FAKE_DECLARE
std::size_t cublasLtGetVersion();

int cuInit(unsigned) { return fake().failing("cuInit"); }
int cuDriverGetVersion(int* out) { return *out = 13000, 0; }
int cuDeviceGetCount(int* out) { return *out = static_cast<int>(fake().number("gpus")), 0; }
int cuDeviceGet(int* out, int index) { return *out = index, 0; }
int cuDeviceGetName(char* out, int size, int) { return std::snprintf(out, static_cast<std::size_t>(size), "%s", fake().script["name"].c_str()), 0; }
int cuDeviceGetAttribute(int* out, int attribute, int) {
  *out = attribute == abi::kMultiprocessorCount ? static_cast<int>(fake().number("sm_count")) : 0;
  return 0;
}
int cuDeviceGetUuid(abi::Uuid* out, int device) {
  for (std::size_t i = 0; i < sizeof out->bytes; ++i) out->bytes[i] = static_cast<unsigned char>(16 * i + static_cast<std::size_t>(device));
  return 0;
}
int cuDevicePrimaryCtxRetain(abi::Context* out, int) { return *out = reinterpret_cast<abi::Context>(&fake()), fake().failing("cuDevicePrimaryCtxRetain"); }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(abi::Context) { return 0; }
int cuMemAlloc_v2(unsigned long long* out, std::size_t bytes) {
  Fake& f = fake();
  if (const int code = f.failing("cuMemAlloc_v2")) return code;
  if (f.allocated_bytes + static_cast<double>(bytes) > f.number("memory_bytes")) return abi::kCudaOutOfMemory;
  f.allocated_bytes += static_cast<double>(bytes);
  f.blocks[f.next_address] = static_cast<double>(bytes);
  *out = f.next_address;
  f.next_address += bytes + 4096;
  return 0;
}
int cuMemFree_v2(unsigned long long address) {
  fake().allocated_bytes -= fake().blocks[address];
  return fake().blocks.erase(address) == 1 ? 0 : 1;
}
int cuMemcpyHtoD_v2(unsigned long long, const void*, std::size_t) { return fake().failing("cuMemcpyHtoD_v2"); }
int cuMemcpyDtoD_v2(unsigned long long, unsigned long long, std::size_t) { return 0; }
int cuEventCreate(abi::Event* out, unsigned) { return *out = reinterpret_cast<abi::Event>(new double(0)), 0; }
int cuEventDestroy_v2(abi::Event event) { return delete reinterpret_cast<double*>(event), 0; }
int cuEventRecord(abi::Event event, abi::Stream) { return *reinterpret_cast<double*>(event) = fake().now_seconds, 0; }
int cuEventSynchronize(abi::Event event) {
  Fake& f = fake();
  const double until = *reinterpret_cast<double*>(event);
  if (f.number("real_time") != 0 && until > f.waited_seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(until - f.waited_seconds));
    f.waited_seconds = until;
  }
  return f.failing("cuEventSynchronize");
}
int cuEventElapsedTime(float* out, abi::Event from, abi::Event to) {
  *out = static_cast<float>(1000 * (*reinterpret_cast<double*>(to) - *reinterpret_cast<double*>(from)));
  return 0;
}
int cuGetErrorString(int, const char** out) { return *out = "a failure of the script", 0; }

std::size_t cublasLtGetVersion() { return 130100; }
int cublasLtCreate(abi::Handle* out) { return *out = reinterpret_cast<abi::Handle>(&fake()), fake().failing("cublasLtCreate"); }
int cublasLtDestroy(abi::Handle) { return 0; }
int cublasLtMatmulDescCreate(abi::MatmulDesc* out, int, int) { return *out = reinterpret_cast<abi::MatmulDesc>(new int(0)), 0; }
int cublasLtMatmulDescDestroy(abi::MatmulDesc one) { return delete reinterpret_cast<int*>(one), 0; }
int cublasLtMatmulDescSetAttribute(abi::MatmulDesc, int attribute, const void*, std::size_t bytes) {
  const bool is_pointer = attribute == abi::kScalePointerA || attribute == abi::kScalePointerB;
  return bytes == (is_pointer ? sizeof(void*) : sizeof(std::int32_t)) ? 0 : abi::kBlasInvalidValue;
}
int cublasLtMatrixLayoutCreate(abi::Layout* out, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t) {
  *out = reinterpret_cast<abi::Layout>(new FakeLayout{type, rows, columns});
  return 0;
}
int cublasLtMatrixLayoutDestroy(abi::Layout one) { return delete reinterpret_cast<FakeLayout*>(one), 0; }
int cublasLtMatmulPreferenceCreate(abi::Preference* out) { return *out = reinterpret_cast<abi::Preference>(new int(0)), 0; }
int cublasLtMatmulPreferenceDestroy(abi::Preference one) { return delete reinterpret_cast<int*>(one), 0; }
int cublasLtMatmulPreferenceSetAttribute(abi::Preference, int attribute, const void*, std::size_t bytes) {
  return attribute == abi::kWorkspaceBytesMax && bytes == sizeof(std::uint64_t) ? 0 : abi::kBlasInvalidValue;
}
int cublasLtMatmulAlgoGetHeuristic(abi::Handle, abi::MatmulDesc, abi::Layout a, abi::Layout, abi::Layout, abi::Layout, abi::Preference, int,
                                   abi::Heuristic* out, int* found) {
  if (reinterpret_cast<FakeLayout*>(a)->type == static_cast<int>(fake().number("unsupported_type"))) return abi::kBlasNotSupported;
  *out = {};
  *found = 1;
  return 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const abi::Algo*, int attribute, void* out, std::size_t bytes, std::size_t* written) {
  const std::uint32_t value = attribute == abi::kAlgoTile     ? static_cast<std::uint32_t>(fake().number("tile"))
                              : attribute == abi::kAlgoStages ? static_cast<std::uint32_t>(fake().number("stages"))
                              : attribute == abi::kAlgoSplitK ? 1U
                                                              : 66U;
  if (bytes != sizeof value) return abi::kBlasInvalidValue;
  std::memcpy(out, &value, sizeof value);
  *written = sizeof value;
  return 0;
}
int cublasLtMatmul(abi::Handle, abi::MatmulDesc, const void*, const void*, abi::Layout a, const void*, abi::Layout, const void*, const void*, abi::Layout,
                   void*, abi::Layout d, const abi::Algo*, void*, std::size_t, abi::Stream) {
  Fake& f = fake();
  if (const int code = f.failing("cublasLtMatmul")) return code;
  f.now_seconds += executed_flops(*reinterpret_cast<FakeLayout*>(a), *reinterpret_cast<FakeLayout*>(d)) / f.number("flops_per_second") + f.number("launch_seconds");
  return 0;
}
}  // extern "C"
