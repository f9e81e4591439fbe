#pragma once
// The few pieces of PromQL that the arithmetic of OFU is made of, for the questions of a report (pushdown.h) and for rules
// that an engine evaluates by itself (rules/).
// Threads: pure.

#include <string>
#include <string_view>

#include "catalog/metrics.h"
#include "units/units.h"

namespace flopsight::sources {

// How long a sample holds on the server: one missed scrape is bridged, as with raw samples, and two are a gap. A little
// under two intervals, so that a sample of exactly that age is not counted by one server and left by another.
inline units::Seconds sample_hold(units::Seconds scrape_interval) { return scrape_interval * 1.9; }

// Names of one quantity that share a scale (ours = raw * scale), as a regular expression, and its physical range.
struct MetricNames {
  catalog::Metric metric = catalog::Metric::kOther;
  std::string names;
  double scale = 1;
};

// Further matchers ("cluster=\"a\"", without a comma in front; may be empty) and how long a sample holds.
struct Reading {
  std::string match;
  units::Seconds hold{0};
};

// UUIDs that name no GPU, as jobs::is_masked_uuid() has it, and those that name one beside indices, as regular expressions of PromQL.
inline constexpr std::string_view kMaskedUuids = "[GPUMI0-]*|[GPUMI0xX*#?._-]{9,}";
inline constexpr std::string_view kNamingUuids =
    "(GPU|MIG)-(.*[^GPUMI0xX*#?._-].*|[^GPUMI0-].{0,3}|.[^GPUMI0-].{0,2}|..[^GPUMI0-].?|...[^GPUMI0-])";

// A number as PromQL reads it.
std::string promql_number(double value);
// "…" with what PromQL would read as something else escaped.
std::string promql_quoted(std::string_view text);

// The newest sample of each series of these names, while it holds: `aggregation` is "avg by (UUID)".
std::string held(std::string_view aggregation, std::string_view names, const Reading& reading);

// The same, without values outside the physical range: left out before copies of a series are aggregated, of which one may be blank
// and another not. Raw limits, so that the server compares what it stores.
std::string held_in_range(std::string_view aggregation, const MetricNames& names, const Reading& reading);

// The product that is integrated: activity of each GPU (and holder) times its clock, both as expressions.
std::string activity_times_clock(std::string_view activity, std::string_view clock, std::string_view gpu_label);

}  // namespace flopsight::sources
