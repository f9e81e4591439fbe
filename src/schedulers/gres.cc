#include "schedulers/gres.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace flopsight::schedulers {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::uint32_t kIndexMax = 1'023;
constexpr std::size_t kEntriesMax = 4'096;

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Error wrong(std::string_view text, const std::string& expected) {
  return {ErrorCode::kInvalid, "\"" + base::printable(text, 80) + "\", expected " + expected};
}

// "gres/gpu:a100", "gres:gpu:a100" and "gpu:a100" as "gpu:a100"; nothing for what is no GPU.
std::optional<std::string_view> gpu_name(std::string_view name) {
  if (name.starts_with("gres/") || name.starts_with("gres:")) name.remove_prefix(5);
  if (name == "gpu" || name.starts_with("gpu:")) return name;
  return std::nullopt;
}

bool is_share(std::string_view name) {
  if (name.starts_with("gres/") || name.starts_with("gres:")) name.remove_prefix(5);
  name = name.substr(0, name.find_first_of(":=("));
  return name == "shard" || name == "mps";
}

// Parts between commas that are not in brackets.
std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '(' || text[i] == '[')) ++depth;
    if (i < text.size() && (text[i] == ')' || text[i] == ']')) --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    const std::string_view entry = base::trim(text.substr(begin, i - begin));
    begin = i + 1;
    if (!entry.empty()) out.push_back(entry);
  }
  return out;
}

Result<std::vector<std::string>> indices_of(std::string_view text) {
  std::vector<std::string> out;
  if (text.empty() || text == "N/A") return out;
  for (const std::string& part : base::split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = whole_number(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : whole_number(std::string_view(part).substr(dash + 1));
    if (!first || !last || *last < *first || *last > kIndexMax) {
      return wrong(text, "indices such as 0-1,3, up to " + std::to_string(kIndexMax));
    }
    for (std::uint32_t i = *first; i <= *last; ++i) {
      std::string index = std::to_string(i);
      if (std::find(out.begin(), out.end(), index) == out.end()) out.push_back(std::move(index));
    }
  }
  return out;
}

struct GresEntry {
  TresEntry entry;
  std::vector<std::string> indices;
};

// "gpu:a100:2(IDX:0-1)", "gpu:2", "gpu", "gpu:a100=2", "gpu(IDX:0-1)". Nothing for other resources.
Result<std::optional<GresEntry>> gres_entry(std::string_view text) {
  const std::size_t open = text.find('(');
  std::string_view head = text.substr(0, open);
  const auto name = gpu_name(head.substr(0, head.find('=')));
  if (!name) return std::optional<GresEntry>();
  GresEntry out;
  if (open != std::string_view::npos) {
    if (!text.ends_with(')')) return wrong(text, "a closing bracket; the text is cut off");
    const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    if (inside.starts_with("IDX:")) {
      FLOPSIGHT_ASSIGN_OR_RETURN(out.indices, indices_of(inside.substr(4)));
    }
  }
  if (head.ends_with('+')) return wrong(text, "a whole entry; the column is cut off");
  std::optional<std::uint32_t> count;
  out.entry.name = std::string(*name);
  if (const std::size_t equals = head.find('='); equals != std::string_view::npos) {
    count = whole_number(head.substr(equals + 1));
    if (!count) return wrong(text, "a number of GPUs after '='");
  } else if (const std::size_t colon = name->rfind(':'); colon != std::string_view::npos) {
    count = whole_number(name->substr(colon + 1));
    if (count) out.entry.name = std::string(name->substr(0, colon));
  }
  // Without a count, Slurm means one; a list of indices says more (GRES_IDX of Slurm before 20.02).
  const auto indices = static_cast<std::uint32_t>(out.indices.size());
  out.entry.count = count ? *count : indices > 0 ? indices : 1;
  return std::optional<GresEntry>(std::move(out));
}

}  // namespace

