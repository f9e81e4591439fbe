#include "serve/target_discovery.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>

#include "base/file.h"
#include "base/text.h"
#include "jobs/label_rules.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;
constexpr std::chrono::milliseconds kLookupPoll{100};

base::Result<std::vector<std::string>> resolve_with_system(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int code = getaddrinfo(name.c_str(), nullptr, &hints, &first); code != 0) {
    return base::Error{base::ErrorCode::kUnavailable, gai_strerror(code)};
  }
  std::vector<std::string> out;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) out.emplace_back(text);
  }
  freeaddrinfo(first);
  return out;
}

// Paths that the pattern means, in order. A pattern without '*' is a path, there or not.
std::vector<std::string> paths_of(const std::string& pattern) {
  const std::filesystem::path path(pattern);
  const std::string name = path.filename().string();
  if (name.find('*') == std::string::npos) return {pattern};
  std::vector<std::string> out;
  std::error_code error;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().string();
    const bool is_hidden = file.starts_with('.') && !name.starts_with('.');
    if (!is_hidden && jobs::glob_matches(name, file)) out.push_back((path.parent_path() / file).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Changes whenever the file does; 0 when it is not there.
std::uint64_t version_of(const std::string& path) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) return 0;
  const std::string all = std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec) + "." +
                          std::to_string(s.st_size) + "." + std::to_string(s.st_ino);
  return std::max<std::uint64_t>(sources::target_hash(all), 1);
}

}  // namespace

struct TargetDiscovery::Lookup {
  std::mutex mutex;
  std::optional<base::Result<std::vector<std::string>>> answer;
};

base::Result<TargetDiscovery> TargetDiscovery::create(DiscoveryOptions options) {
  if (options.shard_count == 0 || options.shard_index >= options.shard_count) {
    return base::Error{base::ErrorCode::kInvalid, "shard " + std::to_string(options.shard_index) + " of " +
                                                      std::to_string(options.shard_count) +
                                                      ": expected an index from 0 and below the count"};
  }
  if (!options.resolve) options.resolve = resolve_with_system;
  TargetDiscovery discovery(std::move(options));
  for (const std::string& entry : discovery.options_.targets) {
    FLOPSIGHT_ASSIGN_OR_RETURN(sources::ScrapeTarget target, sources::parse_scrape_target(entry));
    discovery.fixed_.push_back(std::move(target));
  }
  for (const std::string& entry : discovery.options_.dns) {
    Name name;
    FLOPSIGHT_ASSIGN_OR_RETURN(name.spec, sources::parse_scrape_target(entry));
    const std::string& url = name.spec.url;
    const std::size_t authority = url.find("://") + 3;
    const std::size_t end = std::min(url.find_first_of("/?", authority), url.size());
    const std::size_t at = url.rfind('@', end);
    name.host_at = at == std::string::npos || at < authority ? authority : at + 1;
    name.host = url.substr(name.host_at, std::min(url.find(':', name.host_at), end) - name.host_at);
    if (name.host.starts_with('[')) {
      return base::Error{base::ErrorCode::kInvalid, "dns " + base::printable(entry) + ": expected a name, not an address"};
    }
    discovery.names_.push_back(std::move(name));
  }
  return discovery;
}

bool TargetDiscovery::refresh(Clock::time_point now) {
  bool changed = false;
  if (now >= files_due_) {
    changed = refresh_files();
    files_due_ = now + options_.file_refresh;
  }
  return refresh_names(now) || changed;
}

TargetDiscovery::Clock::time_point TargetDiscovery::next(Clock::time_point now) const {
  Clock::time_point next = options_.file_sd.empty() ? now + std::chrono::hours(1) : files_due_;
  for (const Name& name : names_) next = std::min(next, name.lookup ? now + kLookupPoll : name.due);
  return next;
}

