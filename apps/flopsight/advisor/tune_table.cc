#include <algorithm>

#include "advisor/tune_answer.h"
#include "views/text_table.h"

namespace flopsight::app {
namespace {

namespace text_table = views::text_table;
using text_table::Column;
using text_table::kUnknownCell;
using text_table::number;
using text_table::percent;

constexpr double kGibibyte = 1073741824.0;

void line(std::string& out, std::string_view name, const std::string& value) {
  out += std::string(name) + std::string(name.size() < 24 ? 24 - name.size() : 1, ' ') + value + "\n";
}

bool is_cause(const tuning::PartCompared& part, const tuning::Comparison& c) {
  return std::any_of(c.causes.begin(), c.causes.end(), [&](const tuning::PartCompared& cause) { return cause.part == part.part; });
}

std::string measured_table(const TuneTrainAnswer& answer) {
  if (!answer.measured) return "";
  const MeasuredJob& job = *answer.measured;
  const tuning::Comparison& c = *answer.comparison;
  std::string out = "\nmeasured: job " + text_table::short_name(job.job) + ", " + units::to_rfc3339(job.window.start) + " to " + units::to_rfc3339(job.window.end);
  if (job.coverage_ratio) out += ", " + percent(*job.coverage_ratio) + " of its time seen";
  out += "\n";
  std::vector<Column> columns = {{"share of the time", {}, true}, {"predicted", {}, false}, {"measured", {}, false}, {"difference", {}, false}};
  std::vector<tuning::PartCompared> all = c.parts;
  all.insert(all.end(), c.causes.begin(), c.causes.end());
  for (const tuning::PartCompared& part : all) {
    const auto difference = part.difference_ratio();
    columns[0].cells.push_back((is_cause(part, c) ? "  of them: " : "") + std::string(part.name));
    columns[1].cells.push_back(percent(part.predicted_ratio));
    columns[2].cells.push_back(part.measured_ratio ? percent(*part.measured_ratio) : std::string(kUnknownCell));
    columns[3].cells.push_back(difference ? number(100 * *difference, "%+.1f") : std::string(kUnknownCell));
  }
  out += text_table::render(columns, columns[0].cells.size());
  for (const tuning::PartCompared& part : all) {
    if (part.part == c.out_of_line.value_or("") || part.part == c.out_of_line_cause.value_or("")) out += "out of line: " + std::string(part.name) + "\n";
  }
  if (!c.out_of_line && !c.out_of_line_cause) out += "no part takes more than predicted, beyond what the model is uncertain by\n";
  if (c.step_seconds) out += "measured step " + seconds_text(*c.step_seconds) + (c.is_step_implied ? ", implied by OFU" : "") + "; changes below are predicted with that\n";
  return out;
}

std::string layouts_table(const TuneTrainAnswer& answer) {
  std::string out = "\nquickest layouts of " + std::to_string(answer.layouts_fitting) + " that fit, of " + std::to_string(answer.layouts_tried) + " that divide\n";
  std::vector<Column> columns = {{"layout", {}, true}, {"micro-batch", {}, false}, {"recompute", {}, true}, {"zero", {}, false}, {"step", {}, false}, {"MFU", {}, false}, {"GiB", {}, false}};
  for (const tuning::Found& found : answer.layouts) {
    const tuning::TrainSettings& s = found.settings;
    columns[0].cells.push_back(tuning::layout_text(s.layout));
    columns[1].cells.push_back(std::to_string(s.micro_batch));
    columns[2].cells.emplace_back(tuning::recompute_name(s.recompute));
    columns[3].cells.push_back(std::to_string(s.zero_stage));
    columns[4].cells.push_back(seconds_text(found.step.step_seconds()));
    columns[5].cells.push_back(percent(found.step.mfu_ratio));
    columns[6].cells.push_back(number(found.memory.total_bytes() / kGibibyte, "%.1f"));
  }
  return out + text_table::render(columns, columns[0].cells.size());
}

}  // namespace

std::string seconds_text(double seconds) {
  if (seconds >= 1) return number(seconds, "%.3f s");
  return seconds >= 1e-3 ? number(seconds * 1e3, "%.2f ms") : number(seconds * 1e6, "%.1f us");
}

std::string breakdown_table(const char* head, const tuning::Breakdown& breakdown, const char* whole) {
  std::vector<Column> columns = {{head, {}, true}, {"seconds", {}, false}, {"share", {}, false}};
  const double total = breakdown.total_seconds();
  for (const BreakdownPart& part : breakdown_parts(breakdown)) {
    if (part.seconds == 0) continue;
    columns[0].cells.emplace_back(part.name);
    columns[1].cells.push_back(number(part.seconds, "%.5f"));
    columns[2].cells.push_back(percent(part.seconds / total));
  }
  const std::size_t parts = columns[0].cells.size();
  columns[0].cells.emplace_back(whole);
  columns[1].cells.push_back(number(total, "%.5f"));
  columns[2].cells.push_back(percent(1));
  return "\n" + text_table::render(columns, parts);
}

std::string memory_table(const tuning::Memory& m) {
  std::vector<Column> columns = {{"memory of a GPU", {}, true}, {"GiB", {}, false}};
  const std::pair<const char*, double> parts[] = {{"weights", m.weights_bytes}, {"gradients", m.gradients_bytes}, {"optimizer", m.optimizer_bytes},
                                                  {"activations", m.activations_bytes}, {"KV cache", m.kv_cache_bytes}, {"reserved", m.reserved_bytes}};
  for (const auto& part : parts) {
    if (part.second <= 0) continue;
    columns[0].cells.emplace_back(part.first);
    columns[1].cells.push_back(number(part.second / kGibibyte, "%.2f"));
  }
  const std::size_t rows = columns[0].cells.size();
  columns[0].cells.push_back(m.capacity_bytes ? "of " + number(*m.capacity_bytes / kGibibyte, "%.0f") : "in all");
  columns[1].cells.push_back(number(m.total_bytes() / kGibibyte, "%.2f"));
  std::string out = "\n" + text_table::render(columns, rows);
  if (!m.over().empty()) out += "does not fit: " + m.over() + "\n";
  if (!m.fits()) out += "whether it fits is not known: the catalogue has no memory size of this GPU\n";
  return out;
}

// What makes a run fit has a rate and nothing to compare it with.
std::string gain_text(const tuning::Advice& advice) {
  if (advice.gain_ratio) return number(100 * *advice.gain_ratio, "%+.1f %%");
  return advice.makes_it_fit ? "makes it fit" : "not predicted";
}

std::string advice_table(const tuning::Findings& findings) {
  std::string out = findings.advice.empty() ? "\nno change is predicted to gain anything\n" : "\nwhat to change next (each alone; gains do not add up)\n";
  for (const tuning::Advice& a : findings.advice) {
    out += "  " + gain_text(a) + "  " + a.id + ": " + a.change;
    if (a.usd_saved_per_day) out += number(*a.usd_saved_per_day, ", %.0f USD a day");
    if (!a.gain_ratio && a.tokens_per_second) out += number(*a.tokens_per_second, ", %.0f tokens a second");
    out += " (confidence " + std::string(tuning::confidence_name(a.confidence)) + ")\n";
    if (!a.why.empty()) out += "      why: " + a.why + "\n";
    if (!a.price.empty()) out += "      price: " + a.price + "\n";
    out += "      source: " + a.source + "\n";
  }
  if (!findings.rejected.empty()) out += "\nnot advised\n";
  for (const tuning::Rejected& r : findings.rejected) out += "  " + r.id + ": " + r.change + "\n      " + r.why + "\n";
  return out;
}

std::string train_table(const TuneTrainAnswer& answer) {
  const tuning::TrainSettings& s = answer.settings;
  std::string out;
  line(out, "GPUs", std::to_string(s.gpus) + " x " + answer.gpu + ", " + answer.fabric);
  line(out, "layout", tuning::layout_text(s.layout) + "; " + std::to_string(s.accumulation()) + " micro-batches of " + std::to_string(s.micro_batch) + " x " + std::to_string(s.sequence_tokens) + " tokens");
  line(out, "predicted step", seconds_text(answer.step.step_seconds()) + (answer.memory.fits().value_or(true) ? "" : ", were there the memory for it"));
  line(out, "tokens a second", number(answer.step.tokens_per_second, "%.0f") + ", " + number(answer.step.tokens_per_second / static_cast<double>(s.gpus), "%.0f") + " on a GPU");
  line(out, "MFU", percent(answer.step.mfu_ratio) + " of the dense " + std::string(catalog::precision_name(s.precision)) + " peak");
  line(out, "attainable OFU", percent(answer.step.attainable_ofu_ratio));
  out += breakdown_table("where a step's time goes", answer.step.breakdown, "step") + memory_table(answer.memory);
  out += measured_table(answer);
  if (answer.arguments.search) out += layouts_table(answer);
  out += advice_table(answer.findings) + "\n";
  for (const std::string& assumption : answer.assumptions) out += "assumed: " + assumption + "\n";
  return out;
}

}  // namespace flopsight::app
