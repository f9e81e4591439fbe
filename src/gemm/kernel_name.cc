#include "gemm/kernel_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/text.h"

namespace flopsight::gemm {
namespace {

using catalog::Precision;

constexpr std::size_t kNameBytesMax = 16384;  // a template's name may be thousands of characters

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }
bool digit(char c) { return c >= '0' && c <= '9'; }

std::string without(std::string_view text, std::string_view word) {
  std::string out;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word)) {
    out += text.substr(0, at);
    text.remove_prefix(at + word.size());
  }
  return out + std::string(text);
}

template <std::size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return has(text, word); });
}

// Numbers joined by 'x' at the start of the text: "128x64x32…"; at most four, nothing out of range.
std::vector<std::uint64_t> read_sides(std::string_view text) {
  std::vector<std::uint64_t> sides;
  while (sides.size() < 4) {
    std::uint64_t value = 0;
    std::size_t length = 0;
    while (length < text.size() && length < 5 && digit(text[length])) value = value * 10 + static_cast<std::uint64_t>(text[length++] - '0');
    if (length == 0 || value == 0 || value > kTileMax || (length < text.size() && digit(text[length]))) break;
    sides.push_back(value);
    text.remove_prefix(length);
    if (!text.starts_with('x')) break;
    text.remove_prefix(1);
  }
  return sides;
}

bool looks_like_sides(std::string_view word) { return has(word, "x") && word.find_first_not_of("0123456789x") == std::string_view::npos; }

// A word that is nothing but numbers joined by 'x', at least two.
std::vector<std::uint64_t> whole_sides(std::string_view word) {
  if (!looks_like_sides(word)) return {};
  const auto sides = read_sides(word);
  return sides.size() >= 2 ? sides : std::vector<std::uint64_t>();
}

std::optional<Tile> tile_of(const std::vector<std::uint64_t>& sides) {
  if (sides.size() < 2 || sides.size() > 3) return std::nullopt;
  return Tile{sides[0], sides[1], sides.size() == 3 ? sides[2] : 0};
}

std::optional<Precision> precision_of_word(std::string_view text) {
  if (has(text, "e4m3") || has(text, "e5m2") || has(text, "fp8")) return Precision::kFp8;
  if (has(text, "e2m1") || has(text, "fp4")) return Precision::kFp4;
  if (has(text, "bf16") || has(text, "bfloat16")) return Precision::kBf16;
  if (has(text, "fp16") || has(text, "_f16") || has(text, "h884gemm") || has(text, "h1688gemm") || has(text, "h16816gemm") || has(text, "half")) return Precision::kFp16;
  if (has(text, "tf32") || has(text, "s1688gemm") || has(text, "f32f32")) return Precision::kTf32;
  if (has(text, "d884gemm") || has(text, "d16816gemm") || has(text, "f64f64")) return Precision::kFp64Tensor;
  if (has(text, "i8i8") || has(text, "i16832gemm") || has(text, "i8816gemm") || has(text, "int8")) return Precision::kInt8;
  return std::nullopt;
}

// nvjet_[smNN_]TYPES_[mma_]MxN[xK]_KxSTAGES_CLUSTER_…_LAYOUTS
KernelName read_nvjet(std::string_view name) {
  KernelName out{KernelKind::kTensorGemm, "nvjet", std::nullopt, TileOrder::kUnknown, std::nullopt, false};
  const auto words = base::split(name, '_');
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!out.tile) {
      const auto sides = whole_sides(word);
      out.tile = tile_of(sides);
      if (!out.tile && looks_like_sides(word)) return out;
      if (out.tile && sides.size() == 2 && i + 1 < words.size()) {
        if (const auto stages = whole_sides(words[i + 1]); stages.size() == 2) out.tile->k = stages[0];
      }
      if (!out.tile && !word.starts_with("sm") && !out.precision) {
        const char type = word.empty() ? ' ' : word[0];  // of A: t BF16, h FP16, q FP8, s FP32 read as TF32
        if (type == 't') out.precision = Precision::kBf16;
        if (type == 'h') out.precision = Precision::kFp16;
        if (type == 'q') out.precision = Precision::kFp8;
        if (type == 's') out.precision = Precision::kTf32;
      }
      continue;
    }
    if (base::to_lower(word) == "splitk") out.split_k = true;
    if (i + 1 == words.size() && word.size() >= 3 && word.find_first_not_of("NT") == std::string::npos) {
      out.order = word[2] == 'T' ? TileOrder::kFirstAlongN : TileOrder::kFirstAlongM;
    }
  }
  return out;
}

