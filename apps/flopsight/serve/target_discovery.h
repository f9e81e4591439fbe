#pragma once
// Which targets there are at this moment: fixed ones, those of file_sd files that match patterns, and the addresses behind DNS
// names. A file or a name that cannot be read keeps what it said last, and is a problem that is told.
//
// Threads: one, but lookups of names run in threads of their own, which are left to themselves when nobody waits any
// more: getaddrinfo cannot be interrupted, and may take half a minute.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "sources/scrape_targets.h"

namespace flopsight::app {

struct DiscoveryOptions {
  std::vector<std::string> targets;  // host:port or URL
  std::vector<std::string> file_sd;  // paths; '*' in the last part
  std::vector<std::string> dns;      // host:port or URL; each address (A and AAAA) of the name is a target
  std::chrono::milliseconds file_refresh{5'000};
  std::chrono::milliseconds dns_refresh{30'000};
  // Processes that share the work: this one takes targets whose hash is index, modulo count.
  std::uint32_t shard_index = 0;
  std::uint32_t shard_count = 1;
  std::size_t targets_max = 100'000;
  // All addresses of a name, as numbers. Default: getaddrinfo.
  std::function<base::Result<std::vector<std::string>>(const std::string& name)> resolve;
};

class TargetDiscovery {
 public:
  using Clock = std::chrono::steady_clock;

  // Errors: kInvalid for a target, DNS name or shard that cannot be meant.
  static base::Result<TargetDiscovery> create(DiscoveryOptions options);

  // Does what is due: looks at files, begins and ends lookups. True when targets or problems may be others than before.
  bool refresh(Clock::time_point now);
  // When refresh has something to do again.
  Clock::time_point next(Clock::time_point now) const;

  // Each URL once: fixed ones first, then files by path, then names.
  std::vector<sources::ScrapeTarget> targets() const;
  std::vector<std::string> problems() const;  // one line each

 private:
  struct File {
    std::uint64_t version = 0;  // of time, size and inode
    std::vector<sources::ScrapeTarget> targets;
    std::string problem;
  };
  struct Lookup;
  struct Name {
    sources::ScrapeTarget spec;
    std::size_t host_at = 0;  // in the URL
    std::string host;
    Clock::time_point due;
    std::shared_ptr<Lookup> lookup;  // under way
    std::vector<std::string> addresses;
    std::string problem;
  };

  explicit TargetDiscovery(DiscoveryOptions options) : options_(std::move(options)) {}
  bool refresh_files();
  void read(const std::string& path, File& file) const;
  bool refresh_names(Clock::time_point now);
  static std::shared_ptr<Lookup> begin_lookup(const std::string& host, const DiscoveryOptions& options);

  DiscoveryOptions options_;
  std::vector<sources::ScrapeTarget> fixed_;
  std::map<std::string, File> files_;  // by path
  std::vector<std::string> pattern_problems_;
  std::vector<Name> names_;
  Clock::time_point files_due_;
  mutable std::size_t left_out_ = 0;  // by targets(), for the limit
};

}  // namespace flopsight::app
