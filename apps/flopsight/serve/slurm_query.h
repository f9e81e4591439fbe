#pragma once
// One question to Slurm: which jobs there are and which ended lately, and sometimes which GPUs hosts
// have. By its commands (`scontrol show job -d`, `sacct` for those that scontrol has forgotten,
// `scontrol show node -d`), or by slurmrestd.
//
// The commands run without a shell and in UTC. SlurmSource::zone is for a wrapper that does not
// pass the environment on and so prints in the cluster's own zone. Threads: one at a time; stop()
// by any.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/zone.h"
#include "schedulers/slurm.h"
#include "units/time.h"

namespace flopsight::app {

struct SlurmSource {
  std::string cluster;             // for answers that do not name theirs
  std::optional<base::Zone> zone;  // of times without an offset; absent: UTC
  std::string command_folder;      // where scontrol and sacct are; empty: in PATH
  std::string rest_url;   // "http://host:6820" or "unix:/run/slurmrestd.socket"; empty: by commands
  std::string rest_user;  // X-SLURM-USER-NAME
  std::string rest_token_file;  // X-SLURM-USER-TOKEN, read anew each time
  std::string rest_version;     // "v0.0.40"; empty: the newest that it has
  bool accounting = true;       // ask slurmdbd too
  std::chrono::milliseconds timeout{60'000};
  std::size_t answer_bytes_max = std::size_t{1} << 30;
};

struct SlurmAnswer {
  std::vector<schedulers::Job> jobs;  // a job may be in it twice, from both places
  std::vector<schedulers::Node> nodes;
  std::vector<std::string>
      failures;  // one line for each part that failed; the other parts are there
  std::vector<std::string> problems;  // of single jobs, the first few
  std::size_t problem_count = 0;
  bool listed = false;     // the list of jobs that hold something now is among it
  bool accounted = false;  // and what the accounting says

  bool answered() const { return listed || accounted; }
};

class SlurmQuery {
 public:
  explicit SlurmQuery(SlurmSource source) : source_(std::move(source)) {}

  // Jobs now, and those that were there at or after `since`; with `nodes` also hosts.
  SlurmAnswer ask(units::Instant since, bool nodes = false);
  // Ends an ask() that waits, and every later one.
  void stop() { stopped_ = true; }

 private:
  void by_commands(units::Instant since, bool nodes, SlurmAnswer& answer);
  void by_rest(units::Instant since, bool nodes, SlurmAnswer& answer);
  base::Result<std::string> command(std::vector<std::string> arguments) const;
  // False: it failed, which is noted.
  bool take(const std::string& what, base::Result<std::string> text, SlurmAnswer& answer) const;

  SlurmSource source_;
  std::string version_found_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace flopsight::app
