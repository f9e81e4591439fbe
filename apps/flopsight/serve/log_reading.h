#pragma once
// The logs of training jobs, followed while the service runs. Where a log was read to is kept in the book of
// jobs with the steps, so that a restart misses nothing.
//
// Threads: one of its own reads; every function may be called by any.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "serve/job_service.h"
#include "serve/log_follower.h"

namespace flopsight::app {

// Whom a file of sources says to follow. Errors: with the file and the line.
base::Result<LogFollower> read_log_sources(const std::string& sources_path);

class LogReading {
 public:
  // Errors: of the file of sources. `jobs` is borrowed.
  static base::Result<std::unique_ptr<LogReading>> start(const std::string& sources_path, JobService& jobs,
                                                         std::function<units::Instant()> now);
  ~LogReading();

  // Files as they stand after the last poll.
  std::vector<FollowedFile> files() const;
  // What could not be read or kept, one line each; empties the list.
  std::vector<std::string> take_notes();

 private:
  LogReading(LogFollower follower, JobService& jobs, std::function<units::Instant()> now)
      : follower_(std::move(follower)), jobs_(jobs), now_(std::move(now)) {}
  void run();
  void keep(const FollowedSteps& followed);
  void note_errors(const std::vector<FollowedFile>& files);  // mutex_ held

  LogFollower follower_;
  JobService& jobs_;
  std::function<units::Instant()> now_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<FollowedFile> files_;
  std::set<std::string> failing_;  // files whose error was said
  std::set<std::string> jobless_;  // of the thread that reads
  std::vector<std::string> notes_;
  std::thread thread_;
};

// A position as text, and back; nothing for a text that is none.
std::string log_position_text(const LogPosition& position);
std::optional<LogPosition> parse_log_position(std::string_view text);

}  // namespace flopsight::app
