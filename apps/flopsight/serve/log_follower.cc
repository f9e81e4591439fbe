#include "serve/log_follower.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/zone.h"
#include "parse_file.h"

namespace flopsight::app {

namespace {

constexpr std::size_t kReadBeforeMax = 100'000;  // renamed files that are known; then they would be read again

}  // namespace

using training_logs::Reader;

struct LogFollower::Source {
  LogSource said;
  std::optional<base::Regex> job_regex;
  training_logs::Options options;
};

struct LogFollower::File {
  std::string path;
  std::string job;
  const Source* source = nullptr;
  std::optional<LogFile> file;
  std::optional<Reader> reader;
  std::uint64_t head_bytes = 0;
  base::Hash128 head;
  std::string first_format;
  bool done = false;
  bool gone = false;  // no pattern names it any more
  std::optional<units::Instant> grew;
  bool given_out = true;  // the last steps, after it grew no more
  FollowedFile state;
};

LogFollower::LogFollower(LogFollower&&) noexcept = default;
LogFollower& LogFollower::operator=(LogFollower&&) noexcept = default;
LogFollower::~LogFollower() = default;

base::Result<LogFollower> LogFollower::create(std::vector<LogSource> sources, Options options) {
  LogFollower follower;
  follower.options_ = options;
  for (LogSource& said : sources) {
    const std::string where = "line " + std::to_string(said.line);
    Source source;
    source.options.format = said.format;
    if (!said.format.empty() && !training_logs::known_format(said.format)) {
      return base::Error{base::ErrorCode::kInvalid, where + ": format: found \"" + base::printable(said.format, 60) + "\", expected " +
                                                        training_logs::format_names()};
    }
    if (!said.zone.empty()) {
      FLOPSIGHT_ASSIGN_OR_RETURN(base::Zone zone, base::Zone::find(said.zone).within(where));
      source.options.zone = std::move(zone);
    }
    if (!said.job_regex.empty()) {
      FLOPSIGHT_ASSIGN_OR_RETURN(base::Regex regex, base::Regex::parse(said.job_regex).within(where));
      if (!regex.group("job")) {
        return base::Error{base::ErrorCode::kInvalid, where + ": job-regex: expected a group (?P<job>…)"};
      }
      source.job_regex.emplace(std::move(regex));
    }
    if (!said.pattern_file.empty()) {
      FLOPSIGHT_ASSIGN_OR_RETURN(training_logs::PatternFile patterns,
                                 parse_file(said.pattern_file, &training_logs::PatternFile::parse).within(where));
      source.options.patterns = std::make_shared<const training_logs::PatternFile>(std::move(patterns));
    }
    source.said = std::move(said);
    follower.sources_.push_back(std::move(source));
  }
  return follower;
}

void LogFollower::restore(LogPosition position) {
  std::string path = position.path;
  restored_.insert_or_assign(std::move(path), std::move(position));
}

// Which files there are now.
void LogFollower::look(units::Instant now) {
  std::set<FileIdentity> followed;
  for (auto& [path, file] : files_) {
    file->gone = true;
    if (file->file) followed.insert(file->file->identity());
  }
  left_out_total_ = 0;
  for (const Source& source : sources_) {
    for (const std::string& path : matching_paths(source.said.path)) {
      const auto known = files_.find(path);
      if (known != files_.end()) {
        known->second->gone = false;
        continue;
      }
      if (files_.size() >= options_.files_max) {
        ++left_out_total_;
        continue;
      }
      base::Result<LogFile> opened = LogFile::open(path, false);
      // A log that was renamed, and whose rest is still to be read under its old name.
      if (opened.ok() && (was_read(*opened) || !followed.insert(opened->identity()).second)) continue;
      auto file = std::make_unique<File>();
      file->path = file->state.path = path;
      file->source = &source;
      file->job = source.said.job;
      std::vector<std::optional<std::string_view>> groups;
      if (source.job_regex && source.job_regex->match(path, groups)) {
        const std::optional<std::string_view>& job = groups[*source.job_regex->group("job")];
        if (job) file->job = std::string(*job);
      }
      file->state.job = file->job;
      file->grew = now;
      if (opened.ok()) {
        file->file.emplace(std::move(*opened));
        begin(*file, true);
      } else {
        file->state.error = opened.error().message;
      }
      files_.emplace(path, std::move(file));
    }
  }
}

// Whether this is a file that was read to its end under another name.
bool LogFollower::was_read(const LogFile& file) const {
  const auto known = read_before_.find(file.identity());
  if (known == read_before_.end()) return false;
  const base::Result<std::string> head = file.head(static_cast<std::size_t>(known->second.first));
  return head.ok() && base::hash128(*head) == known->second.second;
}

// A reader for a file that was just opened, where it was left or at its start.
void LogFollower::begin(File& file, bool restored) {
  file.reader.emplace(file.source->options);
  file.done = false;
  file.head_bytes = 0;
  file.first_format.clear();
  const auto position = restored ? restored_.find(file.path) : restored_.end();
  if (position == restored_.end()) return;
  const LogPosition& at = position->second;
  const base::Result<std::string> head = file.file->head(static_cast<std::size_t>(at.head_bytes));
  const base::Result<std::uint64_t> size = file.file->size_bytes();
  const bool same = head.ok() && size.ok() && head->size() == at.head_bytes && base::hash128(*head) == at.head &&
                    at.identity == file.file->identity() && (at.done || *size >= at.at.offset_bytes);
  if (same) file.first_format = at.format;
  if (same && at.done) {
    file.done = true;
  } else if (same && !file.file->compressed()) {
    constexpr std::size_t kContextBytes = std::size_t{256} << 10;  // where frameworks print their settings
    const base::Result<std::string> context = file.file->head(std::min<std::size_t>(kContextBytes, at.at.offset_bytes));
    file.reader->resume(context.ok() ? *context : std::string(), at.at);
    file.file->seek(at.at.offset_bytes);
  }
  restored_.erase(position);
}

LogPosition LogFollower::position_of(const File& file) const {
  LogPosition position;
  position.path = file.path;
  position.identity = file.file->identity();
  position.at = file.reader->resume_at();
  position.head_bytes = file.head_bytes;
  position.head = file.head;
  position.done = file.done;
  position.format = file.first_format;
  return position;
}

void LogFollower::give(File& file, std::vector<training_logs::Taken> taken, const LogPosition& position, const Take& take) {
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (file.first_format.empty()) file.first_format = taken[i].format;
    file.state.steps_total += taken[i].steps.size();
    FollowedSteps followed{file.path, file.job, taken[i].format, std::move(taken[i].steps), file.reader->settings(), taken[i].format != file.first_format, {}};
    if (i + 1 == taken.size()) followed.position = position;
    if (followed.position) followed.position->format = file.first_format;
    take(followed);
  }
}

