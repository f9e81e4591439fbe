#pragma once
// Events of a trace as small records: what one event says, before anything is joined.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "gemm/kernel_name.h"
#include "gemm/tile.h"
#include "units/units.h"

namespace flopsight::gemm {

inline constexpr std::uint32_t kNoShape = 0xFFFF'FFFF;

struct OperatorRecord {
  double start = 0;  // microseconds, as in the trace
  double end = 0;
  std::uint64_t external_id = 0;  // 0: none
  std::uint32_t thread = 0;
  std::uint32_t shape = kNoShape;  // index into shapes
};

struct LaunchRecord {
  std::uint64_t correlation = 0;
  double at = 0;
  std::uint32_t thread = 0;
};

struct ProductRecord {
  std::uint64_t correlation = 0;
  std::uint64_t external_id = 0;
  double microseconds = 0;
  std::uint32_t name = 0;  // index into kernels
  std::uint32_t grid_xy = 0;  // 0: not said
  std::uint32_t grid_z = 0;
};

struct KernelEntry {
  std::string name;  // short
  KernelName read;
  std::uint64_t count = 0;
  units::Seconds time;
};

struct TraceRecords {
  std::vector<OperatorRecord> operators;
  std::vector<LaunchRecord> launches;
  std::vector<ProductRecord> products;  // kernels of kind kTensorGemm
  std::vector<Shape> shapes;
  std::vector<KernelEntry> kernels;
  std::uint64_t events = 0;  // of the trace, also those that are not added
  std::uint64_t malformed = 0;
  std::string malformed_example;
  std::uint64_t operators_with_unusable_shape = 0;

  // Errors: kLimit.
  base::Status add(const base::json::Value& event);

 private:
  base::Status add_kernel(const base::json::Value& event, const base::json::Value* arguments);
  void add_operator(const base::json::Value& event, const base::json::Value* arguments, std::string_view name);
  void add_launch(const base::json::Value& event, const base::json::Value* arguments);
  void add_malformed(std::string_view name, std::string_view what);
  std::uint32_t thread_of(const base::json::Value& event);

  std::unordered_map<std::string, std::uint32_t> kernel_index_;
  std::unordered_map<std::string, std::uint32_t> threads_;
  std::unordered_map<std::string, std::uint32_t> shape_index_;
};

// The shape of an operator's inputs, as it stands in "Input Dims"; nothing where they do not say it. aten::mm, addmm, bmm,
// baddbmm, linear, matmul, _scaled_mm, _int_mm, _addmm_activation.
std::optional<Shape> operator_shape(std::string_view name, const base::json::Value& input_dims);
bool is_product_operator(std::string_view name);

}  // namespace flopsight::gemm
