#pragma once
// What a training job printed about its own speed, step by step, as numbers with units. Text in, numbers out: the reader is
// fed bytes as they come, in pieces of any size, and needs memory for the steps that it keeps, not for the text.
//
// Units are read from the line ("%", "ms", "TFLOP/s/GPU"); where a format is known to print a figure without its unit, the
// format's own code says which it is (docs/training-logs.md); where neither does, the figure is left out and counted.
// Absence: an empty optional was not printed, or not usable. Nothing is derived here but what says so.
// One value a step: where several ranks print the same step, the median over them.
// Excluded steps stay in the list, with the reason, and are not in the summary.
// Threads: plain values; a Reader belongs to one thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/zone.h"
#include "units/time.h"

namespace flopsight::training_logs {

// Why a step, or a line that looked like one, is not in the summary.
enum class Exclusion : std::uint8_t {
  kWarmUp,      // at the start of an attempt, far from what follows: compilation, first allocation, an asynchronous start
  kNotYetKnown, // a negative MFU or throughput: the framework's word for "no figure yet"
  kAbovePeak,   // MFU above 1, or a rate above the peak: the step was timed before the work was done
  kLate,        // a rank printed a step after it was closed
  kUnparsable,  // the line has the shape of its format, and a number in it cannot be read
  kUnknownUnit, // a figure whose unit neither the line nor the format tells
};
inline constexpr std::size_t kExclusionCount = 6;
std::string_view exclusion_name(Exclusion exclusion);     // the key in JSON: "warm_up", …
std::string_view exclusion_meaning(Exclusion exclusion);  // one sentence for people

// Where it was read: bytes and lines of the text as the reader was fed it (after decompression), lines counted from 1.
struct SourceLine {
  std::uint64_t offset_bytes = 0;
  std::uint64_t line = 0;
};

// The training loss as printed: it has no unit, and is here to tell runs apart.
struct Loss {
  double value = 0;
};

// One step of one run. "per GPU" is per device that the framework counts (a GPU, a TPU chip, a GCD).
struct Step {
  std::optional<units::Instant> time;  // when the line was printed; absent without a date or without a known zone
  bool is_zone_assumed = false;        // of `time`: the line has no offset, and Options::zone was taken
  std::optional<std::int64_t> step;    // the framework's own number; absent where the line has none
  std::optional<std::int64_t> rank;    // absent after ranks were merged, or where no prefix tells
  std::uint32_t attempt = 0;           // counts restarts within the text: a step number that went back
  std::uint32_t ranks = 1;             // how many lines were merged into this one
  std::optional<double> mfu_ratio;
  std::optional<double> flops_per_second_per_gpu;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> tokens_per_second;   // of the whole job
  std::optional<double> samples_per_second;  // of the whole job
  std::optional<double> step_seconds;
  std::optional<double> peak_flops_per_second;  // the peak that the log says it divides by
  std::optional<Loss> loss;
  std::string label;  // where one text holds results of several runs: "pretrain H100 bf16"
  std::optional<Exclusion> excluded;
  SourceLine source;
  std::optional<double> batch_samples;  // of the whole job, where the step's own line prints it: runs ramp it up
};

// What a step has that can be averaged.
inline constexpr std::optional<double> Step::*kStepFigures[] = {
    &Step::mfu_ratio,         &Step::flops_per_second_per_gpu, &Step::tokens_per_second_per_gpu, &Step::tokens_per_second,
    &Step::samples_per_second, &Step::step_seconds,            &Step::peak_flops_per_second};

// Medians over the steps that are not excluded; `steps_used` of them.
struct Summary {
  std::uint64_t steps_used = 0;
  std::optional<double> mfu_ratio;
  std::optional<double> flops_per_second_per_gpu;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> tokens_per_second;
  std::optional<double> samples_per_second;
  std::optional<double> step_seconds;
  // The peak that the log used: printed by it, else FLOP rate / MFU where both are printed (the median of the quotients over
  // the used steps).
  std::optional<double> implied_peak_flops_per_second;
  bool implied_peak_printed = false;
};

// What a log prints about the job: name and value, the first that was seen of each name. A batch that changes from step to step is its range,
// "128 … 1024", and no number.
using Settings = std::vector<std::pair<std::string, std::string>>;

// The line that came closest, for a text in which nothing matched.
struct NearestMiss {
  std::uint64_t line = 0;
  std::string text;  // printable, cut
  std::string why;   // what is known of it and what is missing
};

// One of several runs whose steps stand in one text.
struct LoggedRun {
  std::string label;  // "torchtitan", "megatron 2"
  std::uint64_t steps_used = 0;
  std::uint64_t steps_total = 0;
  Settings settings;
};

struct Reported {
  std::string format;  // "megatron", "torchtitan", …; of a user's pattern its name; empty when nothing matched
  std::vector<Step> steps;
  std::uint64_t steps_total = 0;    // also of those that were thinned out
  std::uint64_t steps_dropped = 0;  // thinned out evenly to stay below Limits::steps_max
  std::array<std::uint64_t, kExclusionCount> excluded{};
  std::uint64_t bytes_total = 0;
  std::uint64_t lines_total = 0;
  std::uint64_t lines_matched = 0;  // those that gave a figure or a setting
  std::uint64_t attempts = 0;
  std::uint64_t times_without_zone = 0;  // dates that are no instants for lack of a zone
  // Results of separate runs: a summary over them would mean nothing, and is empty. Where one text has the steps of several, `steps` is
  // one for each run, its medians, under the run's label, and `runs` says what is known of each.
  bool several_runs = false;
  Summary summary;
  // What the log prints about the job, first value seen, by a name of ours: "global_batch_size", "sequence_length",
  // "tokens_per_step", "world_size", "tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel", "expert_parallel",
  // "micro_batch_size", "layers", "hidden_size", "peak_flops_per_second", "peak_undefined_for", "peak_fallback", …
  Settings settings;
  std::vector<LoggedRun> runs;           // of `several_runs`; empty for documents, which say all in their labels
  std::vector<std::string> notes;  // sentences for people: figures left out for lack of a unit, text cut, …
  std::optional<NearestMiss> nearest_miss;

