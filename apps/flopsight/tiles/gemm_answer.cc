#include "tiles/gemm_answer.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "flopcount/model_file.h"
#include "flops/gemms.h"
#include "gemm/kernel_name.h"
#include "parse_file.h"
#include "serve/log_file.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using catalog::Precision;
using Source = GemmArguments::Source;

constexpr std::uint64_t kTraceBytesMax = std::uint64_t{1} << 38;  // of text, inflated

struct TileOf {
  gemm::Tile tile;
  std::string source;
  std::uint64_t splits = 1;
  bool either_way = false;
};

class Rows {
 public:
  Rows(const GemmArguments& arguments, const catalog::Device& device, GemmAnswer& out) : arguments_(arguments), device_(device), out_(out) {}

  base::Status read_kernel() {
    if (arguments_.kernel.empty()) return {};
    kernel_ = gemm::read_kernel_name(arguments_.kernel);
    if (!kernel_.tile) return Error{ErrorCode::kInvalid, "--kernel " + base::printable(arguments_.kernel, 80) + ": no tile can be read from this name; give it with --tile"};
    if (kernel_.kind == gemm::KernelKind::kCudaCoreGemm) return Error{ErrorCode::kInvalid, "--kernel " + base::printable(arguments_.kernel, 80) + ": does not run on tensor cores, so OFU does not see it"};
    return {};
  }

  base::Status add(const gemm::Shape& shape, std::uint64_t count, std::string what, std::string pass) {
    FLOPSIGHT_RETURN_IF_ERROR(gemm::check_shape(shape));
    const TileOf chosen = tile_of(shape);
    GemmRow row{shape, count, std::move(what), std::move(pass), chosen.tile, chosen.source, chosen.splits, {}, std::nullopt, std::nullopt, std::nullopt};
    FLOPSIGHT_ASSIGN_OR_RETURN(row.quantized, gemm::quantize(shape, chosen.tile, device_.sm_count, chosen.splits));
    if (chosen.either_way) {
      const auto swapped = gemm::quantize(shape, chosen.tile.swapped(), device_.sm_count);
      if (swapped.ok() && swapped->overhead_ratio() != row.quantized.overhead_ratio()) row.swapped_overhead_ratio = swapped->overhead_ratio();
    }
    row.suggestion = gemm::suggest(shape, chosen.tile, *arguments_.precision, [this](const gemm::Shape& near) { return predicted(near); });
    out_.modelled = out_.modelled || chosen.source == "modelled";
    sum(row);
    out_.rows.push_back(std::move(row));
    return {};
  }

 private:
  // A shape near by may get another tile: then both are predicted with their own.
  std::optional<gemm::Prediction> predicted(const gemm::Shape& shape) const {
    const TileOf chosen = tile_of(shape);
    const auto quantized = gemm::quantize(shape, chosen.tile, device_.sm_count, chosen.splits);
    if (!quantized.ok()) return std::nullopt;
    const auto rate = gemm::predicted_rate(shape, chosen.tile, chosen.splits, *arguments_.precision, device_);
    return gemm::Prediction{*quantized, rate.ok() ? std::optional<units::FlopsPerSecond>(*rate) : std::nullopt};
  }

  TileOf tile_of(const gemm::Shape& shape) const {
    if (arguments_.tile) return {*arguments_.tile, "given", 1, true};
    if (kernel_.tile) {
      const bool along_n = kernel_.order != gemm::TileOrder::kFirstAlongM;
      return {along_n ? kernel_.tile->swapped() : *kernel_.tile, "kernel_name", kernel_.splits, true};
    }
    const gemm::ChosenTile chosen = gemm::choose_tile(shape, *arguments_.precision, device_, device_.sm_count);
    return {chosen.tile, "modelled", chosen.splits, false};
  }

  void sum(const GemmRow& row) {
    const double count = static_cast<double>(row.count);
    out_.theoretical_flops += count * row.quantized.theoretical_flops;
    out_.executed_flops += count * row.quantized.executed_flops;
    out_.occupied_flops += count * row.quantized.executed_flops / (row.quantized.waves ? row.quantized.waves->efficiency_ratio : 1.0);
  }

  const GemmArguments& arguments_;
  const catalog::Device& device_;
  GemmAnswer& out_;
  gemm::KernelName kernel_;
};

base::Result<const catalog::Device*> find_device(const catalog::DeviceCatalog& catalog, const std::string& name) {
  for (const catalog::Device& device : catalog.devices()) {
    if (device.model == name) return &device;
  }
  if (const catalog::Device* found = catalog.find_whole(name)) return found;
  return Error{ErrorCode::kNotFound, "--gpu " + catalog.not_found(name) + "; --gpu-catalog adds to it"};
}

