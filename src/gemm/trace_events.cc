#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "gemm/trace.h"
#include "gemm/trace_events_internal.h"

namespace flopsight::gemm {
namespace {

using base::Error;
using base::ErrorCode;
using base::json::Value;

// How an operator's inputs hold its two factors.
enum class Form : std::uint8_t { kPlain, kAfterBias, kLinear, kBroadcast };
struct Operator {
  std::string_view name;
  Form form;
};
constexpr std::array<Operator, 9> kOperators = {{
    {"aten::mm", Form::kPlain},
    {"aten::bmm", Form::kPlain},
    {"aten::_int_mm", Form::kPlain},
    {"aten::_scaled_mm", Form::kPlain},
    {"aten::addmm", Form::kAfterBias},
    {"aten::baddbmm", Form::kAfterBias},
    {"aten::_addmm_activation", Form::kAfterBias},
    {"aten::linear", Form::kLinear},
    {"aten::matmul", Form::kBroadcast},
}};

const Operator* find_operator(std::string_view name) {
  const auto at = std::find_if(kOperators.begin(), kOperators.end(), [&](const Operator& o) { return o.name == name; });
  return at == kOperators.end() ? nullptr : &*at;
}

std::optional<double> number_of(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (const double* number = value->as_number()) return *number;
  if (const std::string* text = value->as_string()) return base::parse_number(*text);
  return std::nullopt;
}

std::uint64_t id_of(const Value* arguments, std::string_view key) {
  const auto number = arguments == nullptr ? std::nullopt : number_of(arguments->find(key));
  return number && *number > 0 && *number < 9e15 ? static_cast<std::uint64_t>(*number) : 0;
}

std::string_view text_of(const Value& event, std::string_view key) {
  const Value* value = event.find(key);
  const std::string* text = value == nullptr ? nullptr : value->as_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

// Sizes of one tensor; nothing for a scalar or what is no list of sizes.
std::optional<std::vector<std::uint64_t>> sizes_of(const Value& dims) {
  const base::json::Array* list = dims.as_array();
  if (list == nullptr || list->empty() || list->size() > 8) return std::nullopt;
  std::vector<std::uint64_t> sizes;
  for (const Value& side : *list) {
    const double* number = side.as_number();
    if (number == nullptr || !(*number >= 1) || *number > static_cast<double>(kDimensionMax) || *number != std::floor(*number)) return std::nullopt;
    sizes.push_back(static_cast<std::uint64_t>(*number));
  }
  return sizes;
}

std::uint64_t product_of(const std::vector<std::uint64_t>& sizes, std::size_t count) {
  double product = 1;
  for (std::size_t i = 0; i < count; ++i) product *= static_cast<double>(sizes[i]);
  return product <= static_cast<double>(kDimensionMax) ? static_cast<std::uint64_t>(product) : 0;
}

std::optional<Shape> shape_of(Form form, const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  Shape shape;
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const std::uint64_t k = form == Form::kLinear ? b[1] : b[b.size() - 2];
  if (k != a.back()) return std::nullopt;
  shape.k = k;
  shape.n = form == Form::kLinear ? b[0] : b.back();
  if (form == Form::kLinear || (form == Form::kBroadcast && b.size() == 2)) {
    if (b.size() != 2) return std::nullopt;
    shape.m = product_of(a, a.size() - 1);
  } else {
    if (a.size() != b.size() || !std::equal(a.begin(), a.end() - 2, b.begin())) return std::nullopt;
    shape.m = a[a.size() - 2];
    shape.batch = product_of(a, a.size() - 2);
  }
  return check_shape(shape).ok() ? std::optional<Shape>(shape) : std::nullopt;
}

// Microseconds since some start, and of a duration: what a profiler of one job can have written.
constexpr double kTimeMax = 1e17;
constexpr double kDurationMax = 1e12;
std::optional<double> time_of(const Value& event) {
  const auto at = number_of(event.find("ts"));
  return at && std::abs(*at) <= kTimeMax ? at : std::nullopt;
}
std::optional<double> duration_of(const Value& event) {
  const auto length = number_of(event.find("dur"));
  return length && *length >= 0 && *length <= kDurationMax ? length : std::nullopt;
}

// Whether a size is no size that a tensor can have: not an integer, negative, or beyond what BLAS takes. Empty tensors are real.
bool has_impossible_size(const Value& dims) {
  if (const double* number = dims.as_number()) return *number < 0 || *number > static_cast<double>(kDimensionMax) || *number != std::floor(*number);
  if (dims.as_string() != nullptr) return true;  // an integer beyond 2^53
  const base::json::Array* list = dims.as_array();
  return list != nullptr && std::any_of(list->begin(), list->end(), has_impossible_size);
}

bool is_launch(std::string_view name) { return name.find("Launch") != std::string_view::npos; }

Error too_many(std::string_view what, std::uint64_t most) {
  return {ErrorCode::kLimit, "more than " + std::to_string(most) + " " + std::string(what) + " in the trace"};
}

}  // namespace

bool is_product_operator(std::string_view name) { return find_operator(name) != nullptr; }

std::optional<Shape> operator_shape(std::string_view name, const Value& input_dims) {
  const Operator* found = find_operator(name);
  const base::json::Array* inputs = input_dims.as_array();
  if (found == nullptr || inputs == nullptr) return std::nullopt;
  const std::size_t first = found->form == Form::kAfterBias ? 1 : 0;
  if (inputs->size() < first + 2) return std::nullopt;
  const auto a = sizes_of((*inputs)[first]), b = sizes_of((*inputs)[first + 1]);
  if (!a || !b) return std::nullopt;
  return shape_of(found->form, *a, *b);
}

void TraceRecords::add_malformed(std::string_view name, std::string_view what) {
  if (malformed++ == 0) malformed_example = short_kernel_name(name) + " with " + std::string(what);
}

std::uint32_t TraceRecords::thread_of(const Value& event) {
  std::string key;
  for (const std::string_view name : {"pid", "tid"}) {
    const Value* value = event.find(name);
    const auto number = number_of(value);
    key += number ? base::json::number_text(*number) : std::string(text_of(event, name).substr(0, 64));
    key += '/';
  }
  return threads_.emplace(std::move(key), static_cast<std::uint32_t>(threads_.size())).first->second;
}

void TraceRecords::add_operator(const Value& event, const Value* arguments, std::string_view name) {
  const auto start = time_of(event), length = duration_of(event);
  if (!start || !length) return add_malformed(name, "a time or duration that is none");
  OperatorRecord record{*start, *start + *length, id_of(arguments, "External id"), thread_of(event), kNoShape};
  const Value* dims = arguments == nullptr ? nullptr : arguments->find("Input Dims");
  if (const auto shape = dims == nullptr ? std::nullopt : operator_shape(name, *dims)) {
    std::string key;
    for (const std::uint64_t side : {shape->m, shape->n, shape->k, shape->batch}) key += std::to_string(side) + "/";
    const auto [at, added] = shape_index_.emplace(std::move(key), static_cast<std::uint32_t>(shapes.size()));
    if (added) shapes.push_back(*shape);
    record.shape = at->second;
  } else if (dims != nullptr && dims->as_array() != nullptr && !dims->as_array()->empty()) {
    ++operators_with_unusable_shape;
    if (has_impossible_size(*dims)) add_malformed(name, "a size that no tensor has");
  }
  operators.push_back(record);
}

void TraceRecords::add_launch(const Value& event, const Value* arguments) {
  const std::uint64_t correlation = id_of(arguments, "correlation");
  const auto at = time_of(event);
  if (!at) return add_malformed(text_of(event, "name"), "a time that is none");
  if (correlation > 0) launches.push_back({correlation, *at, thread_of(event)});
}

base::Status TraceRecords::add_kernel(const Value& event, const Value* arguments) {
  const std::string name(text_of(event, "name"));
  const auto length = duration_of(event);
  if (!length) {
    add_malformed(name, "a duration that is none");
    return {};
  }
  const double microseconds = *length;
  auto at = kernel_index_.find(name);
  if (at == kernel_index_.end()) {
    if (kernels.size() >= kTraceNamesMax) return too_many("names of kernels", kTraceNamesMax);
    at = kernel_index_.emplace(name, static_cast<std::uint32_t>(kernels.size())).first;
    kernels.push_back({short_kernel_name(name), read_kernel_name(name), 0, {}});
  }
  KernelEntry& kernel = kernels[at->second];
  ++kernel.count;
  kernel.time += units::Seconds(microseconds * 1e-6);
  if (kernel.read.kind != KernelKind::kTensorGemm || !kernel.read.tile) return {};
  ProductRecord record{id_of(arguments, "correlation"), id_of(arguments, "External id"), microseconds, at->second, 0, 0};
  if (const auto grid = arguments == nullptr || arguments->find("grid") == nullptr ? std::nullopt : sizes_of(*arguments->find("grid")); grid && grid->size() == 3) {
    const double across = static_cast<double>((*grid)[0]) * static_cast<double>((*grid)[1]);
    if (across < 4e9) {
      record.grid_xy = static_cast<std::uint32_t>(across);
      record.grid_z = static_cast<std::uint32_t>((*grid)[2]);
    }
  }
  products.push_back(record);
  return {};
}

base::Status TraceRecords::add(const Value& event) {
  const std::string_view phase = text_of(event, "ph");
  if (phase != "X") return {};  // flows and names of threads
  const std::string category = base::to_lower(text_of(event, "cat").substr(0, 64));
  const Value* arguments = event.find("args");
  const std::string_view name = text_of(event, "name");
  if (category == "kernel") {
    FLOPSIGHT_RETURN_IF_ERROR(add_kernel(event, arguments));
  } else if ((category == "cpu_op" || category == "operator") && is_product_operator(name)) {
    add_operator(event, arguments, name);
  } else if ((category == "cuda_runtime" || category == "cuda_driver" || category == "runtime") && is_launch(name)) {
    add_launch(event, arguments);
  }
  if (operators.size() + launches.size() + products.size() > kTraceRecordsMax) return too_many("operators, launches and products", kTraceRecordsMax);
  return {};
}

}  // namespace flopsight::gemm
