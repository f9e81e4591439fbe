#pragma once
// Follows the logs of training jobs: files that grow, are renamed and begun anew, are cut to nothing, or appear later. What is new
// is read in bounded pieces when poll() is called; nothing is watched in between.
//
// A file that was replaced is read to its end first. A compressed file is read once. Where a file was read to is a LogPosition,
// which the caller keeps together with the steps and gives back after a restart: then nothing is missed, and the last steps may
// come again.
// Not done: a file that another name already follows is left alone (a rotated log that the pattern matches as well).
// Threads: one.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/regex.h"
#include "base/result.h"
#include "serve/log_file.h"
#include "training_logs/log_sources.h"
#include "training_logs/patterns.h"
#include "training_logs/report.h"
#include "units/time.h"

namespace flopsight::app {

using training_logs::LogSource;

struct LogPosition {
  std::string path;
  FileIdentity identity;
  training_logs::SourceLine at;   // from here on it has to be read
  std::uint64_t head_bytes = 0;   // how many of the first bytes the hash is of
  base::Hash128 head;
  bool done = false;              // a compressed file that was read
  std::string format;             // of the framework that printed first
};

struct FollowedSteps {
  std::string path;
  std::string job;  // empty: the source names none
  std::string format;
  std::vector<training_logs::Step> steps;
  std::vector<std::pair<std::string, std::string>> settings;  // what the log printed about the job so far
  bool of_another_framework = false;  // than the first that the file had
  // With the last of what is given at once: what was given before it is not to be read again.
  std::optional<LogPosition> position;
};

// A file as it stands, for people and metrics.
struct FollowedFile {
  std::string path;
  std::string job;
  std::uint64_t bytes_read_total = 0;
  std::uint64_t steps_total = 0;
  std::uint64_t rotations_total = 0;
  std::string error;  // the last one; empty when it could be read
};

class LogFollower {
 public:
  struct Options {
    std::size_t poll_bytes_max = std::size_t{64} << 20;  // read in one poll, of all files together
    std::size_t piece_bytes = std::size_t{4} << 20;      // of one file before the next has its turn
    std::size_t files_max = 1'000;                       // open at once; more are left out, and counted
    units::Seconds quiet{300};                           // without growth for so long, the last steps are given out
  };

  // Reads the pattern files and the zones. Errors: with the line of the source.
  static base::Result<LogFollower> create(std::vector<LogSource> sources, Options options);
  static base::Result<LogFollower> create(std::vector<LogSource> sources) { return create(std::move(sources), Options{}); }
  LogFollower(LogFollower&&) noexcept;
  LogFollower& operator=(LogFollower&&) noexcept;
  ~LogFollower();

  // Before the first poll.
  void restore(LogPosition position);

  using Take = std::function<void(const FollowedSteps&)>;
  // True when there is more to read at once.
  bool poll(units::Instant now, const Take& take);

  std::vector<LogPosition> positions() const;
  std::vector<FollowedFile> files() const;
  std::uint64_t left_out_total() const { return left_out_total_; }

 private:
  struct Source;
  struct File;

  LogFollower() = default;
  void look(units::Instant now);
  bool was_read(const LogFile& file) const;
  void begin(File& file, bool restored);
  bool replaced(File& file, const Take& take);
  std::size_t read(File& file, std::size_t bytes_max, units::Instant now, const Take& take);
  void give(File& file, std::vector<training_logs::Taken> taken, const LogPosition& position, const Take& take);
  LogPosition position_of(const File& file) const;

  Options options_;
  std::vector<Source> sources_;
  std::map<std::string, std::unique_ptr<File>> files_;
  std::map<std::string, LogPosition> restored_;
  std::map<FileIdentity, std::pair<std::uint64_t, base::Hash128>> read_before_;  // renamed: bytes and hash of the head
  std::string next_;  // the path whose turn it is
  std::uint64_t left_out_total_ = 0;
};

}  // namespace flopsight::app
