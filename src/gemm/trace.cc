#include "gemm/trace.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "gemm/trace_events_internal.h"
#include "wire/json_stream.h"

namespace flopsight::gemm {
namespace {

using base::Error;
using base::ErrorCode;
using base::json::Value;

constexpr std::string_view kSkipped[] = {"Call stack", "Module Hierarchy", "Input Strides", "Concrete Inputs", "Input type", "Trace name"};
constexpr std::string_view kList = "traceEvents";
constexpr int kNestedMax = 64;         // products on one thread that are looked at for the one that was running
constexpr double kPeakTolerance = 1.1;  // boost above the clock that the peak is quoted at
constexpr std::uint32_t kNone = 0xFFFF'FFFF;

std::uint64_t tiles(std::uint64_t size, std::uint64_t tile) { return (size + tile - 1) / tile; }

// Whether a launch of so many CTAs has one for each tile. Rasterizations fold 2^s tiles of one side into the other side of the grid.
bool fits_grid(const Shape& shape, const Tile& tile, std::uint64_t across) {
  const std::uint64_t a = tiles(shape.m, tile.m), b = tiles(shape.n, tile.n);
  for (std::uint64_t fold = 1; fold <= 16; fold *= 2) {
    if (a * fold * tiles(b, fold) == across || b * fold * tiles(a, fold) == across) return true;
  }
  return false;
}

double padding(const Shape& shape, const Tile& tile) {
  const auto quantized = quantize(shape, tile, std::nullopt);
  return quantized.ok() ? quantized->overhead_ratio() : 0;
}

Tile lay(const Shape& shape, const KernelName& read, std::uint64_t across) {
  const Tile along_m = *read.tile, along_n = read.tile->swapped();
  if (across > 0) {
    const bool m_fits = fits_grid(shape, along_m, across), n_fits = fits_grid(shape, along_n, across);
    if (m_fits != n_fits) return m_fits ? along_m : along_n;
  }
  if (read.order == TileOrder::kFirstAlongM) return along_m;
  if (read.order == TileOrder::kFirstAlongN) return along_n;
  return padding(shape, along_m) <= padding(shape, along_n) ? along_m : along_n;
}

class Joiner {
 public:
  explicit Joiner(TraceRecords& records) : records_(records) {
    auto& operators = records.operators;
    std::sort(operators.begin(), operators.end(), [](const OperatorRecord& a, const OperatorRecord& b) {
      return std::tie(a.thread, a.start, b.end) < std::tie(b.thread, b.start, a.end);
    });
    std::sort(records.launches.begin(), records.launches.end(), [](const LaunchRecord& a, const LaunchRecord& b) { return a.correlation < b.correlation; });
    for (std::size_t i = 0; i < operators.size(); ++i) {
      if (operators[i].external_id > 0) by_external_id_.emplace(operators[i].external_id, static_cast<std::uint32_t>(i));
    }
  }

  // The operator of each product, or kNone.
  std::vector<std::uint32_t> join() const {
    std::vector<std::uint32_t> out;
    out.reserve(records_.products.size());
    for (const ProductRecord& product : records_.products) out.push_back(operator_of(product));
    return out;
  }

 private:
  std::uint32_t operator_of(const ProductRecord& product) const {
    const auto& launches = records_.launches;
    const auto launch = std::lower_bound(launches.begin(), launches.end(), product.correlation, [](const LaunchRecord& l, std::uint64_t id) { return l.correlation < id; });
    if (product.correlation > 0 && launch != launches.end() && launch->correlation == product.correlation) {
      if (const std::uint32_t found = running_at(launch->thread, launch->at); found != kNone) return found;
    }
    if (product.external_id == 0 || product.external_id == product.correlation) return kNone;
    const auto at = by_external_id_.find(product.external_id);
    return at == by_external_id_.end() ? kNone : at->second;
  }

  std::uint32_t running_at(std::uint32_t thread, double time) const {
    const auto& operators = records_.operators;
    auto at = std::upper_bound(operators.begin(), operators.end(), std::tie(thread, time), [](const std::tuple<const std::uint32_t&, const double&>& key, const OperatorRecord& o) {
      return key < std::tie(o.thread, o.start);
    });
    for (int i = 0; i < kNestedMax && at != operators.begin(); ++i) {
      --at;
      if (at->thread != thread) break;
      if (time <= at->end) return static_cast<std::uint32_t>(at - operators.begin());
    }
    return kNone;
  }

