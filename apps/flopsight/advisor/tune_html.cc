#include "advisor/tune_html.h"

#include <array>
#include "base/html.h"
#include "base/text.h"
#include "views/text_table.h"

namespace flopsight::app {
namespace {

using views::text_table::number;

constexpr double kGibibyte = 1073741824.0;
constexpr double kBarWidth = 860;
constexpr double kBarHeight = 36;
constexpr double kLegendRow = 20;
// Colours that people with colour-vision deficiencies tell apart (Okabe and Ito 2008), and two greys.
constexpr std::array<std::string_view, 9> kColours = {"#0072b2", "#56b4e9", "#e69f00", "#f0e442", "#cc79a7", "#d55e00", "#999999", "#009e73", "#555555"};

constexpr std::string_view kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;color:#222}"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:1.8rem}table{border-collapse:collapse}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}"
    "td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.why{color:#555;font-size:.92em}.over{color:#b00020;font-weight:600}";

std::string html_escaped(std::string_view text) { return base::html_escaped(base::printable(text, 4000)); }

std::string bar(const std::vector<BreakdownPart>& parts) {
  double total = 0;
  std::size_t shown = 0;
  for (const BreakdownPart& part : parts) {
    total += part.seconds;
    shown += part.seconds > 0 ? 1 : 0;
  }
  if (total <= 0) return "";
  const double height = kBarHeight + 12 + kLegendRow * static_cast<double>(shown);
  std::string out = "<svg role=\"img\" aria-label=\"share of each part\" viewBox=\"0 0 " + number(kBarWidth, "%.0f") + " " + number(height, "%.0f") + "\" width=\"100%\">";
  double x = 0, y = kBarHeight + 24;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BreakdownPart& part = parts[i];
    if (part.seconds <= 0) continue;
    const double width = kBarWidth * part.seconds / total;
    const std::string colour(kColours[i % kColours.size()]), share = number(100 * part.seconds / total, "%.1f %%");
    const std::string said = html_escaped(part.name) + ": " + seconds_text(part.seconds) + ", " + share;
    out += "<rect x=\"" + number(x, "%.2f") + "\" y=\"0\" width=\"" + number(width, "%.2f") + "\" height=\"" + number(kBarHeight, "%.0f") + "\" fill=\"" + colour + "\"><title>" + said + "</title></rect>";
    out += "<rect x=\"0\" y=\"" + number(y - 11, "%.0f") + "\" width=\"12\" height=\"12\" fill=\"" + colour + "\"/><text x=\"20\" y=\"" + number(y, "%.0f") + "\" font-size=\"14\">" + said + "</text>";
    x += width;
    y += kLegendRow;
  }
  return out + "</svg>\n";
}

std::string memory_rows(const tuning::Memory& m) {
  std::string out = "<table><tr><th>memory of a GPU</th><th class=\"n\">GiB</th></tr>";
  const std::pair<const char*, double> parts[] = {{"weights", m.weights_bytes}, {"gradients", m.gradients_bytes}, {"optimizer", m.optimizer_bytes},
                                                  {"activations", m.activations_bytes}, {"KV cache", m.kv_cache_bytes}, {"reserved", m.reserved_bytes}, {"in all", m.total_bytes()}};
  for (const auto& part : parts) {
    if (part.second > 0) out += std::string("<tr><td>") + part.first + "</td><td class=\"n\">" + number(part.second / kGibibyte, "%.2f") + "</td></tr>";
  }
  out += "</table>";
  if (!m.over().empty()) out += "<p class=\"over\">Does not fit: " + html_escaped(m.over()) + "</p>";
  return out;
}

std::string advice_rows(const tuning::Findings& findings) {
  if (findings.advice.empty()) return "<p>No change is predicted to gain anything.</p>";
  std::string out = "<table><tr><th class=\"n\">gain</th><th>change</th><th class=\"n\">USD a day</th><th>confidence</th></tr>";
  for (const tuning::Advice& a : findings.advice) {
    out += "<tr><td class=\"n\">" + gain_text(a) + "</td><td><strong>" + html_escaped(a.id) + "</strong>: " +
           html_escaped(a.change) + "<div class=\"why\">" + html_escaped(a.why) + (a.price.empty() ? "" : "<br>Price: " + html_escaped(a.price)) + "<br>Source: " + html_escaped(a.source) +
           "</div></td><td class=\"n\">" + (a.usd_saved_per_day ? number(*a.usd_saved_per_day, "%.0f") : std::string("-")) + "</td><td>" + std::string(tuning::confidence_name(a.confidence)) + "</td></tr>";
  }
  return out + "</table>";
}

}  // namespace