// The name of a template instance: CollectiveMma<Policy<…, tuple<cluster>, …>, tuple<tile>, …>.
std::optional<Tile> tile_of_collective(std::string_view name) {
  const std::size_t at = name.find("CollectiveMma<");
  if (at == std::string_view::npos) return std::nullopt;
  name.remove_prefix(at);
  std::vector<std::vector<std::uint64_t>> tuples;
  while (tuples.size() < 2) {
    const std::size_t next = name.find("tuple<");
    if (next == std::string_view::npos) return std::nullopt;
    name.remove_prefix(next + 6);
    std::vector<std::uint64_t> values;
    std::string_view inside = name;
    while (values.size() < 3) {
      const std::size_t open = inside.find_first_not_of(" ,");
      if (open == std::string_view::npos || !inside.substr(open).starts_with("cute::C<")) break;
      inside.remove_prefix(open + 8);
      if (inside.starts_with("(int)")) inside.remove_prefix(5);
      const auto side = read_sides(inside);
      const std::size_t close = inside.find('>');
      if (side.size() != 1 || close == std::string_view::npos) break;
      values.push_back(side[0]);
      inside.remove_prefix(close + 1);
    }
    if (values.size() == 3) tuples.push_back(values);
  }
  return tile_of(tuples[1]);
}

KernelName named(std::string_view family, std::optional<Tile> tile, TileOrder order, std::string_view lower) {
  return {KernelKind::kTensorGemm, family, tile, order, precision_of_word(lower), has(lower, "splitk") || has(lower, "split_k")};
}

// After the first `mark` that sides follow.
std::optional<Tile> sides_after(std::string_view name, std::string_view mark) {
  for (std::size_t at = name.find(mark); at != std::string_view::npos; at = name.find(mark, at + 1)) {
    if (auto tile = tile_of(read_sides(name.substr(at + mark.size())))) return tile;
  }
  return std::nullopt;
}

// Words of the first identifier that holds `mark`: "void cutlass::Kernel<cutlass_80_…>(…)" has the words after "<".
std::vector<std::string> words_around(std::string_view name, std::size_t mark) {
  const auto part = [](char c) { return digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::size_t begin = mark, end = mark;
  while (begin > 0 && part(name[begin - 1])) --begin;
  while (end < name.size() && part(name[end])) ++end;
  return base::split(name.substr(begin, end - begin), '_');
}

// Words such as "s16816gemm": tensor cores have the sizes of their instruction before "gemm", CUDA cores have none ("sgemm").
bool instruction_word(std::string_view word) {
  const std::size_t at = word.find("gemm");
  return at != std::string_view::npos && at > 0 && digit(word[at - 1]);
}

// cuBLAS and CUTLASS 2, which share the form …gemm…_MxN_…: k is in the word after, "32x3", or after "stages".
std::optional<KernelName> read_gemm_words(std::string_view lower) {
  const std::size_t at = lower.find("gemm");
  if (at == std::string_view::npos) return std::nullopt;
  const auto words = words_around(lower, at);
  const bool cutlass = words.front() == "cutlass" || words.front() == "cutlass3x";
  std::optional<Tile> tile;
  bool three = false, on_tensor_cores = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    on_tensor_cores = on_tensor_cores || instruction_word(words[i]) || words[i] == "tensorop";
    const auto sides = whole_sides(words[i]);
    if (tile && tile->k == 0 && sides.size() == 2 && (words[i - 1] == "stages" || cutlass)) tile->k = sides[0];
    if (!tile && !sides.empty()) {
      tile = tile_of(sides);
      three = sides.size() == 3;
    }
  }
  if (!tile) return std::nullopt;
  KernelName out = named(three ? "cutlass3" : cutlass ? "cutlass2" : "cublas", tile, TileOrder::kFirstAlongN, lower);
  if (!on_tensor_cores) {
    out.kind = KernelKind::kCudaCoreGemm;
    out.precision = std::nullopt;
  }
  return out;
}

constexpr std::uint64_t kSplitsMax = 1024;