base::Status check_precision(const catalog::Device& device, Precision precision) {
  std::string known;
  for (std::size_t i = 0; i < catalog::kPrecisionCount; ++i) {
    const Precision p = static_cast<Precision>(i);
    if (device.peak(p) && gemm::is_tensor_precision(p)) known += (known.empty() ? "" : ", ") + std::string(catalog::precision_name(p));
  }
  if (known.empty() || device.peak(precision)) return {};  // an entry without peaks says nothing of its formats
  return Error{ErrorCode::kInvalid, "--precision " + std::string(catalog::precision_name(precision)) + ": " + device.model + " has tensor peaks for " + known};
}

void say_device(const catalog::Device& device, GemmAnswer& out) {
  out.gpu = device.model;
  out.sm_count = device.sm_count;
  if (!device.sm_count) out.assumptions.push_back("the number of SMs of " + device.model + " is not known: no waves");
}

void say_tiles(const catalog::Device& device, GemmAnswer& out) {
  if (!out.modelled) return;
  out.accuracy = gemm::measured_accuracy(device, *out.precision);
  out.assumptions.emplace_back(out.accuracy ? "tiles are modelled, not known: give --tile or --kernel, or a --trace"
                                            : "tiles are modelled by what cuBLAS did with TF32 on an A100; for this GPU and format that was not measured");
}

std::string what_of(const flops::Gemm& product) {
  std::string out = (product.section == flops::Section::kText ? "" : std::string(flops::section_name(product.section)) + " ") + std::string(flops::layer_kind_name(product.layer));
  for (std::size_t i = 0; i < product.operations.size(); ++i) out += (i == 0 ? " " : "+") + std::string(flops::operation_name(product.operations[i]));
  if (product.expert == flops::Expert::kRouted) out += ", expert";
  if (product.expert == flops::Expert::kShared) out += ", shared expert";
  return out;
}

base::Status add_model(const GemmArguments& arguments, Rows& rows, GemmAnswer& out) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const flops::Model model, read_model_file(arguments.config_path, {arguments.ignored_keys}));
  flops::GemmOptions options;
  options.tokens = arguments.tokens;
  options.tensor_parallel = arguments.tensor_parallel;
  options.expert_parallel = arguments.expert_parallel;
  options.fuse = !arguments.unfused;
  options.backward = arguments.backward;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<flops::Gemm> products, flops::gemms_of(model, options));
  bool routed = false;
  for (const flops::Gemm& product : products) {
    routed = routed || product.expert == flops::Expert::kRouted;
    FLOPSIGHT_RETURN_IF_ERROR(rows.add({product.m, product.n, product.k, 1}, product.count, what_of(product), std::string(flops::pass_name(product.pass))).within(what_of(product)));
  }
  out.assumptions.insert(out.assumptions.end(), model.assumptions.begin(), model.assumptions.end());
  if (!arguments.unfused) out.assumptions.emplace_back("query, key and value are one product, and so are gate and up; --unfused takes them apart");
  if (routed) out.assumptions.emplace_back("every expert gets the mean number of routed tokens, in a product of its own");
  out.assumptions.emplace_back("attention and recurrent cores are not among the products: fused kernels choose their own tiles");
  if (model.vision) out.assumptions.emplace_back("text only: the vision tower is left out");
  return {};
}

base::Result<gemm::TraceSummary> read_trace(const std::string& path, const catalog::DeviceCatalog& catalog, const catalog::Device* device) {
  FLOPSIGHT_ASSIGN_OR_RETURN(LogFile file, LogFile::open(path, true));
  const std::string name = path == "-" ? "standard input" : base::printable(path);
  gemm::TraceReader reader;
  std::uint64_t bytes = 0;
  base::Status status;
  while (true) {
    const auto got = file.read(LogFile::kReadBytes, [&](std::string_view piece) {
      if (!status.ok()) return;
      bytes += piece.size();
      status = bytes > kTraceBytesMax ? base::Status(Error{ErrorCode::kLimit, "over " + std::to_string(kTraceBytesMax) + " bytes of text"}) : reader.feed(piece);
    });
    if (!got.ok()) return got.error();
    if (!status.ok()) return status.error().within(name);
    if (*got == 0) break;
  }
  if (auto end = file.finish(); !end.ok()) return end.error();
  return reader.finish(catalog, device).within(name);
}

void say_trace(const gemm::TraceSummary& trace, bool is_known, GemmAnswer& out) {
  auto& list = out.assumptions;
  list.emplace_back("times are sums over kernels; those that ran side by side count both");
  if (trace.operators > 0 && trace.operators_without_shape == trace.operators) {
    list.emplace_back(trace.operators_with_unusable_shape == 0
                          ? "no operator has its shape: record the trace with record_shapes=True"
                          : "no operator has a shape that can be used: " + std::to_string(trace.operators_with_unusable_shape) + " of " + std::to_string(trace.operators) + " say sizes that are none of a matrix product");
  }
  if (trace.malformed > 0) list.push_back("malformed events are left out: " + std::to_string(trace.malformed) + ", first " + trace.malformed_example);
  if (trace.operators == 0) list.emplace_back("no operator that is a matrix product: the trace has no CPU activity, or other libraries launch the kernels");
  if (!out.sm_count && is_known) list.push_back("the number of SMs of " + out.gpu + " is not known: no waves");
  if (!out.sm_count && !is_known) list.emplace_back("the trace does not name its GPU, or one that is not known: no waves; --gpu names it");
  if (std::any_of(trace.products.begin(), trace.products.end(), [](const gemm::TraceProduct& p) { return p.splits > 1; })) {
    list.emplace_back("k is split where the launch grid is deeper than the batch; what rounding each part costs is not counted");
  }
  if (trace.time[static_cast<std::size_t>(gemm::KernelKind::kAttention)].value > 0) list.emplace_back("attention kernels use tensor cores; their padding is not known and not in the overhead");
  if (trace.impossible > 0) list.push_back(std::to_string(trace.impossible) + " launches are faster than the GPU's peak, so shape or GPU is not theirs: " + trace.impossible_example);
}

