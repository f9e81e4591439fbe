#include "flopcount/flops_answer.h"
#include "views/text_table.h"

namespace flopsight::app {
namespace {

namespace text_table = views::text_table;
using flops::Part;
using text_table::Column;
using text_table::number;
using text_table::percent;

std::string gigaflops(double flops_of) { return number(flops_of / 1e9, "%.3f"); }
// "8 030 261 248".
std::string grouped(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
  return digits;
}

void line(std::string& out, std::string_view name, const std::string& value) {
  out += std::string(name) + std::string(name.size() < 22 ? 22 - name.size() : 1, ' ') + value + "\n";
}

std::string head(const FlopsAnswer& answer) {
  std::string out;
  const flops::Parameters& p = answer.parameters;
  line(out, "model type", answer.model.model_type);
  line(out, "parameters", grouped(p.total) + (p.vision > 0 && answer.has_text ? ", " + grouped(p.vision) + " of them vision" : ""));
  if (!answer.has_text) return out;
  if (p.active != p.text()) line(out, "active for a token", grouped(p.active));
  line(out, "embedding", grouped(p.embedding));
  if (p.prediction > 0) line(out, "multi-token prediction", grouped(p.prediction) + " parameters beside these");
  if (answer.adapter_parameters > 0) line(out, "adapters", grouped(answer.adapter_parameters) + " parameters, trained");
  line(out, "sequence", grouped(answer.workload.sequence.tokens) + " tokens");
  const flops::Cache& cache = answer.cache;
  if (cache.elements_per_token > 0) {
    line(out, "cache", grouped(cache.elements_per_token * 2) + " bytes for a token" +
                           (cache.elements_per_token_growing != cache.elements_per_token ? ", " + grouped(cache.elements_per_token_growing * 2) + " beyond the windows" : ""));
  }
  if (cache.state_elements_per_sequence > 0) line(out, "recurrent state", grouped(cache.state_elements_per_sequence * 2) + " bytes for a sequence");
  return out;
}

std::string conventions(const FlopsAnswer& answer) {
  std::vector<Column> columns = {{"convention", {}, true}, {"forward", {}, false}, {"train", {}, false}, {"of audit", {}, false}, {"what it counts", {}, true}};
  const double audit = answer.train.total();
  for (const ConventionRow& row : answer.conventions) {
    columns[0].cells.emplace_back(row.convention->name);
    columns[1].cells.push_back(row.cost.flops_forward ? gigaflops(*row.cost.flops_forward) : std::string(text_table::kUnknownCell));
    columns[2].cells.push_back(row.cost.flops_train ? gigaflops(*row.cost.flops_train) : std::string(text_table::kUnknownCell));
    columns[3].cells.push_back(row.cost.flops_train && audit > 0 ? number(*row.cost.flops_train / audit, "%.3f") : std::string(text_table::kUnknownCell));
    columns[4].cells.push_back(row.cost.absent_reason.empty() ? std::string(row.convention->counts) : row.cost.absent_reason);
  }
  return "\nGFLOPs per token\n" + text_table::render(columns, columns[0].cells.size());
}

std::string parts(const FlopsAnswer& answer) {
  std::vector<Column> columns = {{"where", {}, true}, {"forward", {}, false}, {"train", {}, false}, {"share", {}, false}};
  const double total = answer.train.total();
  for (std::size_t i = 0; i < flops::kPartCount; ++i) {
    const Part part = static_cast<Part>(i);
    if (answer.forward.of(part) <= 0) continue;
    columns[0].cells.emplace_back(flops::part_name(part));
    columns[1].cells.push_back(gigaflops(answer.forward.of(part)));
    columns[2].cells.push_back(gigaflops(answer.train.of(part)));
    columns[3].cells.push_back(percent(answer.train.of(part) / total));
  }
  return "\n" + text_table::render(columns, columns[0].cells.size());
}

std::string layers(const FlopsAnswer& answer) {
  std::vector<Column> columns = {{"layer", {}, true}, {"section", {}, true}, {"count", {}, false}, {"parameters", {}, false}, {"forward", {}, false}, {"per image", {}, false}};
  for (const flops::Layer& layer : answer.model.layers) {
    const bool vision = layer.section == flops::Section::kVision;
    const std::string forward = gigaflops(layer_forward_flops(answer, layer));
    columns[0].cells.emplace_back(flops::layer_kind_name(layer.kind));
    columns[1].cells.emplace_back(flops::section_name(layer.section));
    columns[2].cells.push_back(std::to_string(layer.executed));
    columns[3].cells.push_back(grouped(layer.stored * flops::layer_parameters(layer)));
    columns[4].cells.push_back(vision ? std::string(text_table::kUnknownCell) : forward);
    columns[5].cells.push_back(vision ? forward : std::string(text_table::kUnknownCell));
  }
  text_table::drop_unknown(columns, 4);
  return "\n" + text_table::render(columns, columns[0].cells.size());
}

}  // namespace

std::string flops_table(const FlopsAnswer& answer) {
  std::string out = head(answer);
  if (answer.has_text) out += conventions(answer) + parts(answer);
  out += layers(answer);
  if (answer.vision_forward_per_image) {
    const flops::VisionInput& image = *answer.model.vision;
    out += "\nvision: " + gigaflops(answer.vision_forward_per_image->total()) + " GFLOPs forward for an image of " + image.image +
           (image.text_tokens > 0 ? ", " + std::to_string(image.text_tokens) + " tokens of text" : "") + "\n";
  }
  if (answer.recompute != flops::Recompute::kNone && answer.has_text) {
    out += "\nexecuted with recomputation: " + gigaflops(answer.executed.total()) + " GFLOPs per token, " + number(answer.executed.total() / answer.train.total(), "%.3f") + " of the model's\n";
  }
  out += "\n";
  for (const std::string& assumption : answer.assumptions) out += "assumed: " + assumption + "\n";
  return out;
}

}  // namespace flopsight::app
