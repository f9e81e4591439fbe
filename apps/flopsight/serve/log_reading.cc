#include "serve/log_reading.h"

#include <chrono>

#include "base/json.h"
#include "base/text.h"
#include "jobs/job_name.h"
#include "parse_file.h"

namespace flopsight::app {
namespace {

using base::json::Object;
using base::json::Value;

constexpr std::string_view kNotePrefix = "log ";
constexpr auto kPollInterval = std::chrono::seconds(5);
constexpr std::size_t kNotesMax = 100;

// 64 bits do not fit JSON's numbers.
std::string digits(std::uint64_t number) { return std::to_string(number); }

std::optional<std::uint64_t> number_in(const Value& root, std::string_view key) {
  const Value* value = root.find(key);
  if (value == nullptr || value->as_string() == nullptr || value->as_string()->empty() || value->as_string()->size() > 20) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  for (const char c : *value->as_string()) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

}  // namespace

std::string log_position_text(const LogPosition& position) {
  return base::json::dump(Object{{"path", position.path},
                                 {"device", digits(position.identity.device)},
                                 {"inode", digits(position.identity.inode)},
                                 {"offset", digits(position.at.offset_bytes)},
                                 {"line", digits(position.at.line)},
                                 {"head_bytes", digits(position.head_bytes)},
                                 {"head_low", digits(position.head.low)},
                                 {"head_high", digits(position.head.high)},
                                 {"done", position.done},
                                 {"format", position.format}},
                          0);
}

std::optional<LogPosition> parse_log_position(std::string_view text) {
  const auto root = base::json::parse(text);
  if (!root.ok()) return std::nullopt;
  LogPosition position;
  const Value* path = root->find("path");
  const Value* done = root->find("done");
  if (path == nullptr || path->as_string() == nullptr || done == nullptr || done->as_bool() == nullptr) return std::nullopt;
  position.path = *path->as_string();
  position.done = *done->as_bool();
  const Value* format = root->find("format");  // not there in those of before it was kept
  if (format != nullptr && format->as_string() != nullptr) position.format = *format->as_string();
  for (const auto& [key, field] : {std::pair{"device", &position.identity.device},
                                   {"inode", &position.identity.inode},
                                   {"offset", &position.at.offset_bytes},
                                   {"line", &position.at.line},
                                   {"head_bytes", &position.head_bytes},
                                   {"head_low", &position.head.low},
                                   {"head_high", &position.head.high}}) {
    const auto number = number_in(*root, key);
    if (!number) return std::nullopt;
    *field = *number;
  }
  return position;
}

base::Result<LogFollower> read_log_sources(const std::string& sources_path) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<LogSource> sources, parse_file(sources_path, training_logs::parse_log_sources));
  for (const LogSource& source : sources) {
    if (!source.job.empty() || !source.job_regex.empty()) continue;
    return base::Error{base::ErrorCode::kInvalid,
                       sources_path + ": line " + std::to_string(source.line) + ": a source without job or job-regex, expected whose log it is"};
  }
  auto follower = LogFollower::create(std::move(sources));
  if (!follower.ok()) return follower.error().within(sources_path);
  return follower;
}

base::Result<std::unique_ptr<LogReading>> LogReading::start(const std::string& sources_path, JobService& jobs,
                                                            std::function<units::Instant()> now) {
  auto follower = read_log_sources(sources_path);
  if (!follower.ok()) return follower.error();
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::string> notes, jobs.book().notes(kNotePrefix));
  for (const std::string& note : notes) {
    if (auto position = parse_log_position(note)) follower->restore(std::move(*position));
  }
  std::unique_ptr<LogReading> reading(new LogReading(std::move(follower).value(), jobs, std::move(now)));
  reading->thread_ = std::thread([raw = reading.get()] { raw->run(); });
  return reading;
}

LogReading::~LogReading() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LogReading::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const bool more = follower_.poll(now_(), [this](const FollowedSteps& followed) { keep(followed); });
    std::vector<FollowedFile> files = follower_.files();
    lock.lock();
    note_errors(files);
    files_ = std::move(files);
    if (!more) wake_.wait_for(lock, kPollInterval, [this] { return stopping_; });
  }
}

// What became wrong with a file since it was looked at last.
void LogReading::note_errors(const std::vector<FollowedFile>& files) {
  std::set<std::string> failing;
  for (const FollowedFile& file : files) {
    if (file.error.empty()) continue;
    if (!failing_.contains(file.path) && notes_.size() < kNotesMax) notes_.push_back(file.error);
    failing.insert(file.path);
  }
  failing_ = std::move(failing);
}

void LogReading::keep(const FollowedSteps& followed) {
  base::Status kept;
  if (followed.job.empty()) {
    // Once a file, as long as there are not too many of them.
    if (jobless_.size() < kNotesMax && jobless_.insert(followed.path).second) {
      const std::scoped_lock lock(mutex_);
      notes_.push_back(followed.path + ": job-regex finds no job in its path");
    }
  } else {
    const auto holder = jobs::parse_job_text(followed.job);
    store::ReportedKey key{holder ? holder->job : followed.job, holder ? holder->name_space : "", "log " + followed.path + (followed.of_another_framework ? ", " + followed.format : "")};
    kept = jobs_.tell_reported(key, followed.format, followed.steps, now_());
  }
  // After the steps: killed in between, they are read again, and a step that is told twice is one.
  if (kept.ok() && followed.position) kept = jobs_.book().put_note(std::string(kNotePrefix) + followed.path, log_position_text(*followed.position));
  if (kept.ok()) return;
  const std::scoped_lock lock(mutex_);
  if (notes_.size() < kNotesMax) notes_.push_back(followed.path + ": " + kept.error().message);
}

std::vector<FollowedFile> LogReading::files() const {
  const std::scoped_lock lock(mutex_);
  return files_;
}

std::vector<std::string> LogReading::take_notes() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(notes_, {});
}

}  // namespace flopsight::app
