#pragma once
// A finding as the service keeps, shows and delivers it: what a detector concluded (detect/finding.h), or an audit, or the waste account,
// with identity, state, and what people said of it.
//
// One record is one occurrence of one matter: while the matter lasts, and when it comes back soon, it is the same record with the same id. When
// it comes back later, that is another record with the same key.
// Times of the data (`first`, `last`) are of the samples; the others are when the service or a person did something.
// Threads: values, pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detect/finding.h"
#include "samples/gpu.h"
#include "units/time.h"
#include "units/units.h"

namespace flopsight::findings {

enum class State : std::uint8_t { kOpen, kAcknowledged, kResolved };
inline constexpr std::size_t kStateCount = 3;
std::string_view state_name(State state);  // "open", "acknowledged", "resolved"
std::optional<State> parse_state(std::string_view name);
std::optional<detect::Severity> parse_severity(std::string_view name);

// Kinds are those of detect::FindingKind by their names, and these two.
inline constexpr std::string_view kAuditKind = "audit";  // what a job reports does not fit what was measured (jobs/audit_finding.h)
inline constexpr std::string_view kWasteKind = "waste";  // a job loses more dollars a day than the configuration allows
struct KindInfo {
  std::string_view name;
  detect::Severity severity = detect::Severity::kWarning;
  bool data_quality = false;  // of the measurement, not of the work: it never has a cost
};
// All of them, those of detect first, in its order.
const std::vector<KindInfo>& kinds();
// Nothing for a name that no kind has.
const KindInfo* find_kind(std::string_view name);

struct Record {
  std::string id;    // 16 hexadecimal digits, of this occurrence
  std::string key;   // the same whenever the matter comes: "regression/job=train", "audit/job=train%40ml"
  std::string kind;  // "regression"
  detect::Severity severity = detect::Severity::kWarning;
  State state = State::kOpen;
  bool silenced = false;      // by a silence that holds now: not to be delivered
  bool data_quality = false;  // unmeasured time; no cost

  // Whose. Empty where it is of no job, or of the GPUs of several.
  samples::Holder holder;  // job, namespace, user, team
  std::string job;         // jobs::job_text() of it, as in /api/v1/jobs/ID
  std::string host;        // empty: not of one host
  std::string gpu;         // UUID, or host and index; empty: not of one GPU
  std::string gpu_model;   // canonical where the catalogue has it; empty: not known, or several

  units::Instant first;   // start of the first minute in which it shows
  units::Instant last;    // start of the last one
  units::Instant opened;  // when the service found it
  units::Instant changed;  // its state, severity, silence or acknowledgement
  std::optional<units::Instant> resolved;
  std::string resolved_by;  // a person; empty: the matter went
  std::string acknowledged_by;  // empty: nobody
  std::optional<units::Instant> acknowledged;
  std::string note;              // of who acknowledged or resolved it
  std::uint32_t flap_count = 0;  // how often it went and came back as this record

  std::string text;    // one sentence with the numbers
  std::string action;  // what to do, one sentence
  std::vector<detect::Evidence> evidence;
  std::string series_name;  // what `series` shows, with its unit; empty without one
  std::vector<detect::EvidencePoint> series;
  std::vector<detect::Suspect> suspects;  // most likely first
  std::optional<units::GpuHours> cost;    // since `first`; nothing where it cannot be told
  std::optional<units::Usd> cost_usd;     // nothing without a price for the model
  bool simulated = false;                 // of a fleet that does not exist

  std::string path() const { return "/finding?id=" + id; }  // of the page
  bool is_open() const { return state != State::kResolved; }
};

// Of an occurrence of a matter.
std::string record_id(std::string_view key, units::Instant first);

enum class Change : std::uint8_t { kOpened, kReopened, kWorsened, kAcknowledged, kUnacknowledged, kResolved };
std::string_view change_name(Change change);  // "opened", …

// Something happened to a record that people may want to be told: the record as it is after it.
struct Transition {
  Change change = Change::kOpened;
  Record record;
};

}  // namespace flopsight::findings
