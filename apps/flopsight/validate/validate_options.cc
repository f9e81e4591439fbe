#include "validate/validate_options.h"

#include <charconv>
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/text.h"
#include "new_files.h"
#include "units/time.h"

namespace flopsight::app {
namespace {

using Wrong = std::optional<std::string>;

template <typename Number>
std::optional<Number> whole(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Wrong set_duration(const char* option, const std::string& text, double least, double most, units::Seconds& out) {
  const auto duration = units::parse_duration(text);
  if (!duration || duration->value < least || duration->value > most) {
    return std::string(option) + " " + base::printable(text, 40) + ": expected a duration such as 3s or 100ms, from " + base::json::number_text(least) + " to " +
           base::json::number_text(most) + " seconds";
  }
  out = *duration;
  return std::nullopt;
}

Wrong set_sweep(ValidateArguments& a, const ValidateTexts& t) {
  for (const std::string& name : t.precisions) {
    const auto precision = catalog::find_precision(name);
    if (!precision || !gemm::is_tensor_precision(*precision)) {
      return "--precision " + base::printable(name, 40) + ": expected a format of tensor cores: fp64_tc, tf32, fp16, bf16, fp8 or fp4";
    }
    a.sweep.precisions.push_back(*precision);
  }
  if (!t.sizes.empty()) {
    const auto parts = base::split(t.sizes, ':');
    const auto low = whole<std::uint64_t>(parts.front()), high = whole<std::uint64_t>(parts.back());
    if (parts.size() != 2 || !low || !high || *low < validation::kSizeMin || *high > validation::kSizeMax || *low > *high) {
      return "--sizes " + base::printable(t.sizes, 40) + ": expected LEAST:MOST, from " + std::to_string(validation::kSizeMin) + " to " +
             std::to_string(validation::kSizeMax) + ", such as 128:16384";
    }
    a.sweep.size_min = *low;
    a.sweep.size_max = *high;
  }
  if (t.unaligned) {
    if (*t.unaligned < 0 || *t.unaligned > 1000) return "--unaligned " + std::to_string(*t.unaligned) + ": expected 0 to 1000";
    a.sweep.unaligned_count = static_cast<std::uint64_t>(*t.unaligned);
  }
  if (!t.durations.empty()) a.sweep.durations.clear();
  for (const std::string& text : t.durations) {
    units::Seconds duration{0};
    if (auto wrong = set_duration("--seconds", text, 0.1, 3600, duration)) return wrong;
    a.sweep.durations.push_back(duration);
  }
  if (!t.seed.empty()) {
    const auto seed = whole<std::uint64_t>(t.seed);
    if (!seed) return "--seed " + base::printable(t.seed, 40) + ": expected a whole number from 0 to 18446744073709551615";
    a.sweep.seed = *seed;
  }
  return std::nullopt;
}

Wrong set_counters(ValidateArguments& a, const ValidateTexts& t) {
  if (a.simulated && !a.exporter.empty()) return "--simulated has its own counters: --exporter does not go with it";
  if (a.simulated && a.gpu.empty()) return "--simulated needs --gpu: the name of a GPU; there is no default";
  if (!a.simulated && !a.gpu.empty()) return "--gpu belongs to --simulated; a real GPU says its name";
  if (a.simulated && (!a.libraries.driver.empty() || !a.libraries.cublaslt.empty() || !a.nvml_library.empty() || a.gpu_index != 0)) {
    return "--cuda-library, --cublaslt-library, --nvml-library and --gpu-index belong to a real GPU";
  }
  if (!a.exporter.empty() && !a.nvml_library.empty()) return "--exporter and --nvml-library exclude each other";
  if (a.gpu_index < 0 || a.gpu_index > 1023) return "--gpu-index " + std::to_string(a.gpu_index) + ": expected 0 to 1023";
  // DCGM reads every 30 s by dcgm-exporter's default, NVML refreshes its clocks every sixth of a second or so.
  a.interval = units::Seconds(!a.exporter.empty() ? 30 : a.simulated ? 1 : 0.2);
  if (!t.interval.empty()) {
    if (auto wrong = set_duration("--interval", t.interval, 0.01, 600, a.interval)) return wrong;
  }
  if (t.settle == "0") {
    a.settle = units::Seconds(0);
  } else if (!t.settle.empty()) {
    if (auto wrong = set_duration("--settle", t.settle, 0.001, 600, a.settle)) return wrong;
  }
  return set_http(a, t);
}

}  // namespace

void add_validate(CLI::App& app, ValidateArguments& a, ValidateTexts& t) {
  app.add_flag("--simulated", a.simulated, "on a GPU that does not exist, whose tiles and clocks are known; everything says SIMULATED")->group("GPU");
  app.add_option("--gpu", a.gpu, "with --simulated: the GPU by its name")->group("GPU");
  app.add_option("--gpu-index", a.gpu_index, "which GPU of this machine, as CUDA numbers them (default: 0)")->group("GPU");
  app.add_option("--exporter", a.exporter, "counters from the dcgm-exporter at this URL instead of NVML")->group("Counters");
  app.add_option("--interval", t.interval, "between readings (default: 200ms; with --exporter its collection interval, 30s; with --simulated 1s)")->group("Counters");
  app.add_option("--precision", t.precisions, "fp64_tc|tf32|fp16|bf16|fp8|fp4; may be repeated (default: all that the GPU has)")->group("Products");
  app.add_option("--sizes", t.sizes, "LEAST:MOST of every side (default: 128:16384)")->group("Products");
  app.add_option("--unaligned", t.unaligned, "sizes that are no multiples of 128, for each precision (default: 12)")->group("Products");
  app.add_option("--seconds", t.durations, "how long each product runs; may be repeated (default: 3s)")->group("Products");
  app.add_option("--settle", t.settle, "before time counts (default: 1s)")->group("Products");
  app.add_option("--seed", t.seed, "of the unaligned sizes, and of a simulated GPU (default: 1)")->group("Products");
  app.add_option("--out", a.out, std::string("write points.csv, scatter.svg and summary.json into this folder").append(kFoldersAreMade))->group("Where to");
  app.add_flag("--force", a.force, "with --out: replace files that are there")->group("Where to");
  app.add_option("--format", t.format, "table|json")->capture_default_str()->group("Where to");
  app.add_option("--cuda-library", a.libraries.driver, "the CUDA driver's library (default: libcuda.so.1)")->group("Libraries");
  app.add_option("--cublaslt-library", a.libraries.cublaslt, "cublasLt's library (default: libcublasLt.so.13, .12 or .11)")->group("Libraries");
  app.add_option("--nvml-library", a.nvml_library, "NVML's library (default: libnvidia-ml.so.1)")->group("Libraries");
  app.add_option("--gpu-catalog", a.catalog_path, "CSV rows that add to or replace the GPU catalogue");
  app.add_flag("--quiet", a.quiet, "no progress on the terminal");
  add_http(app, a, t);
}

Wrong set_validate(ValidateArguments& a, const ValidateTexts& t) {
  if (t.format != "table" && t.format != "json") return "--format " + base::printable(t.format, 40) + ": expected table or json";
  a.json = t.format == "json";
  if (a.force && a.out.empty()) return "--force needs --out";
  if (auto wrong = set_sweep(a, t)) return wrong;
  return set_counters(a, t);
}

}  // namespace flopsight::app
