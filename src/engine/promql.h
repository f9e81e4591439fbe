#pragma once
// Questions to the engine as PromQL, and which slots a question is made of. Only what Prometheus 2.33 knows as well (Thanos and
// Mimir do): sub-queries, `max_over_time`, `or`. Text from outside is escaped.
// Threads: pure.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/series.h"
#include "units/time.h"

namespace flopsight::engine {

// {name="value",…} without braces, ready to stand behind others: ",job=\"a\"".
std::string job_matchers(const samples::Holder& holder);

// One expression for all fields of cells of an entity ("job", "gpu"): sums, minima and maxima of the slots of `range`, added up over
// everything but `by`. `fields`: a regular expression; empty: all.
struct CellQuery {
  std::string entity;
  Level level = Level::kSlot;
  std::string matchers;  // each with a comma in front
  std::string by;        // label names, comma between
  bool with_extremes = true;
};
std::string cells_promql(const CellQuery& query, std::int64_t range_milliseconds, std::int64_t slot_milliseconds);
// Whether a series had any sample in the range; `function` is max_over_time, last_over_time, …
std::string over_promql(std::string_view aggregation, std::string_view by, std::string_view function, std::string_view selector,
                        std::int64_t range_milliseconds);

// A process and until when its hours are written.
struct Shard {
  std::string name;
  std::int64_t hours_until = 0;  // Unix milliseconds
};
// A part of a window that is read from one level, for some of the processes.
struct Piece {
  Level level = Level::kSlot;
  units::Window window;
  std::string matchers;  // of processes, with a comma in front; empty: all
};
// Hours where they are written, and slots before, after, and of processes that are not known. Pieces do not overlap.
// `step_milliseconds`: edges of pieces are multiples of it; hours are used when it is one of an hour or none (0).
std::vector<Piece> pieces_of(units::Window window, std::span<const Shard> shards, std::int64_t step_milliseconds);
// Only names that a process gives itself may stand in an expression.
bool is_shard_name(std::string_view name);

}  // namespace flopsight::engine