// Whether the path names another file now, or the file was cut: then the old one is read to its end, and the new one begun.
bool LogFollower::replaced(File& file, const Take& take) {
  base::Result<LogFile> now = LogFile::open(file.path, false);
  if (!now.ok()) return false;  // renamed, and nothing in its place yet
  const bool other = now->identity() != file.file->identity();
  bool cut = false;
  if (!other && !file.file->compressed()) {
    const base::Result<std::uint64_t> size = file.file->size_bytes();
    const base::Result<std::string> head = file.file->head(static_cast<std::size_t>(file.head_bytes));
    cut = (size.ok() && *size < file.file->offset_bytes()) || (head.ok() && base::hash128(*head) != file.head && file.head_bytes > 0);
  }
  if (!other && !cut) return false;
  if (other) {
    if (read_before_.size() >= kReadBeforeMax) read_before_.clear();
    read_before_[file.file->identity()] = {file.head_bytes, file.head};
    while (true) {
      const base::Result<std::size_t> rest = file.file->read(LogFile::kReadBytes, [&](std::string_view bytes) { file.reader->feed(bytes); });
      if (!rest.ok() || *rest == 0) break;
      file.state.bytes_read_total += *rest;
      std::vector<training_logs::Taken> steps = file.reader->take();
      give(file, std::move(steps), position_of(file), take);
    }
  }
  give(file, file.reader->close(), {file.path, now->identity(), {0, 1}, 0, {}, false, {}}, take);
  file.file.emplace(std::move(*now));
  ++file.state.rotations_total;
  begin(file, false);
  return true;
}

