#include "command_docs.h"

#include <cstdio>
#include <ostream>

#include "catalog/devices.h"
#include "catalog/metrics.h"
#include "jobs/label_rules.h"
#include "serve/serve_config.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

std::string megahertz(const std::optional<units::Hertz>& clock) {
  if (!clock) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", clock->value / 1e6);
  return text;
}

std::string teraflops(const catalog::Device& device, catalog::Precision precision) {
  const auto peak = device.peak(precision);
  if (!peak) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%g", peak->value / 1e12);
  return text;
}

std::string gpus_markdown() {
  using catalog::Precision;
  std::string out =
      "# GPU catalogue\n\nPrinted by `flopsight docs gpus` from the table in the program, "
      "`src/catalog/gpu_catalog.csv`,\nwhich names the source of each row. Clocks in MHz, dense peaks in "
      "TFLOP/s; empty: not known. The reference\nclock of OFU is the tensor-peak clock.\n\n"
      "| model | SMs | tensor-peak clock | NVML maximum | BF16 | FP8 | confidence | notes |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const catalog::Device& d : catalog::DeviceCatalog::builtin().devices()) {
    out += "| " + d.model + " | " + (d.sm_count ? std::to_string(*d.sm_count) : "") + " | " +
           megahertz(d.tensor_peak_clock) + " | " + megahertz(d.nvml_max_sm_clock) + " | " +
           teraflops(d, Precision::kBf16) + " | " + teraflops(d, Precision::kFp8) + " | " +
           d.confidence + " | " + d.notes + " |\n";
  }
  return out;
}

std::string attribution_markdown() {
  return "# Attribution: whose GPU is it\n\nPrinted by `flopsight docs attribution` from the rules in the "
         "program. `--rules FILE` replaces any list.\nThe first rule whose job label is there and not empty "
         "wins. An empty label is no label.\nPrometheus' own `job` label is the scrape job and never a job "
         "of the fleet.\n\n" +
         jobs::LabelRules::builtin().markdown();
}

}  // namespace

int run_docs(const DocsArguments& arguments, const Env& env) {
  if (arguments.page == "metrics") {
    env.out << catalog::metrics_markdown();
  } else if (arguments.page == "gpus") {
    env.out << gpus_markdown();
  } else if (arguments.page == "attribution") {
    env.out << attribution_markdown();
  } else if (arguments.page == "configuration") {
    env.out << configuration_markdown();
  } else {
    return fail(env, "docs", arguments.page + ": expected metrics, attribution, gpus or configuration");
  }
  return kExitDone;
}

}  // namespace flopsight::app