std::string html_page(const HtmlPage& page) {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>" + html_escaped(page.title) +
                    "</title><style>" + std::string(kStyle) + "</style></head><body>\n<h1>" + html_escaped(page.title) + "</h1>\n<table>";
  for (const auto& fact : page.facts) out += "<tr><td>" + html_escaped(fact.first) + "</td><td>" + html_escaped(fact.second) + "</td></tr>";
  out += "</table>\n";
  if (!page.parts.empty()) out += "<h2>" + html_escaped(page.parts_title) + "</h2>\n" + bar(page.parts);
  out += "<h2>Memory</h2>\n" + memory_rows(page.memory);
  out += "\n<h2>What to change next</h2>\n<p class=\"why\">Each alone; gains do not add up. Predicted by a model, not measured.</p>\n" + advice_rows(*page.findings);
  if (!page.findings->rejected.empty()) {
    out += "\n<h2>Not advised</h2>\n<ul>";
    for (const tuning::Rejected& r : page.findings->rejected) out += "<li><strong>" + html_escaped(r.id) + "</strong>: " + html_escaped(r.change) + ". " + html_escaped(r.why) + "</li>";
    out += "</ul>";
  }
  out += "\n<h2>Assumed</h2>\n<ul>";
  for (const std::string& assumption : page.assumptions) out += "<li>" + html_escaped(assumption) + "</li>";
  return out + "</ul>\n</body></html>\n";
}

std::string train_html(const TuneTrainAnswer& answer) {
  const tuning::TrainSettings& s = answer.settings;
  HtmlPage page;
  page.title = "Predicted training step: " + answer.arguments.config_path;
  page.facts = {{"GPUs", std::to_string(s.gpus) + " x " + answer.gpu + ", " + answer.fabric},
                {"layout", tuning::layout_text(s.layout) + "; " + std::to_string(s.accumulation()) + " micro-batches of " + std::to_string(s.micro_batch) + " x " + std::to_string(s.sequence_tokens) + " tokens"},
                {"step", seconds_text(answer.step.step_seconds()) + (answer.memory.fits().value_or(true) ? "" : ", were there the memory for it")},
                {"tokens a second", number(answer.step.tokens_per_second, "%.0f")},
                {"MFU", number(100 * answer.step.mfu_ratio, "%.1f %%") + " of the dense " + std::string(catalog::precision_name(s.precision)) + " peak"},
                {"attainable OFU", number(100 * answer.step.attainable_ofu_ratio, "%.1f %%")}};
  if (answer.comparison) {
    std::vector<tuning::PartCompared> all = answer.comparison->parts;
    all.insert(all.end(), answer.comparison->causes.begin(), answer.comparison->causes.end());
    for (const tuning::PartCompared& part : all) {
      page.facts.emplace_back(part.name, number(100 * part.predicted_ratio, "%.1f %%") + " predicted, " + (part.measured_ratio ? number(100 * *part.measured_ratio, "%.1f %%") + " measured" : std::string("not measured")));
    }
  }
  page.parts = breakdown_parts(answer.step.breakdown);
  page.parts_title = "Where a step's time goes";
  page.memory = answer.memory;
  page.findings = &answer.findings;
  page.assumptions = answer.assumptions;
  return html_page(page);
}

}  // namespace flopsight::app