std::size_t LogFollower::read(File& file, std::size_t bytes_max, units::Instant now, const Take& take) {
  if (!file.file) {
    base::Result<LogFile> opened = LogFile::open(file.path, false);
    if (!opened.ok()) {
      file.state.error = opened.error().message;
      return 0;
    }
    file.file.emplace(std::move(*opened));
    begin(file, true);
  }
  std::size_t total = 0;
  while (total < bytes_max && !file.done) {
    const base::Result<std::size_t> got =
        file.file->read(std::min(bytes_max - total, LogFile::kReadBytes), [&](std::string_view bytes) { file.reader->feed(bytes); });
    if (!got.ok()) {
      file.state.error = got.error().message;
      file.done = file.file->compressed();  // damaged: what came before it is kept
      break;
    }
    file.state.error.clear();
    if (*got == 0) break;
    total += *got;
  }
  if (total > 0) {
    file.grew = now;
    file.given_out = false;
    file.state.bytes_read_total += total;
    if (file.head_bytes < LogFile::kHeadBytes) {
      const base::Result<std::string> head = file.file->head(std::min<std::size_t>(LogFile::kHeadBytes, file.file->offset_bytes()));
      if (head.ok()) {
        file.head_bytes = head->size();
        file.head = base::hash128(*head);
      }
    }
  }
  std::vector<training_logs::Taken> steps = file.reader->take();
  give(file, std::move(steps), position_of(file), take);
  const bool compressed_end = file.file->compressed() && total < bytes_max && !file.done;
  if (compressed_end) {
    const base::Status whole = file.file->finish();
    // One that is still being written ends later.
    if (!whole.ok()) file.state.error = whole.error().message;
    if (whole.ok()) file.done = true;
  }
  const bool quiet = file.grew && (now - *file.grew).value >= options_.quiet.value;
  if (!file.given_out && total == 0 && (quiet || file.done)) {
    file.given_out = true;
    steps = file.reader->close_open();
    give(file, std::move(steps), position_of(file), take);
  }
  return total;
}

bool LogFollower::poll(units::Instant now, const Take& take) {
  look(now);
  std::size_t left = options_.poll_bytes_max;
  std::vector<File*> order;
  for (auto at = files_.lower_bound(next_); at != files_.end(); ++at) order.push_back(at->second.get());
  for (auto at = files_.begin(); at != files_.lower_bound(next_); ++at) order.push_back(at->second.get());
  bool more = false;
  for (File* file : order) {
    if (left == 0) {
      next_ = file->path;
      more = true;
      break;
    }
    const std::size_t most = std::min(left, options_.piece_bytes);
    const std::size_t got = read(*file, most, now, take);
    left -= got;
    more |= got == most;
    // Only a file that has no more to say can have been replaced by another.
    if (got < most && file->file && replaced(*file, take)) more = true;
  }
  for (auto at = files_.begin(); at != files_.end();) {
    File& file = *at->second;
    const bool quiet = file.grew && (now - *file.grew).value >= options_.quiet.value;
    if (file.gone && (quiet || !file.file)) {
      if (file.file && file.reader) {
        std::vector<training_logs::Taken> steps = file.reader->close_open();
        give(file, std::move(steps), position_of(file), take);
      }
      at = files_.erase(at);
    } else {
      ++at;
    }
  }
  return more;
}

std::vector<LogPosition> LogFollower::positions() const {
  std::vector<LogPosition> out;
  for (const auto& [path, file] : files_) {
    if (file->file && file->reader) out.push_back(position_of(*file));
  }
  return out;
}

std::vector<FollowedFile> LogFollower::files() const {
  std::vector<FollowedFile> out;
  for (const auto& [path, file] : files_) out.push_back(file->state);
  return out;
}

}  // namespace flopsight::app