  TraceRecords& records_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_external_id_;
};

struct Peaks {
  const catalog::Device* device = nullptr;
  std::optional<int> sm_count;
};

// Products of equal kernel, shape, tile and splits.
class Products {
 public:
  Products(const TraceRecords& records, const Peaks& peaks, TraceSummary& out) : records_(records), peaks_(peaks), out_(out) {}

  void add(const ProductRecord& record, const Shape& shape) {
    const KernelEntry& kernel = records_.kernels[record.name];
    const Tile tile = lay(shape, kernel.read, record.grid_xy);
    const std::uint64_t splits = record.grid_z > shape.batch && record.grid_z % shape.batch == 0 && kernel.read.family != "nvjet" ? record.grid_z / shape.batch : kernel.read.splits;
    auto quantized = quantize(shape, tile, peaks_.sm_count);
    if (!quantized.ok()) {
      ++out_.without_shape;
      out_.time_without_shape += units::Seconds(record.microseconds * 1e-6);
      return;
    }
    TraceProduct& product = products_[{record.name, shape, tile, splits}];
    if (product.count == 0) {
      const auto launched = quantize({shape.m, shape.n, shape.k, std::min(shape.batch * splits, kDimensionMax)}, tile, peaks_.sm_count);
      if (splits > 1 && launched.ok()) quantized->waves = launched->waves;
      product = {kernel.name, kernel.read, shape, tile, 0, {}, splits, *quantized};
    }
    ++product.count;
    product.time += units::Seconds(record.microseconds * 1e-6);
    out_.theoretical_flops += quantized->theoretical_flops;
    out_.executed_flops += quantized->executed_flops;
    judge(record, product);
  }

  void finish() {
    for (auto& [key, product] : products_) out_.products.push_back(std::move(product));
    std::stable_sort(out_.products.begin(), out_.products.end(), [](const TraceProduct& a, const TraceProduct& b) { return lost(a) > lost(b); });
  }

 private:
  static double lost(const TraceProduct& p) { return p.time.value * (1 - 1 / p.quantized.overhead_ratio()); }

  // However short a kernel is, its two times are wrong by no more than the clock's grain.
  void judge(const ProductRecord& record, const TraceProduct& product) {
    if (peaks_.device == nullptr || !product.read.precision) return;
    const auto peak = peaks_.device->peak(*product.read.precision);
    const double rate = product.quantized.theoretical_flops / ((record.microseconds + kClockMicroseconds) * 1e-6);
    if (!peak || rate <= peak->value * kPeakTolerance) return;
    if (out_.impossible++ > 0) return;
    const Shape& s = product.shape;
    out_.impossible_example = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) + " in " + base::json::number_text(record.microseconds) + " us by " + product.kernel;
  }

  const TraceRecords& records_;
  const Peaks& peaks_;
  TraceSummary& out_;
  std::map<std::tuple<std::uint32_t, Shape, Tile, std::uint64_t>, TraceProduct> products_;
};

void read_device(const Value& rest, TraceSummary& out) {
  const Value* list = rest.find("deviceProperties");
  const base::json::Array* devices = list == nullptr ? nullptr : list->as_array();
  if (devices == nullptr || devices->empty()) return;
  const Value& first = devices->front();
  if (const Value* name = first.find("name"); name != nullptr && name->as_string() != nullptr) out.gpu_name = base::printable(*name->as_string(), 80);
  const Value* sms = first.find("numSms");
  if (sms != nullptr && sms->as_number() != nullptr && *sms->as_number() >= 1 && *sms->as_number() < 1e5) out.sm_count = static_cast<int>(*sms->as_number());
}

void count_kernels(const TraceRecords& records, TraceSummary& out) {
  for (const KernelEntry& kernel : records.kernels) {
    const auto kind = static_cast<std::size_t>(kernel.read.kind);
    out.count[kind] += kernel.count;
    out.time[kind] += kernel.time;
    const bool may = kernel.read.kind == KernelKind::kMaybeGemm || (kernel.read.kind == KernelKind::kTensorGemm && !kernel.read.tile);
    if (may) out.unread.push_back({kernel.name, kernel.read.kind, kernel.count, kernel.time});
  }
  std::stable_sort(out.unread.begin(), out.unread.end(), [](const TraceNamed& a, const TraceNamed& b) { return a.time > b.time; });
}

}  // namespace