  const std::string* setting(std::string_view name) const;
};

// A user's own patterns, see patterns.h; shared between readers.
class PatternFile;

struct Options {
  std::optional<base::Zone> zone;       // of dates without an offset; without it those are no instants
  std::string format;                   // only this one ("megatron", …); empty: whichever match
  std::shared_ptr<const PatternFile> patterns;
  // The peak of the GPU where the caller knows it: a rate above is not believed.
  std::optional<double> peak_flops_per_second;
  // The number of steps to leave out at the start of each attempt; absent: found out (docs/training-logs.md).
  std::optional<std::uint32_t> warm_up_steps;
};

struct Limits {
  static constexpr std::size_t line_bytes_max = 64 * 1024;      // of a line; what follows is skipped
  static constexpr std::size_t document_bytes_max = 16 << 20;   // of a JSON or YAML document, which is read whole
  static constexpr std::size_t steps_max = 200'000;             // kept in memory; every second is dropped beyond
  static constexpr std::size_t open_steps_max = 3;              // steps that still wait for ranks
  static constexpr std::size_t ranks_max = 4'096;              // values kept of a step, for its median
  static constexpr std::size_t settings_max = 256;
};

// Steps of one framework.
struct Taken {
  std::string format;
  std::vector<Step> steps;
};

class Reader {
 public:
  explicit Reader(Options options);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  void feed(std::string_view bytes);
  // For a text that grows: the steps that are complete since the last call, and out of the reader. A step is complete when
  // a later one was printed, and after the first steps of an attempt were judged. Where several frameworks print into one text, each
  // has its own.
  std::vector<Taken> take();
  // For a text that may not go on for long: the steps that are still open, without waiting for more ranks or later steps. A line whose
  // end has not come stays open.
  std::vector<Taken> close_open();
  // The text ends here: what is left of it, also of a last line without its end and of a document.
  std::vector<Taken> close();
  // Everything before this place has been given to take(); a follower that starts anew here misses nothing (and may see a
  // step again).
  SourceLine resume_at() const;
  // For a follower that starts anew in the middle: what stands at the head of the text (settings, the header of a CSV), whose
  // steps are not wanted. Feed from `offset_bytes` and line `line` on afterwards.
  void resume(std::string_view head, SourceLine at);
  // So far: the format that most lines of the first framework had, and what the log printed about the job.
  std::string format() const;
  const Settings& settings() const;
  // The text ends too early: a line that was begun lacks its end, and half a figure is none.
  void drop_tail();
  // The end of the text: what is open is closed, and the summary is made. The reader is spent.
  Reported finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "megatron", "torchtitan", …: what Options::format may be, and all of them for messages.
bool known_format(std::string_view name);
std::string format_names();

// Why two texts cannot be of one run, by the rules by which runs in one text are told apart: "world_size is 64 and 256"; empty where nothing
// says so. The same in either order but for the order of what it names.
std::string why_different_runs(const Reported& one, const Reported& other);

// The median over the used steps of each step's own batch / its own time; nothing where no step prints both.
std::optional<double> sequences_per_second_of(const std::vector<Step>& steps);

Reported read_log(std::string_view text, const Options& options = {});

}  // namespace flopsight::training_logs
