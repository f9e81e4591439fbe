#include "tiles/gemm_options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"

namespace flopsight::app {
namespace {

constexpr std::uint64_t kParallelMax = 1 << 20;
constexpr std::uint64_t kTopMax = 1'000'000;

std::optional<std::string> set_side(const char* name, const std::optional<std::int64_t>& value, std::uint64_t& side) {
  if (!value) return std::nullopt;
  if (*value < 1 || static_cast<std::uint64_t>(*value) > gemm::kDimensionMax) {
    return std::string(name) + " " + std::to_string(*value) + ": expected 1 to " + std::to_string(gemm::kDimensionMax);
  }
  side = static_cast<std::uint64_t>(*value);
  return std::nullopt;
}

std::optional<std::string> set_source(GemmArguments& a, const GemmTexts& t) {
  const bool shape = t.m || t.n || t.k || t.batch;
  const int sources = (shape ? 1 : 0) + (a.config_path.empty() ? 0 : 1) + (a.trace_path.empty() ? 0 : 1) + (a.measured_path.empty() ? 0 : 1);
  if (sources != 1) return "expected one of --m, --n and --k, --config, --trace or --measured";
  using Source = GemmArguments::Source;
  a.source = shape ? Source::kShape : !a.config_path.empty() ? Source::kModel : !a.trace_path.empty() ? Source::kTrace : Source::kMeasured;
  if (shape && (!t.m || !t.n || !t.k)) return "--m, --n and --k go together";
  if (a.source == Source::kModel && !t.tokens) return "--config needs --tokens";
  if (a.source != Source::kTrace && a.gpu.empty()) return "--gpu: expected the name of a GPU; there is no default";
  const bool named = a.source == Source::kShape || a.source == Source::kModel;
  if (named && !a.precision) return "--precision: expected fp64_tc, tf32, fp16, bf16, fp8, fp6, int8 or fp4";
  if (!named && a.precision) return std::string("--precision belongs to --m, --n, --k or --config: ") + (a.source == Source::kTrace ? "a kernel's name says it" : "the file says it");
  if (!named && (a.tile || !a.kernel.empty())) return "--tile and --kernel belong to --m, --n, --k or --config";
  if (a.tile && !a.kernel.empty()) return "--tile and --kernel exclude each other";
  return std::nullopt;
}

std::optional<std::string> check_belongings(const GemmArguments& a, const GemmTexts& t) {
  using Source = GemmArguments::Source;
  const bool of_model = t.tokens || a.tensor_parallel != 1 || a.expert_parallel != 1 || a.backward || a.unfused || !a.ignored_keys.empty();
  if (of_model && a.source != Source::kModel) return "--tokens, --tp, --ep, --backward, --unfused and --ignore-key need --config";
  if (a.attach && a.source != Source::kTrace && a.source != Source::kModel) return "--attach needs --trace or --config";
  if (a.attach && (a.store_path.empty() || a.job.empty())) return "--attach needs --store and --job";
  if (!a.attach && (!a.store_path.empty() || !a.job.empty() || !a.name_space.empty())) return "--store, --job and --namespace need --attach";
  return std::nullopt;
}

}  // namespace

void add_gemm(CLI::App& app, GemmArguments& a, GemmTexts& t) {
  app.add_option("--m", t.m, "rows of C (tokens)")->group("One product");
  app.add_option("--n", t.n, "columns of C (outputs)")->group("One product");
  app.add_option("--k", t.k, "the dimension that is summed over (inputs)")->group("One product");
  app.add_option("--batch", t.batch, "products of one launch (default: 1)")->group("One product");
  app.add_option("--config", a.config_path, "the products of a model: its config.json, a folder that has one, or -")->group("A model");
  app.add_option("--tokens", t.tokens, "tokens of a GPU's micro-batch: batch x sequence length")->group("A model");
  app.add_option("--tp", a.tensor_parallel, "tensor-parallel GPUs (default: 1)")->check(CLI::Range(std::uint64_t{1}, kParallelMax))->group("A model");
  app.add_option("--ep", a.expert_parallel, "expert-parallel GPUs (default: 1)")->check(CLI::Range(std::uint64_t{1}, kParallelMax))->group("A model");
  app.add_flag("--backward", a.backward, "gradients as well")->group("A model");
  app.add_flag("--unfused", a.unfused, "query, key and value, and gate and up, as products of their own")->group("A model");
  app.add_option("--ignore-key", a.ignored_keys, "a key of the configuration that is not known here, and leaves the products alone")->group("A model");
  app.add_option("--trace", a.trace_path, "trace of PyTorch's profiler: JSON, plain, gzip or zstd; - is stdin")->group("A trace");
  app.add_flag("--attach", a.attach, "keep the overhead with a job: reports then correct its OFU")->group("A job");
  app.add_option("--store", a.store_path, "with --attach: folder of flopsight serve or import")->group("A job");
  app.add_option("--job", a.job, "with --attach: id or name of the job, as reports have it")->group("A job");
  app.add_option("--namespace", a.name_space, "with --attach: of the job, where reports show one")->group("A job");
  app.add_option("--measured", a.measured_path, "CSV of measured rates (m,n,k,precision,tflops) beside what is predicted")->group("Measurements");
  app.add_option("--precision", t.precision, "fp64_tc|tf32|fp16|bf16|fp8|fp6|int8|fp4");
  app.add_option("--gpu", a.gpu, "a GPU by its name; with --trace: instead of what the trace says");
  app.add_option("--tile", t.tile, "MxN or MxNxK along m, n, k, or cublaslt:ID");
  app.add_option("--kernel", a.kernel, "name of a kernel, which the tile is read from");
  app.add_option("--gpu-catalog", a.catalog_path, "CSV rows that add to or replace the GPU catalogue");
  app.add_option("--top", a.top, "rows of the table, worst first")->check(CLI::Range(std::uint64_t{1}, kTopMax))->capture_default_str();
  app.add_option("--format", t.format, "table|json")->capture_default_str();
}

std::optional<std::string> set_gemm(GemmArguments& a, const GemmTexts& t) {
  if (t.format != "table" && t.format != "json") return "--format " + base::printable(t.format, 40) + ": expected table or json";
  a.json = t.format == "json";
  if (auto mistake = set_side("--m", t.m, a.shape.m)) return mistake;
  if (auto mistake = set_side("--n", t.n, a.shape.n)) return mistake;
  if (auto mistake = set_side("--k", t.k, a.shape.k)) return mistake;
  if (auto mistake = set_side("--batch", t.batch, a.shape.batch)) return mistake;
  if (auto mistake = set_side("--tokens", t.tokens, a.tokens)) return mistake;
  if (!t.precision.empty()) {
    a.precision = catalog::find_precision(t.precision);
    if (!a.precision || !gemm::is_tensor_precision(*a.precision)) {
      return "--precision " + base::printable(t.precision, 40) + ": expected a format of tensor cores: fp64_tc, tf32, fp16, bf16, fp8, fp6, int8 or fp4";
    }
  }
  if (!t.tile.empty()) {
    const auto tile = gemm::parse_tile(t.tile);
    if (!tile.ok()) return "--tile: " + tile.error().message;
    a.tile = *tile;
  }
  if (auto mistake = set_source(a, t)) return mistake;
  return check_belongings(a, t);
}

}  // namespace flopsight::app
