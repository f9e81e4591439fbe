#pragma once
// What `flopsight gemm` says, before it is written down as a table or JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gemm/attainable.h"
#include "tiles/gemm_options.h"
#include "gemm/suggest.h"
#include "gemm/tile_choice.h"
#include "gemm/trace.h"
#include "units/units.h"

namespace flopsight::app {

struct GemmRow {
  gemm::Shape shape;
  std::uint64_t count = 1;
  std::string what;  // "attention query+key+value", or the kernel of a trace
  std::string pass;  // empty where it is not known
  gemm::Tile tile;
  std::string tile_source;  // "given", "kernel_name", "modelled"
  std::uint64_t splits = 1;  // of k
  gemm::Quantized quantized;  // of one
  std::optional<gemm::Suggestion> suggestion;
  std::optional<double> swapped_overhead_ratio;  // with the tile the other way, where that differs and nothing says which way it lies
  std::optional<units::Seconds> time;            // in a trace
  // Time lost to tiles and waves, in units of the useful time of one FLOP: for ordering.
  double lost_flops() const { return static_cast<double>(count) * quantized.theoretical_flops * (1 / quantized.efficiency_ratio() - 1); }
};

struct GemmAnswer {
  GemmArguments::Source source = GemmArguments::Source::kShape;
  std::string gpu;  // of the catalogue; else as a trace calls it; empty: not known
  std::optional<int> sm_count;
  std::optional<catalog::Precision> precision;
  std::vector<GemmRow> rows;  // worst first
  double theoretical_flops = 0;  // of all
  double executed_flops = 0;
  double occupied_flops = 0;  // executed, over the wave efficiency: what the SMs could have done meanwhile
  bool modelled = false;      // some tile is
  std::optional<gemm::ChoiceAccuracy> accuracy;
  std::optional<units::FlopsPerSecond> predicted;  // one product: the rate that it can reach
  std::optional<gemm::TraceSummary> trace;
  std::vector<gemm::RateCheck> rates;
  std::string attached;  // to which job; empty: to none
  std::vector<std::string> assumptions;

  std::optional<double> overhead_ratio() const { return theoretical_flops > 0 ? std::optional<double>(executed_flops / theoretical_flops) : std::nullopt; }
};

// Errors: of files, and of options that do not fit each other.
base::Result<GemmAnswer> gemm_answer(const GemmArguments& arguments);

std::string gemm_json(const GemmAnswer& answer);
std::string gemm_table(const GemmAnswer& answer, std::uint64_t rows_max);

}  // namespace flopsight::app
