#pragma once
// The options of `flopsight gemm`: registered with the parser and checked, one line for each mistake. Opens no file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/devices.h"
#include "gemm/tile.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct GemmArguments {
  enum class Source { kShape, kModel, kTrace, kMeasured };
  Source source = Source::kShape;
  gemm::Shape shape;
  std::optional<catalog::Precision> precision;
  std::string gpu;
  std::optional<gemm::Tile> tile;
  std::string kernel;  // a name that the tile is read from
  std::string config_path;
  std::uint64_t tokens = 0;
  std::uint64_t tensor_parallel = 1;
  std::uint64_t expert_parallel = 1;
  bool backward = false;
  bool unfused = false;
  std::vector<std::string> ignored_keys;
  std::string trace_path;
  std::string measured_path;
  bool attach = false;  // the overhead to a job of a store
  std::string store_path;
  std::string job;
  std::string name_space;
  std::string catalog_path;
  std::uint64_t top = 20;  // rows of the table
  bool json = false;
};

// As text; turned into settings after parsing.
struct GemmTexts {
  std::string precision, tile, format = "table";
  std::optional<std::int64_t> m, n, k, batch, tokens;
};

void add_gemm(CLI::App& app, GemmArguments& arguments, GemmTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_gemm(GemmArguments& arguments, const GemmTexts& texts);

}  // namespace flopsight::app
