#pragma once
// The write-ahead log: what was received, as it was received, in numbered segments, durable before it is
// acknowledged. After a crash the service reads it again through the same code that took it in the first time.
//
// Format: docs/formats/log.md. Each record has a checksum; a record that is cut or does not match ends its segment.
// Each segment's head says how long the one before it was when it was left, so that what a crash leaves of a record
// that was never acknowledged is told from damage: that is lost data, and the replay says how much.
// A failed append leaves no trace: the file is cut back, or, if that fails too, the segment is given up for a new one. A failed
// sync gives the segment up as well, since the kernel may have dropped the pages (a later sync would succeed and mean nothing).
// Threads: append, rotate and drop_before under one lock of the caller's; sync from any number of threads at once.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/disk.h"
#include "units/time.h"

namespace flopsight::store {

enum class LogKind : std::uint8_t {
  kRemoteWrite1 = 1,  // body: as received, compressed
  kRemoteWrite2 = 2,
  kExposition = 3,    // body: a scrape at `time`, compressed
};

struct LogRecord {
  LogKind kind = LogKind::kRemoteWrite1;
  units::Instant time;  // wall clock when it was received
  std::string_view body;
};

struct LogOptions {
  std::uint64_t segment_bytes = 64 << 20;
  std::uint64_t bytes_max = std::uint64_t{8} << 30;   // of all segments; appending past it is kLimit
  std::uint64_t free_bytes_min = 256 << 20;  // of the disk: kLimit below it, so that the store can still be written
};

// Where a record ends. Ordered.
struct LogPosition {
  std::uint32_t segment = 0;
  std::uint64_t bytes = 0;
  auto operator<=>(const LogPosition&) const = default;
};

struct LogReplay {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t torn_tail_bytes = 0;  // at the very end: never acknowledged
  std::vector<std::string> torn;      // where they are, and why they cannot be read; also of a segment whose length nothing tells
  std::uint64_t lost_bytes = 0;       // within: damage
  std::vector<std::string> damage;    // one line per damaged or missing segment
};

class Log {
 public:
  // Starts a new segment after the newest one there is, `number_min` or later; on a full disk with the first record that there is room for.
  // `disk` is borrowed.
  static base::Result<std::unique_ptr<Log>> open(Disk& disk, const std::string& folder, LogOptions options, std::uint32_t number_min = 1);

  // Reads the records of all segments from `first` on, in order. Of a segment that has to be there and is not, it says so; whether there has
  // to be any, only the caller knows (`is_begun`).
  static base::Result<LogReplay> replay(Disk& disk, const std::string& folder, std::uint32_t first,
                                        const std::function<void(std::uint32_t segment, const LogRecord&)>& sink, bool is_begun = false);

  // kLimit: the disk has less room than is kept free, or so little that not even `bytes` of a record fit.
  base::Status look_for_room(std::uint64_t bytes = 0) const;
  // Errors: kLimit (full), kIo. Nothing was appended then.
  base::Result<LogPosition> append(const LogRecord& record);
  // Returns when the record that ends there is durable. One caller syncs for all that wait.
  base::Status sync(LogPosition position);

  base::Status rotate();  // a new segment from the next record on
  base::Status drop_before(std::uint32_t segment);

  std::uint32_t first_segment() const;
  std::uint32_t current_segment() const;
  std::uint64_t bytes() const;  // of all segments

 private:
  struct Segment {
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;
    std::shared_ptr<DiskFile> file;  // of the current one
    bool failed = false;             // nothing more can be made durable in it
  };

  Log(Disk& disk, std::string folder, LogOptions options);
  base::Status start_segment();
  base::Status scan_last();
  std::string path_of(std::uint32_t segment) const;

  Disk& disk_;
  std::string folder_;
  LogOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable synced_;
  std::vector<Segment> segments_;  // ascending; the last is the current one
  LogPosition durable_;
  LogPosition failed_;  // syncs up to here have failed, from `durable_` on
  bool syncing_ = false;
  std::uint32_t number_min_ = 1;
};

}  // namespace flopsight::store