bool TargetDiscovery::refresh_files() {
  bool changed = false;
  std::map<std::string, File> now;
  std::vector<std::string> problems;
  for (const std::string& pattern : options_.file_sd) {
    const std::vector<std::string> paths = paths_of(pattern);
    if (paths.empty()) problems.push_back(pattern + ": no file matches");
    for (const std::string& path : paths) {
      if (now.count(path) > 0) continue;
      const auto known = files_.find(path);
      File file = known == files_.end() ? File{} : std::move(known->second);
      const std::uint64_t version = version_of(path);
      if (version != file.version || version == 0) {
        read(path, file);
        file.version = version;
        changed = true;
      }
      now.emplace(path, std::move(file));
    }
  }
  changed = changed || now.size() != files_.size() || problems != pattern_problems_;
  files_ = std::move(now);
  pattern_problems_ = std::move(problems);
  return changed;
}

// A document with a mistake leaves the targets as they were: half a file that is being written must not end a scrape.
void TargetDiscovery::read(const std::string& path, File& file) const {
  file.problem.clear();
  const auto text = base::read_file(path, kFileBytesMax);
  if (!text.ok()) {
    file.problem = base::printable(text.error().message, 500);
    if (text.error().code == base::ErrorCode::kNotFound) file.targets.clear();
    return;
  }
  auto targets = sources::parse_file_sd(*text, path, options_.targets_max);
  if (targets.ok()) {
    file.targets = std::move(targets).value();
  } else {
    file.problem = base::printable(targets.error().message, 500);
    if (!file.targets.empty()) file.problem += "; its " + std::to_string(file.targets.size()) + " targets of before are kept";
  }
}

std::shared_ptr<TargetDiscovery::Lookup> TargetDiscovery::begin_lookup(const std::string& host,
                                                                       const DiscoveryOptions& options) {
  auto lookup = std::make_shared<Lookup>();
  std::thread([lookup, host, resolve = options.resolve] {
    auto answer = resolve(host);
    const std::scoped_lock guard(lookup->mutex);
    lookup->answer.emplace(std::move(answer));
  }).detach();
  return lookup;
}

bool TargetDiscovery::refresh_names(Clock::time_point now) {
  bool changed = false;
  for (Name& name : names_) {
    if (!name.lookup) {
      if (now >= name.due) name.lookup = begin_lookup(name.host, options_);
      continue;
    }
    std::optional<base::Result<std::vector<std::string>>> answer;
    {
      const std::scoped_lock guard(name.lookup->mutex);
      answer.swap(name.lookup->answer);
    }
    if (!answer) continue;
    name.lookup.reset();
    name.due = now + options_.dns_refresh;
    changed = true;
    name.problem.clear();
    if (!answer->ok() || (*answer)->empty()) {
      name.problem = "dns " + base::printable(name.host) + ": " +
                     (answer->ok() ? "no address" : base::printable(answer->error().message, 300));
      continue;
    }
    name.addresses = std::move(*answer).value();
    std::sort(name.addresses.begin(), name.addresses.end());
  }
  return changed;
}

std::vector<sources::ScrapeTarget> TargetDiscovery::targets() const {
  std::vector<sources::ScrapeTarget> out;
  std::unordered_set<std::string> seen;
  left_out_ = 0;
  const auto add = [&](const sources::ScrapeTarget& target) {
    if (sources::target_hash(target.url) % options_.shard_count != options_.shard_index) return;
    if (!seen.insert(target.url).second) return;
    if (out.size() < options_.targets_max) {
      out.push_back(target);
    } else {
      ++left_out_;
    }
  };
  for (const sources::ScrapeTarget& target : fixed_) add(target);
  for (const auto& [path, file] : files_) {
    for (const sources::ScrapeTarget& target : file.targets) add(target);
  }
  for (const Name& name : names_) {
    for (const std::string& address : name.addresses) {
      sources::ScrapeTarget target = name.spec;
      const bool is_v6 = address.find(':') != std::string::npos;
      target.url.replace(name.host_at, name.host.size(), is_v6 ? "[" + address + "]" : address);
      add(target);
    }
  }
  return out;
}

std::vector<std::string> TargetDiscovery::problems() const {
  std::vector<std::string> out = pattern_problems_;
  for (const auto& [path, file] : files_) {
    if (!file.problem.empty()) out.push_back(file.problem);
  }
  for (const Name& name : names_) {
    if (!name.problem.empty()) out.push_back(name.problem);
  }
  if (left_out_ > 0) {
    out.push_back(std::to_string(left_out_) + " targets left out, over the limit of " + std::to_string(options_.targets_max));
  }
  return out;
}

}  // namespace flopsight::app