base::Status add_trace(const GemmArguments& arguments, const catalog::DeviceCatalog& catalog, const catalog::Device* device, GemmAnswer& out) {
  FLOPSIGHT_ASSIGN_OR_RETURN(out.trace, read_trace(arguments.trace_path, catalog, device));
  const gemm::TraceSummary& trace = *out.trace;
  const catalog::Device* known = device != nullptr ? device : catalog.find(trace.gpu_name);
  out.gpu = known != nullptr ? known->model : trace.gpu_name;
  out.sm_count = trace.sm_count;
  if (const catalog::Device* own = catalog.find(trace.gpu_name); device != nullptr && !trace.gpu_name.empty() && own != device) {
    out.assumptions.push_back(own != nullptr ? "WARNING: the trace is of " + own->model + " and not of --gpu " + device->model + ": its kernels and times are those of the former"
                                             : "the trace calls its GPU " + base::printable(trace.gpu_name, 60) + ", which the catalogue does not know; --gpu " + device->model +
                                                   " is taken for it");
  }
  for (const gemm::TraceProduct& product : trace.products) {
    GemmRow row{product.shape, product.count, product.kernel, "", product.tile, "kernel_name", product.splits, product.quantized, std::nullopt, std::nullopt, product.time};
    if (product.read.precision) row.suggestion = gemm::suggest(product.shape, product.tile, *product.read.precision, gemm::predict_by_tile(product.tile, product.splits, trace.sm_count));
    out.rows.push_back(std::move(row));
  }
  out.theoretical_flops = trace.theoretical_flops;
  out.executed_flops = trace.executed_flops;
  say_trace(trace, known != nullptr, out);
  return {};
}

void order_rows(GemmAnswer& out) {
  if (out.trace) return;  // by time lost, already
  std::stable_sort(out.rows.begin(), out.rows.end(), [](const GemmRow& a, const GemmRow& b) { return a.lost_flops() > b.lost_flops(); });
}

base::Status add_products(const GemmArguments& arguments, const catalog::Device& device, GemmAnswer& out) {
  FLOPSIGHT_RETURN_IF_ERROR(check_precision(device, *arguments.precision));
  say_device(device, out);
  Rows rows(arguments, device, out);
  FLOPSIGHT_RETURN_IF_ERROR(rows.read_kernel());
  if (arguments.source == Source::kModel) {
    FLOPSIGHT_RETURN_IF_ERROR(add_model(arguments, rows, out));
  } else {
    FLOPSIGHT_RETURN_IF_ERROR(rows.add(arguments.shape, 1, "", ""));
    const GemmRow& row = out.rows.front();
    const auto rate = gemm::predicted_rate(row.shape, row.tile, row.splits, *arguments.precision, device);
    if (rate.ok()) out.predicted = *rate;
  }
  say_tiles(device, out);
  if (device.sm_count) out.assumptions.emplace_back("one tile a SM at a time; persistent, split-K and stream-K kernels fill the last wave better");
  return {};
}

}  // namespace

base::Result<GemmAnswer> gemm_answer(const GemmArguments& arguments) {
  catalog::DeviceCatalog own = catalog::DeviceCatalog::builtin();
  if (!arguments.catalog_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(own, parse_file(arguments.catalog_path, &catalog::DeviceCatalog::with_user_rows));
  }
  const catalog::Device* device = nullptr;
  if (!arguments.gpu.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(device, find_device(own, arguments.gpu));
  }
  GemmAnswer out;
  out.source = arguments.source;
  out.precision = arguments.precision;
  if (arguments.source == Source::kTrace) {
    FLOPSIGHT_RETURN_IF_ERROR(add_trace(arguments, own, device, out));
  } else if (arguments.source == Source::kMeasured) {
    say_device(*device, out);
    FLOPSIGHT_ASSIGN_OR_RETURN(const auto rates, parse_file(arguments.measured_path, &gemm::read_measured_rates));
    FLOPSIGHT_ASSIGN_OR_RETURN(out.rates, gemm::check_rates(rates, *device));
  } else {
    FLOPSIGHT_RETURN_IF_ERROR(add_products(arguments, *device, out));
  }
  order_rows(out);
  return out;
}

}  // namespace flopsight::app
