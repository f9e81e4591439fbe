#pragma once
// The findings that are open: what detectors see, minute by minute, becomes records with identity and state, and changes that people may want
// to be told.
//
//   open          it was seen, and is
//   acknowledged  somebody said that it is known; it goes on being followed
//   resolved      it has not shown for the quiet time of its kind, or somebody said that it is done
//
// Damping. What shows again within `reopen` of the minutes of data after it went is the same record; each time that this happens, its quiet
// time doubles, up to eight times, so that a matter that comes and goes stays open instead of being told again and again. What somebody
// resolved by hand stays resolved for as long as it goes on showing.
//
// Costs are of detectors, which begin anew with the process. A record that was there before goes on from what it had cost by the last
// minute that both know (restore()). Findings about the measurement never have a cost.
//
// Times: `minute` is the start of a minute of data, `now` the clock on the wall. Quiet times count minutes of data: while nothing comes in,
// nothing is resolved.
// Limits: open_max records, then new ones are counted and left out; silences_max silences, then kLimit.
// Threads: one at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "findings/record.h"
#include "findings/silence.h"

namespace flopsight::findings {

struct BookOptions {
  units::Seconds quiet_min{0};    // no kind is resolved sooner than this
  units::Seconds reopen{7'200};
  std::size_t open_max = 20'000;
  std::size_t silences_max = 1'000;
};

// How long a kind has not to show before it is resolved.
units::Seconds quiet_time(std::string_view kind);

// What a detector sees in a minute. Of the record only what it says of the matter counts: key, kind, severity, whose, first, last, evidence, cost.
struct Sighting {
  Record record;
  std::optional<units::UsdPerGpuHour> usd_per_gpu_hour;
};

class Book {
 public:
  explicit Book(BookOptions options = {}) : options_(options) {}
  void set_options(const BookOptions& options) { options_ = options; }

  // What was kept: once, before anything else. Of several records with one key the last counts.
  void restore(std::vector<Record> records, std::vector<Silence> silences);
  // A minute that was looked at before a restart: detectors learn from it, and what they see in it opens and resolves nothing.
  void replay(std::span<const Sighting> seen);
  // All that shows, or once did, with the next minute.
  std::vector<Transition> round(std::span<const Sighting> seen, units::Instant minute, units::Instant now);

  // Errors: kNotFound for an id that is not open or resolved lately, kInvalid where it is resolved already (acknowledge) or not acknowledged.
  base::Result<Transition> acknowledge(std::string_view id, std::string_view author, std::string_view note, units::Instant now);
  base::Result<Transition> unacknowledge(std::string_view id, units::Instant now);
  base::Result<Transition> resolve(std::string_view id, std::string_view author, std::string_view note, units::Instant now);

  // Errors: kLimit. Told again it stays.
  base::Status add_silence(Silence silence, units::Instant now);
  base::Status remove_silence(std::string_view id, units::Instant now);  // kNotFound
  const std::vector<Silence>& silences() const { return silences_; }     // those that are not over, in order of addition
  void drop_old_silences(units::Instant now);

  // Open and acknowledged ones, by key; those resolved lately are among them as well.
  const std::map<std::string, Record>& records() const { return records_; }
  const Record* find(std::string_view id) const;
  std::size_t open_count() const { return open_count_; }
  std::uint64_t dropped_total() const { return dropped_total_; }
  // Keys of records that changed since they were taken last: what people said and states, and apart from it mere figures.
  std::set<std::string> take_changed() { return std::exchange(changed_, {}); }
  std::set<std::string> take_updated() { return std::exchange(updated_, {}); }

 private:
  // What is known of a record beside it.
  struct Course {
    bool restored = false;      // not yet joined to what the detectors of this process see
    double cost_before_gpu_hours = 0;  // of detectors that are no more
  };
  void see(const Sighting& sighting, units::Instant minute, units::Instant now, std::vector<Transition>& out);
  void update(Record& record, Course& course, const Sighting& sighting);
  void open(const Sighting& sighting, units::Instant now, std::vector<Transition>& out);
  void silence(Record& record, units::Instant now);
  base::Result<Record*> unresolved(std::string_view id);
  units::Seconds quiet_of(const Record& record) const;
  Transition changed(Change change, Record& record, units::Instant now);

  BookOptions options_;
  std::map<std::string, Record> records_;  // by key
  std::map<std::string, Course> courses_;  // by key
  std::vector<Silence> silences_;
  std::set<std::string> changed_;
  std::set<std::string> updated_;
  std::size_t open_count_ = 0;
  std::uint64_t dropped_total_ = 0;
};

}  // namespace flopsight::findings