units::Seconds TraceSummary::total() const {
  units::Seconds sum;
  for (const units::Seconds& t : time) sum += t;
  return sum;
}

units::Seconds TraceSummary::tensor_time() const {
  units::Seconds sum;
  for (const KernelKind kind : {KernelKind::kTensorGemm, KernelKind::kAttention, KernelKind::kConvolution}) sum += time[static_cast<std::size_t>(kind)];
  return sum;
}

units::Seconds TraceSummary::joined_time() const {
  units::Seconds sum;
  for (const TraceProduct& product : products) sum += product.time;
  return sum;
}

std::optional<double> TraceSummary::overhead_ratio() const {
  if (!(theoretical_flops > 0)) return std::nullopt;
  return executed_flops / theoretical_flops;
}

struct TraceReader::State {
  State() : stream({kList, kSkipped, [this](std::string_view text) { return wanted(text); }}, [this](Value event) { return records.add(event); }) {}

  // Most events are flows and operators that are no matrix product: told by a look at the text, without parsing it.
  bool wanted(std::string_view text) {
    ++records.events;
    constexpr std::string_view kMarks[] = {"kernel\"", "Kernel\"", "mm\"", "mm_", "matmul\"", "linear\"", "Launch"};
    return std::any_of(std::begin(kMarks), std::end(kMarks), [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
  }
  TraceRecords records;
  wire::JsonStream stream;
};

TraceReader::TraceReader() : state_(std::make_unique<State>()) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;

base::Status TraceReader::feed(std::string_view json) { return state_->stream.feed(json); }

base::Result<TraceSummary> TraceReader::finish(const catalog::DeviceCatalog& catalog, const catalog::Device* device) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Value rest, state_->stream.finish());
  TraceRecords& records = state_->records;
  if (!state_->stream.list_seen()) return Error{ErrorCode::kInvalid, "no list traceEvents, expected a trace of PyTorch's profiler (Kineto)"};
  if (records.kernels.empty()) return Error{ErrorCode::kInvalid, "no kernel among " + std::to_string(records.events) + " events" + (records.malformed > 0 ? " (" + std::to_string(records.malformed) + " malformed: " + records.malformed_example + ")" : "") + ", expected a trace with GPU activity (ProfilerActivity.CUDA)"};
  TraceSummary out;
  read_device(rest, out);
  Peaks peaks{device != nullptr ? device : catalog.find(out.gpu_name), out.sm_count};
  if (device != nullptr && device->sm_count) peaks.sm_count = device->sm_count;
  if (!peaks.sm_count && peaks.device != nullptr) peaks.sm_count = peaks.device->sm_count;
  out.sm_count = peaks.sm_count;
  out.events = records.events;
  out.operators = records.operators.size();
  out.operators_without_shape = static_cast<std::uint64_t>(std::count_if(records.operators.begin(), records.operators.end(), [](const OperatorRecord& o) { return o.shape == kNoShape; }));
  out.malformed = records.malformed;
  out.malformed_example = records.malformed_example;
  out.operators_with_unusable_shape = records.operators_with_unusable_shape;
  count_kernels(records, out);
  const std::vector<std::uint32_t> joined = Joiner(records).join();
  std::vector<std::uint32_t> launched(records.operators.size());
  for (const std::uint32_t at : joined) {
    if (at != kNone) ++launched[at];
  }
  Products products(records, peaks, out);
  for (std::size_t i = 0; i < joined.size(); ++i) {
    const ProductRecord& record = records.products[i];
    const bool several = joined[i] != kNone && launched[joined[i]] > 1;
    if (joined[i] == kNone || several || records.operators[joined[i]].shape == kNoShape) {
      ++out.without_shape;
      out.several_of_one += several ? 1 : 0;
      out.time_without_shape += units::Seconds(record.microseconds * 1e-6);
    } else {
      products.add(record, records.shapes[records.operators[joined[i]].shape]);
    }
  }
  products.finish();
  return out;
}

}  // namespace flopsight::gemm