GpuCounts gpus_of_entries(const std::vector<TresEntry>& entries) {
  GpuCounts out;
  std::uint64_t typed = 0;
  std::uint64_t untyped = 0;
  for (const TresEntry& entry : entries) {
    const auto name = gpu_name(entry.name);
    out.has_shares |= entry.count > 0 && is_share(entry.name);
    if (!name) continue;
    if (*name == "gpu") {
      untyped += entry.count;
      out.untyped = true;
      continue;
    }
    typed += entry.count;
    const std::string type(name->substr(4));
    if (entry.count > 0) out.groups.push_back({type, entry.count, is_mig_type(type)});
    out.count = 0;
  }
  if (!out.untyped && !out.count) return out;
  out.contradicts = out.untyped && typed > untyped;
  if (out.contradicts) out.groups.clear();
  const std::uint64_t total = out.untyped ? untyped : typed;
  if (!out.groups.empty() && total > typed) {
    out.groups.push_back(
        {"", static_cast<std::uint32_t>(std::min<std::uint64_t>(total - typed, UINT32_MAX)),
         false});
  }
  out.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(total, UINT32_MAX));
  return out;
}

Result<GpuCounts> gpus_of_tres(std::string_view text) {
  std::vector<TresEntry> entries;
  for (const std::string_view part : entries_of(text)) {
    const std::size_t equals = part.find('=');
    if (!gpu_name(part.substr(0, equals)) && !is_share(part)) continue;
    const auto count =
        equals == std::string_view::npos ? std::nullopt : whole_number(part.substr(equals + 1));
    if (!count) return wrong(part, "a number of GPUs after '='");
    if (entries.size() >= kEntriesMax)
      return Error{ErrorCode::kLimit, "more than 4096 GPU entries"};
    entries.push_back({std::string(part.substr(0, equals)), *count});
  }
  return gpus_of_entries(entries);
}

bool names_shares(std::string_view text) {
  const std::vector<std::string_view> entries = entries_of(text);
  return std::any_of(entries.begin(), entries.end(), is_share);
}

std::optional<double> gpu_utilization_of_tres(std::string_view text) {
  for (const std::string_view part : entries_of(text)) {
    if (part.starts_with("gres/gpuutil=")) return base::parse_number(part.substr(13));
  }
  return std::nullopt;
}

Result<GresGpus> gpus_of_gres(std::string_view text) {
  GresGpus out;
  text = base::trim(text);
  if (text.empty() || text == "(null)" || text == "N/A") return out;
  std::vector<TresEntry> entries;
  for (const std::string_view part : entries_of(text)) {
    FLOPSIGHT_ASSIGN_OR_RETURN(auto found, gres_entry(part));
    if (!found) continue;
    if (entries.size() >= kEntriesMax)
      return Error{ErrorCode::kLimit, "more than 4096 GPU entries"};
    // The indices of MIG instances number the instances.
    const bool is_mig = found->entry.name.size() > 4 && is_mig_type(found->entry.name.substr(4));
    if (!is_mig)
      out.indices.insert(out.indices.end(), found->indices.begin(), found->indices.end());
    entries.push_back(std::move(found->entry));
  }
  // Unlike TRES, an entry without a type is one of its own here: "gpu:2,gpu:a100:1" are three.
  std::uint64_t total = 0;
  for (const TresEntry& entry : entries) {
    const std::string type = entry.name.size() > 4 ? entry.name.substr(4) : "";
    if (entry.count > 0) out.counts.groups.push_back({type, entry.count, is_mig_type(type)});
    out.counts.untyped |= type.empty();
    total += entry.count;
  }
  if (!entries.empty())
    out.counts.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(total, UINT32_MAX));
  return out;
}

bool is_mig_type(std::string_view type) {
  const std::string lower = base::to_lower(type);
  for (const std::string& outer : base::split(lower, '_')) {
    for (const std::string& word : base::split(outer, '-')) {
      if (word == "mig") return true;
      const std::size_t g = word.find("g.");
      if (g == std::string::npos || g == 0 ||
          !std::all_of(word.begin(), word.begin() + static_cast<long>(g), is_digit)) {
        continue;
      }
      std::size_t end = g + 2;
      while (end < word.size() && is_digit(word[end])) ++end;
      if (end > g + 2 && std::string_view(word).substr(end).starts_with("gb")) return true;
    }
  }
  return false;
}

}  // namespace flopsight::schedulers
