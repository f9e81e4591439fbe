#include "gemm/tile.h"

#include "base/text.h"

namespace flopsight::gemm {
namespace {

using base::Error;
using base::ErrorCode;

std::uint64_t tiles(std::uint64_t size, std::uint64_t tile) { return (size + tile - 1) / tile; }

base::Status check_dimension(const char* name, std::uint64_t value) {
  if (value == 0) return Error{ErrorCode::kInvalid, std::string(name) + " 0: expected 1 or more"};
  if (value > kDimensionMax) {
    return Error{ErrorCode::kLimit, std::string(name) + " " + std::to_string(value) + ": expected at most " + std::to_string(kDimensionMax)};
  }
  return {};
}

std::optional<std::uint64_t> tile_side(std::string_view text) {
  const auto value = base::parse_number(text);
  if (!value || text.find_first_not_of("0123456789") != std::string_view::npos || *value < 1 || *value > static_cast<double>(kTileMax)) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

}  // namespace

std::string tile_text(const Tile& tile) {
  std::string out = std::to_string(tile.m) + "x" + std::to_string(tile.n);
  if (tile.k > 0) out += "x" + std::to_string(tile.k);
  return out;
}

base::Status check_shape(const Shape& shape) {
  FLOPSIGHT_RETURN_IF_ERROR(check_dimension("m", shape.m));
  FLOPSIGHT_RETURN_IF_ERROR(check_dimension("n", shape.n));
  FLOPSIGHT_RETURN_IF_ERROR(check_dimension("k", shape.k));
  return check_dimension("batch", shape.batch);
}

base::Result<Tile> parse_tile(std::string_view text) {
  const Error mistake{ErrorCode::kInvalid, "tile " + base::printable(text, 40) + ": expected MxN or MxNxK, each 1 to " + std::to_string(kTileMax) +
                                               ", or cublaslt:ID with an ID of 1 to 634"};
  constexpr std::string_view kId = "cublaslt:";
  if (text.starts_with(kId)) {
    const auto id = tile_side(text.substr(kId.size()));
    const auto tile = id ? tile_of_cublaslt_id(static_cast<int>(*id)) : std::nullopt;
    if (!tile) return mistake;
    return *tile;
  }
  const auto parts = base::split(text, 'x');
  if (parts.size() < 2 || parts.size() > 3) return mistake;
  Tile tile;
  std::uint64_t* const sides[] = {&tile.m, &tile.n, &tile.k};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto side = tile_side(parts[i]);
    if (!side) return mistake;
    *sides[i] = *side;
  }
  return tile;
}

base::Result<Quantized> quantize(const Shape& shape, const Tile& tile, std::optional<int> sm_count, std::uint64_t splits) {
  FLOPSIGHT_RETURN_IF_ERROR(check_shape(shape));
  if (tile.m == 0 || tile.n == 0 || tile.m > kTileMax || tile.n > kTileMax || tile.k > kTileMax) {
    return Error{ErrorCode::kInvalid, "tile " + tile_text(tile) + ": expected sides of 1 to " + std::to_string(kTileMax)};
  }
  if (splits == 0) return Error{ErrorCode::kInvalid, "k split in 0 parts: expected 1 or more"};
  const std::uint64_t down = tiles(shape.m, tile.m), across = tiles(shape.n, tile.n);
  const std::uint64_t deep = tile.k > 0 ? tiles(shape.k, tile.k) * tile.k : shape.k;
  const std::uint64_t each = down * across;  // below 2^62
  if (each > kCtasMax / shape.batch / splits) return Error{ErrorCode::kLimit, "more than 2^53 tiles"};
  Quantized out;
  const auto real = [](std::uint64_t n) { return static_cast<double>(n); };
  out.theoretical_flops = 2.0 * real(shape.batch) * real(shape.m) * real(shape.n) * real(shape.k);
  out.executed_flops = 2.0 * real(shape.batch) * real(down * tile.m) * real(across * tile.n) * real(deep);
  out.ctas = each * shape.batch;
  if (sm_count && *sm_count > 0) {
    const auto sms = static_cast<std::uint64_t>(*sm_count);
    const std::uint64_t waves = tiles(out.ctas * splits, sms);
    out.waves = Waves{waves, real(out.ctas * splits) / (real(waves) * real(sms))};
  }
  return out;
}

double element_bytes(catalog::Precision precision) {
  using catalog::Precision;
  switch (precision) {
    case Precision::kFp64:
    case Precision::kFp64Tensor: return 8;
    case Precision::kFp32:
    case Precision::kTf32: return 4;
    case Precision::kFp16:
    case Precision::kBf16: return 2;
    case Precision::kFp8:
    case Precision::kInt8: return 1;
    case Precision::kFp6: return 0.75;
    case Precision::kFp4: return 0.5;
  }
  return 0;
}

bool is_tensor_precision(catalog::Precision precision) {
  return precision != catalog::Precision::kFp32 && precision != catalog::Precision::kFp64;
}

}  // namespace flopsight::gemm
