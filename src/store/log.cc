#include "store/log.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "wire/crc32.h"

namespace flopsight::store {
namespace {

constexpr std::string_view kMagic{"FSLOG\n1\n", 8};
// Magic, number and bytes of the segment before (0 and 0: none), crc32 of those two: 24 bytes, little-endian.
constexpr std::size_t kSegmentHeadBytes = 24;
// body bytes, crc32 of the rest of the record, kind, three zeros, time: 20 bytes, little-endian.
constexpr std::size_t kHeadBytes = 20;
constexpr std::uint32_t kBodyBytesMax = 256U << 20;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

std::uint64_t get(std::string_view bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)])} << (8 * i);
  }
  return value;
}

std::string record_head(const LogRecord& record) {
  std::string checked;
  put(checked, static_cast<std::uint8_t>(record.kind), 1);
  put(checked, 0, 3);
  put(checked, static_cast<std::uint64_t>(record.time.unix_milliseconds), 8);
  std::string head;
  put(head, record.body.size(), 4);
  put(head, wire::crc32(record.body, wire::crc32(checked)), 4);
  return head + checked;
}

// The record at `at`, or why there is none.
base::Result<LogRecord> record_at(std::string_view bytes, std::size_t at) {
  const auto damaged = [&](const char* what) {
    return base::Error{base::ErrorCode::kCorrupt, "byte " + std::to_string(at) + ": " + what};
  };
  if (bytes.size() - at < kHeadBytes) return damaged("a record's head is cut");
  const std::uint64_t size = get(bytes, at, 4);
  if (size > kBodyBytesMax) return damaged("a length that no record has");
  if (bytes.size() - at - kHeadBytes < size) return damaged("a record is cut");
  const std::string_view checked = bytes.substr(at + 8, kHeadBytes - 8 + size);
  if (wire::crc32(checked) != get(bytes, at + 4, 4)) return damaged("a checksum differs");
  LogRecord record;
  const std::uint64_t kind = get(checked, 0, 1);
  if (kind < 1 || kind > 3) return damaged("a kind of record that this version does not know");
  record.kind = static_cast<LogKind>(kind);
  record.time.unix_milliseconds = static_cast<std::int64_t>(get(checked, 4, 8));
  record.body = checked.substr(kHeadBytes - 8);
  return record;
}

std::string segment_head(std::uint32_t previous, std::uint64_t previous_bytes) {
  std::string head(kMagic);
  std::string checked;
  put(checked, previous, 4);
  put(checked, previous_bytes, 8);
  head += checked;
  put(head, wire::crc32(checked), 4);
  return head;
}

bool has_head(std::string_view bytes) {
  return bytes.size() >= kSegmentHeadBytes && bytes.substr(0, kMagic.size()) == kMagic &&
         wire::crc32(bytes.substr(8, 12)) == get(bytes, 20, 4);
}

// Hands the records of one segment over; where and why it stopped. `why` is empty at its end.
struct Scan {
  std::size_t at = 0;
  std::uint64_t records = 0;
  std::string why;
};
Scan scan_segment(std::string_view bytes, const std::function<void(const LogRecord&)>& sink) {
  Scan scan;
  if (!has_head(bytes)) {
    scan.why = "byte 0: not the head of a segment of this version";
    return scan;
  }
  scan.at = kSegmentHeadBytes;
  while (scan.at < bytes.size()) {
    const base::Result<LogRecord> record = record_at(bytes, scan.at);
    if (!record.ok()) {
      scan.why = record.error().message;
      break;
    }
    sink(*record);
    ++scan.records;
    scan.at += kHeadBytes + record->body.size();
  }
  return scan;
}

// Whether a whole record lies anywhere behind `at`: then what stands there was no record that a crash cut.
bool has_record_after(std::string_view bytes, std::size_t at) {
  for (std::size_t i = at + 1; i + kHeadBytes <= bytes.size(); ++i) {
    // Cheap before the checksum: kind, and the zeros after it.
    if (bytes[i + 8] >= 1 && bytes[i + 8] <= 3 && get(bytes, i + 9, 3) == 0 && record_at(bytes, i).ok()) return true;
  }
  return false;
}

std::string name_of(std::uint32_t segment) {
  std::string digits = std::to_string(segment);
  return std::string(10 - digits.size(), '0') + digits + ".log";
}

std::optional<std::uint32_t> number_of(std::string_view name) {
  if (name.size() != 14 || name.substr(10) != ".log") return std::nullopt;
  const auto number = base::parse_number(name.substr(0, 10));
  if (!number || *number < 1 || *number > 4e9) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

base::Result<std::vector<std::uint32_t>> segments_of(Disk& disk, const std::string& folder) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.list(folder));
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : names) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