// Tensile: Cijk_…_MTaxbxc_MIaxbxc: without a matrix instruction it runs on vector units.
std::optional<KernelName> read_tensile(std::string_view name, std::string_view lower) {
  if (!has(name, "Cijk_")) return std::nullopt;
  KernelName out = named("tensile", sides_after(name, "_MT"), TileOrder::kFirstAlongN, lower);
  out.precision = std::nullopt;
  // Global split-U: so many groups share the k of a tile. 0: chosen at run time.
  if (const std::size_t at = name.find("_GSU"); at != std::string_view::npos) {
    std::uint64_t splits = 0;
    const std::string_view digits = name.substr(at + 4, 4);
    std::from_chars(digits.data(), digits.data() + digits.size(), splits);
    if (splits > 1 && splits <= kSplitsMax) out.splits = splits;
    out.split_k = out.splits > 1;
  }
  if (!has(name, "_MI")) out.kind = KernelKind::kCudaCoreGemm;
  return out;
}

constexpr std::array<std::string_view, 2> kCommunication = {"nccl", "rccl"};
constexpr std::array<std::string_view, 4> kNoProduct = {"splitkreduce", "splitk_reduce", "reduce_kernel", "elementwise_kernel"};
constexpr std::array<std::string_view, 6> kVector = {"gemv", "gemmk1", "gemmsn_", "dot_kernel", "_simt_", "convolve_sgemm"};
constexpr std::array<std::string_view, 6> kAttention = {"flash_fwd", "flash_bwd", "flashattn", "fmha", "_sdpa", "flash_attn"};
constexpr std::array<std::string_view, 6> kConvolution = {"fprop", "dgrad", "wgrad", "implicit_gemm", "convolve", "conv2d"};
constexpr std::array<std::string_view, 9> kMaybe = {"gemm", "matmul", "nvjet", "triton_mm", "triton_tem", "triton_bmm", "marlin", "wgmma", "fused_moe_kernel"};

std::optional<KernelName> read_tile(std::string_view name, std::string_view lower) {
  if (name.starts_with("nvjet_")) return read_nvjet(name);
  if (auto tensile = read_tensile(name, lower)) return tensile;
  if (auto tile = sides_after(lower, "tilesize")) return named("xmma", tile, TileOrder::kFirstAlongN, lower);
  // The operator's own order is chosen by whoever instantiates the template.
  if (auto tile = tile_of_collective(name)) return named("cutlass3", tile, TileOrder::kUnknown, lower);
  if (lower.starts_with("bmm_") || lower.starts_with("gemm_")) {
    if (auto tile = sides_after(lower, "_t")) return named("trtllm", tile, TileOrder::kUnknown, lower);
  }
  return read_gemm_words(lower);
}

}  // namespace

std::string_view kernel_kind_name(KernelKind kind) {
  switch (kind) {
    case KernelKind::kTensorGemm: return "tensor_gemm";
    case KernelKind::kCudaCoreGemm: return "cuda_core_gemm";
    case KernelKind::kMaybeGemm: return "maybe_gemm";
    case KernelKind::kAttention: return "attention";
    case KernelKind::kConvolution: return "convolution";
    case KernelKind::kCommunication: return "communication";
    case KernelKind::kOther: break;
  }
  return "other";
}

KernelName read_kernel_name(std::string_view name) {
  name = name.substr(0, kNameBytesMax);
  const std::string lower = base::to_lower(name);
  KernelName out;
  if (has_any(lower, kCommunication)) {
    out.kind = KernelKind::kCommunication;
  } else if (has_any(lower, kNoProduct)) {
    out.kind = KernelKind::kOther;
  } else if (has_any(lower, kVector)) {
    out.kind = KernelKind::kCudaCoreGemm;
  } else if (has_any(lower, kAttention)) {
    out.kind = KernelKind::kAttention;
  } else if (has_any(lower, kConvolution)) {
    out.kind = KernelKind::kConvolution;
  } else if (auto tiled = read_tile(name, lower)) {
    out = *tiled;
  } else if (has_any(without(lower, "fbgemm"), kMaybe)) {  // a library whose name is in that of its every kernel
    out.kind = KernelKind::kMaybeGemm;
  }
  return out;
}

std::string short_kernel_name(std::string_view full) {
  const std::string plain = without(full.substr(0, kNameBytesMax), "(anonymous namespace)::");
  std::string_view name = plain;
  constexpr std::string_view kCutlass = "void cutlass::Kernel<";
  if (name.starts_with(kCutlass)) {
    name.remove_prefix(kCutlass.size());
    return base::printable(name.substr(0, name.find('>')), 120);
  }
  if (name.starts_with("void ")) name.remove_prefix(5);
  const std::size_t cut = name.find_first_of("<(");
  return base::printable(name.substr(0, cut == 0 ? name.size() : cut), 120);
}

}  // namespace flopsight::gemm
