#include "simulation/text.h"

#include <charconv>

namespace flopsight::simulation {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

void append_value(const SimulatedMetric& metric, double value, std::string& out) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, metric.decimals ? 6 : 0).ptr;
  out.append(text, end);
}

void append_integer(std::int64_t value, std::string& out) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_head(const SimulatedMetric& metric, std::string& out) {
  out.append("# HELP ").append(metric.name).append(" ").append(metric.help).append("\n# TYPE ").append(metric.name);
  out.append(metric.counter ? " counter\n" : " gauge\n");
}

// No value of ours needs an escape.
std::string block_of(const Timetable& timetable, const Row& row) {
  std::string out = "{";
  for (const auto& [name, value] : exporter_labels(timetable, row)) {
    out += (out.size() > 1 ? "," : "") + name + "=\"" + value + "\"";
  }
  return out + "} ";
}

std::string head_of(const Options& options) {
  return "# SIMULATED by flopsight simulate --scenario " + std::string(scenario_name(options.scenario)) + " --gpus " +
         std::to_string(options.gpus) + " --seed " + std::to_string(options.seed) +
         "; no such GPU exists.\n# HELP flopsight_simulated 1: these samples are of a fleet that does not exist.\n"
         "# TYPE flopsight_simulated gauge\n";
}

// The blocks of the rows of one GPU at a time, made again only when a label changes.
class Blocks {
 public:
  explicit Blocks(const Timetable& timetable) : timetable_(timetable) {}
  const std::string& of(const Row& row) {
    for (auto& [known, block] : blocks_) {
      if (known.same_labels(row)) return block;
    }
    if (blocks_.size() >= 16) blocks_.clear();
    blocks_.emplace_back(row, block_of(timetable_, row));
    return blocks_.back().second;
  }

 private:
  const Timetable& timetable_;
  std::vector<std::pair<Row, std::string>> blocks_;
};

// All samples of one metric of one GPU.
void append_series(const Timetable& timetable, Meter& meter, const SimulatedMetric& metric, std::uint32_t gpu,
                   std::string& out) {
  const Options& options = timetable.options();
  const std::uint32_t host = gpu / options.gpus_per_host;
  Blocks blocks(timetable);
  std::vector<Row> rows;
  for (std::int64_t t = first_scrape(timetable, host); t < options.end_milliseconds();
       t += options.interval_milliseconds()) {
    const Exporter exporter = timetable.exporter(host, t);
    if (exporter == Exporter::kDown) continue;
    rows.clear();
    add_rows(meter, timetable, gpu, t, rows);
    const bool instances = timetable.slots()[rows.front().slot].mig_slices > 0;
    if (instances && !metric.on_instances) continue;
    Readings readings;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].has(metric, exporter == Exporter::kUp)) continue;
      if (i == 0 || instances) readings = meter.read(gpu, rows[i].slot, t, metric.group);
      out.append(metric.name).append(blocks.of(rows[i]));
      append_value(metric, value_of(metric, rows[i], readings, timetable, meter, t), out);
      out += ' ';
      append_integer(t, out);
      out += '\n';
    }
  }
}

}  // namespace

std::int64_t first_scrape(const Timetable& timetable, std::uint32_t host) {
  return timetable.options().start_milliseconds() + timetable.scrape_offset(host);
}

std::string Scraper::scrape(std::uint32_t host, std::int64_t t) {
  const Options& options = timetable_.options();
  const Exporter exporter = timetable_.exporter(host, t);
  if (exporter == Exporter::kDown) return {};
  std::vector<Row> rows;
  std::vector<Readings> readings;
  std::vector<std::string> blocks;
  const std::uint32_t first = host * options.gpus_per_host;
  for (std::uint32_t gpu = first; gpu < std::min(first + options.gpus_per_host, options.gpus); ++gpu) {
    const std::size_t before = rows.size();
    add_rows(meter_, timetable_, gpu, t, rows);
    for (std::size_t i = before; i < rows.size(); ++i) {
      const bool again = i > before && timetable_.slots()[rows[i].slot].mig_slices == 0;
      readings.push_back(again ? readings.back() : meter_.read(gpu, rows[i].slot, t));
      blocks.push_back(block_of(timetable_, rows[i]));
    }
  }
  std::string out = head_of(options) + "flopsight_simulated 1\n";
  for (const SimulatedMetric& metric : metrics_of(options)) {
    bool headed = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool instance = timetable_.slots()[rows[i].slot].mig_slices > 0;
      if (!rows[i].has(metric, exporter == Exporter::kUp) || (instance && !metric.on_instances)) continue;
      if (!headed) append_head(metric, out);
      headed = true;
      out.append(metric.name).append(blocks[i]);
      append_value(metric, value_of(metric, rows[i], readings[i], timetable_, meter_, t), out);
      out += '\n';
    }
  }
  return out;
}

base::Status write_history(const Timetable& timetable, const TextSink& sink,
                           const std::function<void(double done_ratio)>& progress) {
  const Options& options = timetable.options();
  std::string text = head_of(options) + "flopsight_simulated 1 ";
  append_integer(options.start_milliseconds(), text);
  text += '\n';
  const auto metrics = metrics_of(options);
  const double all = static_cast<double>(metrics.size()) * options.gpus;
  double done = 0;
  for (const SimulatedMetric& metric : metrics) {
    append_head(metric, text);
    Meter meter(timetable);
    for (std::uint32_t gpu = 0; gpu < options.gpus; ++gpu) {
      append_series(timetable, meter, metric, gpu, text);
      ++done;
      if (text.size() < kPieceBytes) continue;
      FLOPSIGHT_RETURN_IF_ERROR(sink(text));
      text.clear();
      progress(done / all);
    }
  }
  return sink(text);
}

}  // namespace flopsight::simulation