Log::Log(Disk& disk, std::string folder, LogOptions options)
    : disk_(disk), folder_(std::move(folder)), options_(options) {}

std::string Log::path_of(std::uint32_t segment) const { return folder_ + "/" + name_of(segment); }

base::Result<std::unique_ptr<Log>> Log::open(Disk& disk, const std::string& folder, LogOptions options, std::uint32_t number_min) {
  FLOPSIGHT_RETURN_IF_ERROR(disk.make_folder(folder));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> numbers, segments_of(disk, folder));
  std::unique_ptr<Log> log(new Log(disk, folder, options));
  log->number_min_ = number_min;
  for (const std::uint32_t number : numbers) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t bytes, disk.size(log->path_of(number)));
    log->segments_.push_back({number, bytes, nullptr, false});
  }
  FLOPSIGHT_RETURN_IF_ERROR(log->scan_last());
  if (const base::Status started = log->start_segment(); !started.ok() && started.error().code != base::ErrorCode::kLimit) return started.error();
  return log;
}

// Of the segment that a crash may have left only what can be read counts. Damage with records behind it stays within its length, which the next
// segment tells: it is said at every start for as long as it is read.
base::Status Log::scan_last() {
  if (segments_.empty()) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string bytes, disk_.read(path_of(segments_.back().number)));
  const std::size_t readable = scan_segment(bytes, [](const LogRecord&) {}).at;
  segments_.back().bytes = has_record_after(bytes, readable) ? bytes.size() : readable;
  return {};
}

base::Status Log::start_segment() {
  const std::uint32_t number = std::max(number_min_, segments_.empty() ? 1 : segments_.back().number + 1);
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file, disk_.create(path_of(number)));
  Segment segment{number, kSegmentHeadBytes, std::shared_ptr<DiskFile>(std::move(file)), false};
  const base::Status written = segment.file->append(
      segments_.empty() ? segment_head(0, 0) : segment_head(segments_.back().number, segments_.back().bytes), "");
  if (!written.ok()) {
    segment.file.reset();
    // A file without its head would read as damage later; if it cannot be removed it is empty and harmless.
    if (const base::Status removed = disk_.remove(path_of(number)); !removed.ok()) return removed;
    return written;
  }
  segments_.push_back(std::move(segment));
  return {};
}

// Asked every time, as others write on the disk too; a record waits for a sync, beside which this is nothing.
base::Status Log::look_for_room(std::uint64_t bytes) const {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t free, disk_.free_bytes(folder_));
  if (free >= options_.free_bytes_min + bytes) return {};
  return base::Error{base::ErrorCode::kLimit, folder_ + ": the disk has " + std::to_string(free) + " bytes left, and " +
                                                  std::to_string(options_.free_bytes_min) + " are kept free"};
}

base::Result<LogPosition> Log::append(const LogRecord& record) {
  const std::scoped_lock lock(mutex_);
  std::uint64_t total = 0;
  for (const Segment& segment : segments_) total += segment.bytes;
  const std::uint64_t size = kHeadBytes + record.body.size();
  if (record.body.size() > kBodyBytesMax || total + size > options_.bytes_max) {
    return base::Error{base::ErrorCode::kLimit, folder_ + ": the log would pass its " +
                                                    std::to_string(options_.bytes_max) + " bytes"};
  }
  FLOPSIGHT_RETURN_IF_ERROR(look_for_room(size));
  if (segments_.empty() || segments_.back().failed || segments_.back().file == nullptr ||
      segments_.back().bytes > options_.segment_bytes) {
    FLOPSIGHT_RETURN_IF_ERROR(start_segment());
  }
  Segment& current = segments_.back();
  if (const base::Status appended = current.file->append(record_head(record), record.body); !appended.ok()) {
    if (!current.file->truncate(current.bytes).ok()) current.failed = true;
    return appended.error();
  }
  current.bytes += size;
  return LogPosition{current.number, current.bytes};
}

base::Status Log::sync(LogPosition position) {
  std::unique_lock lock(mutex_);
  while (durable_ < position) {
    if (position <= failed_) {
      return base::Error{base::ErrorCode::kIo, folder_ + ": what was written could not be made durable"};
    }
    if (syncing_) {
      synced_.wait(lock);
      continue;
    }
    syncing_ = true;
    // Every segment with something that is not durable, oldest first: an older one was left by rotation.
    std::vector<std::pair<std::shared_ptr<DiskFile>, std::uint32_t>> files;
    for (const Segment& segment : segments_) {
      if (segment.file != nullptr && segment.number >= durable_.segment) files.emplace_back(segment.file, segment.number);
    }
    const LogPosition upto{segments_.back().number, segments_.back().bytes};
    lock.unlock();
    std::uint32_t failed_segment = 0;
    for (const auto& [file, number] : files) {
      if (!file->sync().ok()) failed_segment = number;
    }
    lock.lock();
    syncing_ = false;
    if (failed_segment != 0) {
      for (Segment& segment : segments_) segment.failed = segment.failed || segment.number <= failed_segment;
      failed_ = std::max(failed_, upto);
    } else {
      durable_ = std::max(durable_, upto);
      for (Segment& segment : segments_) {
        if (segment.number < upto.segment) segment.file.reset();
      }
    }
    synced_.notify_all();
  }
  return {};
}

