#pragma once
// The formats that are known from the frameworks themselves, as tables: which words make a line one of a format, and which
// word goes before which figure in which unit. Order and number of the figures in a line do not matter.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "training_logs/figure_internal.h"

namespace flopsight::training_logs {

// What was found in a line.
struct Extract {
  Step step;
  std::uint32_t figures = 0;       // besides the number of the step
  std::uint32_t unparsable = 0;    // figures whose number cannot be read
  std::uint32_t unknown_unit = 0;  // figures without a unit that fits
  std::string about;               // the word before the last of those
  bool decimal_comma = false;      // a figure has one: "3,000" beside it may be three as well as three thousand
  bool average = false;            // over many steps, beside which there may be records of each
  bool validation = false;         // the line says of itself that it is of an evaluation
  std::string_view silent;         // why a line of the format that has no figure has none: a sentence of the format's
};

struct Field {
  std::string_view key;
  Meaning meaning;
  std::string_view unit;  // where the line does not say; empty: nobody knows
  enum class Place : std::uint8_t { kAfter, kAfterLastColon, kBefore } place = Place::kAfter;
};

struct Format {
  std::string_view name;
  std::span<const std::string_view> all;  // a line has all of these
  std::span<const std::string_view> any;  // and one of these, if there are some
  std::span<const Field> fields;          // of several with one meaning, the first that is there
  bool block = false;                     // a head line with the number, and figures in the lines below
  bool before_numbered = false;           // without a number: belongs to the numbered line that follows
  void (*more)(std::string_view text, Extract& extract) = nullptr;
  std::string_view series = {};           // the format whose steps these lines go on with; empty: their own
  bool beside = false;                    // printed beside the lines of the framework that trains, by a library or a benchmark
  std::string_view note = {};             // what to know of its figures
  bool told_by_trainer = false;           // the lines that say which of the bars around them is that of training
  bool month_first = false;               // its dates are "10/22/2026 10:00:01", the month first
  bool (*is_head)(std::string_view text) = nullptr;  // of a block: whether a line with none of the words is its head
};

std::span<const Format> formats();
// Lower case; lines without one of them say nothing of any format, nor what a user might hope for.
std::span<const std::string_view> telling_words();
inline constexpr std::string_view kPartWords[] = {" stdout p ", " stderr p "};  // among them, of container runtimes
inline constexpr std::string_view kStepWord = "step: ";  // among them, for the heads of blocks

// Words by which lines, bars and columns say that they are of an evaluation and not of training.
bool is_validation_word(std::string_view word);
// Whether the line says so of its step: "validate step: 10", "[eval] iteration 10".
bool is_of_validation(const Format& format, std::string_view text);

// Whether the words are there.
bool matches(const Format& format, std::string_view text);
void extract(const Format& format, std::string_view text, Extract& extract);
// The figure behind `key`; false when the key is not there or nothing like a figure stands behind it.
bool extract_field(const Field& field, std::string_view text, Extract& extract);

// Column names of CSV files that loggers write ("device/mfu", "train/device/flops_per_sec"); nullptr for others.
const Field* column_field(std::string_view name);

// What the line says about the job; true when it says something. A peak goes to `peak_flops_per_second` as well.
bool read_settings(std::string_view text, Settings& settings,
                   std::optional<double>& peak_flops_per_second);
// Whether what a log prints says that another run than before has begun.
bool is_of_another_run(const Settings& known, const Settings& printed);
// The name of what differs; empty: nothing that makes a run another one.
std::string_view setting_of_another_run(const Settings& known, const Settings& printed);
void set(Settings& settings, std::string_view name, std::string_view value);
// The global batch that the line of a step prints beside its figures.
std::optional<double> batch_beside(std::string_view text);

}  // namespace flopsight::training_logs
