#include "engine/promql.h"

#include <algorithm>
#include <map>

#include "sources/promql_parts.h"

namespace flopsight::engine {
namespace {

std::int64_t floor_to(std::int64_t value, std::int64_t step) { return value / step * step; }
std::int64_t ceil_to(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

std::string range_text(std::int64_t milliseconds) { return "[" + std::to_string(milliseconds) + "ms]"; }

// Windows up to here are read slot by slot.
constexpr std::int64_t kSlotsOnlyMilliseconds = 3 * kHourMilliseconds;

void add_piece(std::vector<Piece>& pieces, Level level, std::int64_t start, std::int64_t end, const std::string& matchers) {
  if (start < end) pieces.push_back({level, {{start}, {end}}, matchers});
}

}  // namespace

std::string job_matchers(const samples::Holder& holder) {
  return ",job=" + sources::promql_quoted(holder.job) + ",namespace=" + sources::promql_quoted(holder.name_space);
}

std::string cells_promql(const CellQuery& query, std::int64_t range_milliseconds, std::int64_t slot_milliseconds) {
  const auto selector = [&](std::string_view what) {
    return metric(query.entity, query.level, what) + "{field!=\"\"" + query.matchers + "}";
  };
  const std::string by = " by (" + query.by + ") ";
  const std::string slot = std::to_string(slot_milliseconds) + "ms";
  // One millisecond less, so that no engine takes the slot that ends where the range begins.
  std::string text = "sum" + by + "(sum_over_time(max_over_time(" + selector("sum") + "[" + slot + "])[" +
                     std::to_string(range_milliseconds - 1) + "ms:" + slot + "]))";
  if (query.with_extremes) {
    text += " or min" + by + "(min_over_time(" + selector("min") + range_text(range_milliseconds) + "))";
    text += " or max" + by + "(max_over_time(" + selector("max") + range_text(range_milliseconds) + "))";
  }
  return text;
}

std::string over_promql(std::string_view aggregation, std::string_view by, std::string_view function, std::string_view selector,
                        std::int64_t range_milliseconds) {
  return std::string(aggregation) + " by (" + std::string(by) + ") (" + std::string(function) + "(" + std::string(selector) +
         range_text(range_milliseconds) + "))";
}

bool is_shard_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

std::vector<Piece> pieces_of(units::Window window, std::span<const Shard> shards, std::int64_t step_milliseconds) {
  const std::int64_t start = window.start.unix_milliseconds;
  const std::int64_t end = window.end.unix_milliseconds;
  const std::int64_t align = std::max(kHourMilliseconds, step_milliseconds);
  std::vector<Piece> pieces;
  std::map<std::int64_t, std::string> groups;  // by until when hours are there: names
  std::string known;
  for (const Shard& shard : shards) {
    if (!is_shard_name(shard.name)) continue;
    std::string& names = groups[shard.hours_until];
    names += (names.empty() ? "" : "|") + shard.name;
    known += (known.empty() ? "" : "|") + shard.name;
  }
  const bool has_hours = step_milliseconds == 0 || step_milliseconds % kHourMilliseconds == 0;
  if (end - start <= kSlotsOnlyMilliseconds || !has_hours || known.empty()) {
    add_piece(pieces, Level::kSlot, start, end, "");
    return pieces;
  }
  add_piece(pieces, Level::kSlot, start, end, ",shard!~\"" + known + "\"");
  for (const auto& [until, names] : groups) {
    const std::string matchers = ",shard=~\"" + names + "\"";
    const std::int64_t from = std::min(ceil_to(start, align), end);
    const std::int64_t to = std::max(from, floor_to(std::min(end, until), align));
    add_piece(pieces, Level::kSlot, start, from, matchers);
    add_piece(pieces, Level::kHour, from, to, matchers);
    add_piece(pieces, Level::kSlot, to, end, matchers);
  }
  return pieces;
}

}  // namespace flopsight::engine