base::Status Log::rotate() {
  const std::scoped_lock lock(mutex_);
  if (!segments_.empty() && segments_.back().file != nullptr && segments_.back().bytes == kSegmentHeadBytes &&
      !segments_.back().failed) {
    return {};
  }
  return start_segment();
}

base::Status Log::drop_before(std::uint32_t segment) {
  const std::scoped_lock lock(mutex_);
  while (segments_.size() > 1 && segments_.front().number < segment) {
    FLOPSIGHT_RETURN_IF_ERROR(disk_.remove(path_of(segments_.front().number)));
    segments_.erase(segments_.begin());
  }
  return {};
}

std::uint32_t Log::first_segment() const {
  const std::scoped_lock lock(mutex_);
  return segments_.empty() ? 0 : segments_.front().number;
}

std::uint32_t Log::current_segment() const {
  const std::scoped_lock lock(mutex_);
  return segments_.empty() ? 0 : segments_.back().number;
}

std::uint64_t Log::bytes() const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t total = 0;
  for (const Segment& segment : segments_) total += segment.bytes;
  return total;
}

namespace {

std::string range_of(std::uint32_t first, std::uint32_t last) {
  return first == last ? name_of(first) + " is" : name_of(first) + " to " + name_of(last) + " are";
}

}  // namespace

base::Result<LogReplay> Log::replay(
    Disk& disk, const std::string& folder, std::uint32_t first,
    const std::function<void(std::uint32_t segment, const LogRecord&)>& sink, bool is_begun) {
  LogReplay report;
  FLOPSIGHT_RETURN_IF_ERROR(disk.make_folder(folder));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> numbers, segments_of(disk, folder));
  std::string before;  // the segment before, held back until its true length is known
  std::uint32_t before_number = 0;
  const auto finish = [&](std::optional<std::uint64_t> length) {
    if (before_number == 0) return;
    const std::uint32_t number = before_number;
    const std::string_view whole = before;
    const std::string_view bytes = whole.substr(0, std::min<std::uint64_t>(whole.size(), length.value_or(whole.size())));
    const Scan scan = scan_segment(bytes, [&](const LogRecord& record) {
      report.bytes += kHeadBytes + record.body.size();
      sink(number, record);
    });
    report.records += scan.records;
    const std::string where = folder + "/" + name_of(number) + ": ";
    if (!length && has_record_after(whole, scan.at)) length = whole.size();
    if (!length) {
      report.torn_tail_bytes += whole.size() - scan.at;
      if (!scan.why.empty()) report.torn.push_back(where + scan.why + "; " + std::to_string(whole.size() - scan.at) + " bytes from there on");
    } else if (scan.at < *length) {
      report.lost_bytes += *length - scan.at;
      report.damage.push_back(where + (scan.why.empty() ? "it is too short" : scan.why) +
                              "; " + std::to_string(*length - scan.at) + " bytes from there on are lost");
    }
  };
  const auto missing = [&](std::uint32_t from, std::uint32_t last) {
    report.damage.push_back(folder + ": " + range_of(from, last) + " not there, and was to be read; what it held is lost unless the store has it");
  };
  for (const std::uint32_t number : numbers) {
    if (number < first) continue;
    FLOPSIGHT_ASSIGN_OR_RETURN(std::string bytes, disk.read(folder + "/" + name_of(number)));
    const std::uint64_t previous = has_head(bytes) ? get(bytes, 8, 4) : before_number;
    const bool follows = before_number != 0 && has_head(bytes) && previous == before_number;
    finish(follows ? std::optional(get(bytes, 12, 8)) : std::nullopt);
    // What it follows is no more, or was never: a number is passed over where a segment could not be begun.
    if (before_number == 0 && number > first && (is_begun || previous >= first)) missing(first, number - 1);
    if (before_number != 0 && previous > before_number) missing(before_number + 1, number - 1);
    before = std::move(bytes);
    before_number = number;
  }
  finish(std::nullopt);
  if (before_number == 0 && is_begun) missing(first, first);
  return report;
}

}  // namespace flopsight::store
