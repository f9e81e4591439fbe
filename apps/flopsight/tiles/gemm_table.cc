#include <algorithm>
#include "tiles/gemm_answer.h"
#include "views/text_table.h"

namespace flopsight::app {
namespace {

namespace text_table = views::text_table;
using text_table::Column;
using text_table::kUnknownCell;
using text_table::number;
using text_table::percent;

constexpr double kLargeFlops = 1e10;
constexpr std::size_t kUnreadShown = 8;
constexpr std::size_t kImpossibleShown = 5;

void line(std::string& out, std::string_view name, const std::string& value) {
  out += std::string(name) + std::string(name.size() < 18 ? 18 - name.size() : 1, ' ') + value + "\n";
}

std::string flops_text(double flops) {
  if (flops >= 1e15) return number(flops / 1e15, "%.3f PFLOPs");
  if (flops >= 1e12) return number(flops / 1e12, "%.3f TFLOPs");
  if (flops >= 1e9) return number(flops / 1e9, "%.3f GFLOPs");
  return number(flops / 1e6, "%.3f MFLOPs");
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return number(seconds, "%.3f s");
  return seconds >= 1e-3 ? number(seconds * 1e3, "%.3f ms") : number(seconds * 1e6, "%.1f us");
}

std::string suggestion_text(const GemmRow& row) {
  if (!row.suggestion) return "";
  const gemm::Suggestion& s = *row.suggestion;
  const std::uint64_t to = s.dimension == 'm' ? s.shape.m : s.dimension == 'n' ? s.shape.n : s.shape.k;
  std::string out = std::string(1, s.dimension) + " " + std::to_string(s.from) + " -> " + std::to_string(to);
  out += ": " + number((s.gain_ratio - 1) * 100, "%+.1f %%");
  if (s.reason == gemm::Reason::kWave) out += " (wave)";
  if (s.aligns) out += ", aligned";
  return out;
}

std::string device_text(const GemmAnswer& answer) {
  std::string out = answer.gpu.empty() ? "GPU not known" : answer.gpu;
  if (answer.sm_count) out += " (" + std::to_string(*answer.sm_count) + " SMs)";
  if (answer.precision) out += ", " + std::string(catalog::precision_name(*answer.precision));
  return out;
}

std::string one_product(const GemmAnswer& answer) {
  std::string out;
  const GemmRow& row = answer.rows.front();
  const gemm::Quantized& q = row.quantized;
  line(out, "product", "m " + std::to_string(row.shape.m) + ", n " + std::to_string(row.shape.n) + ", k " + std::to_string(row.shape.k) +
                           (row.shape.batch > 1 ? ", batch " + std::to_string(row.shape.batch) : ""));
  line(out, "GPU", device_text(answer));
  line(out, "tile", gemm::tile_text(row.tile) + ", " + (row.tile_source == "kernel_name" ? "read off the kernel's name" : row.tile_source) + (row.splits > 1 ? ", k split in " + std::to_string(row.splits) : ""));
  line(out, "FLOPs", flops_text(q.theoretical_flops) + " useful, " + flops_text(q.executed_flops) + " executed: overhead " + number(q.overhead_ratio(), "%.4f"));
  if (row.swapped_overhead_ratio) line(out, "tile turned", gemm::tile_text(row.tile.swapped()) + ": overhead " + number(*row.swapped_overhead_ratio, "%.4f"));
  line(out, "CTAs", std::to_string(q.ctas) + (q.waves ? " in " + std::to_string(q.waves->waves) + (q.waves->waves == 1 ? " wave" : " waves") + ", wave efficiency " + percent(q.waves->efficiency_ratio) : ""));
  if (q.waves) line(out, "efficiency", percent(q.efficiency_ratio()) + " by tiles and waves");
  if (answer.predicted) line(out, "attainable", number(answer.predicted->value / 1e12, "%.4g TFLOP/s") + ", predicted");
  line(out, "better near", row.suggestion ? suggestion_text(row) + " useful FLOPs a second" : "none within an eighth");
  return out;
}

void add_time_columns(const std::vector<GemmRow>& rows, std::size_t shown, std::vector<Column>& columns) {
  Column time{"time", {}}, lost{"lost to tiles", {}};
  for (std::size_t i = 0; i < shown; ++i) {
    time.cells.push_back(seconds_text(rows[i].time->value));
    lost.cells.push_back(seconds_text(rows[i].time->value * (1 - 1 / rows[i].quantized.overhead_ratio())));
  }
  columns.push_back(time);
  columns.push_back(lost);
}

std::string many_products(const GemmAnswer& answer, std::uint64_t rows_max) {
  const auto& rows = answer.rows;
  const std::size_t shown = std::min<std::size_t>(rows.size(), rows_max);
  const bool trace = answer.trace.has_value();
  std::vector<Column> columns = {{trace ? "kernel" : "product", {}, true}, {"pass", {}, true}, {"m", {}}, {"n", {}}, {"k", {}}, {"batch", {}}, {"count", {}}, {"tile", {}, true},
                                 {"overhead", {}}, {"waves", {}}, {"wave eff.", {}}};
  Column share{"FLOPs", {}}, better{"better near", {}, true};
  for (std::size_t i = 0; i < shown; ++i) {
    const GemmRow& row = rows[i];
    const auto& waves = row.quantized.waves;
    const std::string cells[] = {text_table::short_name(row.what), row.pass, std::to_string(row.shape.m), std::to_string(row.shape.n), std::to_string(row.shape.k),
                                 row.shape.batch > 1 ? std::to_string(row.shape.batch) : "", std::to_string(row.count),
                                 gemm::tile_text(row.tile) + (row.splits > 1 ? " /" + std::to_string(row.splits) : ""), number(row.quantized.overhead_ratio(), "%.3f"),
                                 waves ? std::to_string(waves->waves) : std::string(kUnknownCell), waves ? percent(waves->efficiency_ratio) : std::string(kUnknownCell)};
    for (std::size_t c = 0; c < columns.size(); ++c) columns[c].cells.push_back(cells[c]);
    share.cells.push_back(percent(static_cast<double>(row.count) * row.quantized.theoretical_flops / answer.theoretical_flops));
    better.cells.push_back(suggestion_text(row));
  }
  if (trace) add_time_columns(rows, shown, columns);
  columns.push_back(share);
  columns.push_back(better);
  text_table::drop_unknown(columns, 1);
  std::string out = text_table::render(columns, shown);
  if (shown < rows.size()) out += "and " + std::to_string(rows.size() - shown) + " more; --top N shows them, --format json has all\n";
  return out;
}

std::string trace_head(const GemmAnswer& answer) {
  const gemm::TraceSummary& trace = *answer.trace;
  const double total = trace.total().value, tensor = trace.tensor_time().value;
  std::string out;
  line(out, "GPU", device_text(answer));
  line(out, "kernels", seconds_text(total) + " of kernel time, " + (total > 0 ? percent(tensor / total) : std::string(kUnknownCell)) + " in tensor kernels");
  for (std::size_t i = 0; i < gemm::kKernelKinds; ++i) {
    if (trace.count[i] == 0) continue;
    std::string name(gemm::kernel_kind_name(static_cast<gemm::KernelKind>(i)));
    std::replace(name.begin(), name.end(), '_', ' ');
    line(out, "  " + name, seconds_text(trace.time[i].value) + ", " + std::to_string(trace.count[i]) + (trace.count[i] == 1 ? " launch" : " launches"));
  }
  if (trace.without_shape > 0) line(out, "without shape", std::to_string(trace.without_shape) + " tensor products, " + seconds_text(trace.time_without_shape.value));
  for (std::size_t i = 0; i < std::min(trace.unread.size(), kUnreadShown); ++i) {
    line(out, i == 0 ? "tile not read" : "", trace.unread[i].kernel + ": " + std::to_string(trace.unread[i].count) + ", " + seconds_text(trace.unread[i].time.value));
  }
  if (trace.unread.size() > kUnreadShown) line(out, "", "and " + std::to_string(trace.unread.size() - kUnreadShown) + " more");
  const auto overhead = trace.overhead_ratio();
  line(out, "overhead", overhead ? number(*overhead, "%.4f") + " FLOP-weighted, from " + percent(tensor > 0 ? trace.joined_time().value / tensor : 0) + " of the tensor kernels' time" : "not known: no tensor product has both tile and shape");
  return out + "\n";
}

std::string model_foot(const GemmAnswer& answer) {
  std::string out = "\n";
  line(out, "GPU", device_text(answer));
  line(out, "all", flops_text(answer.theoretical_flops) + " useful, " + flops_text(answer.executed_flops) + " executed: overhead " + number(*answer.overhead_ratio(), "%.4f") + ", FLOP-weighted");
  if (answer.sm_count) line(out, "efficiency", percent(answer.theoretical_flops / answer.occupied_flops) + " by tiles and waves");
  return out;
}

void errors_line(std::string& out, const char* name, const std::optional<gemm::RateErrors>& errors) {
  if (!errors) return;
  line(out, name, std::to_string(errors->rows) + " rows: median " + number(errors->median_ratio * 100, "%+.0f %%") + ", 10th to 90th percentile " + number(errors->p10_ratio * 100, "%+.0f") + " to " +
                      number(errors->p90_ratio * 100, "%+.0f %%") + ", " + percent(errors->within_quarter_ratio) + " within 25 %");
}

std::string measured(const GemmAnswer& answer) {
  std::string out;
  line(out, "GPU", device_text(answer));
  out += "predicted over measured rate, less one:\n";
  errors_line(out, "  all", gemm::rate_errors(answer.rates, 0));
  errors_line(out, "  from 10 GFLOPs", gemm::rate_errors(answer.rates, kLargeFlops));
  std::size_t impossible = 0, unpredicted = 0;
  for (const gemm::RateCheck& check : answer.rates) {
    if (!check.predicted) ++unpredicted;
    if (!check.impossible || impossible++ >= kImpossibleShown) continue;
    const gemm::Shape& s = check.measured.shape;
    line(out, "impossible", "line " + std::to_string(check.measured.line) + ": " + std::to_string(s.batch) + " x " + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) + " " +
                                std::string(catalog::precision_name(check.measured.precision)) + " at " + number(check.measured.rate.value / 1e12, "%.1f") + " TFLOP/s, above the dense peak");
  }
  if (impossible > 0) line(out, "", std::to_string(impossible) + " of " + std::to_string(answer.rates.size()) + " rows are above the peak and left out");
  if (unpredicted > 0) line(out, "", std::to_string(unpredicted) + " rows have no prediction: no attainable share was published for their format");
  return out;
}

}  // namespace

std::string gemm_table(const GemmAnswer& answer, std::uint64_t rows_max) {
  using Source = GemmArguments::Source;
  std::string out;
  if (answer.source == Source::kShape) out = one_product(answer);
  if (answer.source == Source::kModel) out = many_products(answer, rows_max) + model_foot(answer);
  if (answer.source == Source::kTrace) out = trace_head(answer) + (answer.rows.empty() ? std::string() : many_products(answer, rows_max));
  if (answer.source == Source::kMeasured) out = measured(answer);
  out += "\n";
  if (answer.accuracy) {
    out += "tile model: the library's tile on " + percent(answer.accuracy->same_tile_ratio) + ", overhead off by " + percent(answer.accuracy->overhead_error_ratio) + " in the mean, on " + std::string(answer.accuracy->on) + "\n";
  }
  for (const std::string& assumption : answer.assumptions) out += "assumed: " + assumption + "\n";
  if (!answer.attached.empty()) out += "attached to " + answer.attached + "\n";
  return out;
}

}  // namespace flopsight::app
