#pragma once
// A time zone by its name ("Europe/Berlin"), from the files of tzdata, for dates that were printed without an offset. A Zone is a
// plain value once it was read; asking it reads nothing.
//
// Local time is ambiguous in the hour that is repeated when clocks go back (then the earlier instant is meant, unless the
// caller knows a time that went before) and does not exist in the hour that is skipped (then the offset before the change holds).
// Errors: kNotFound, kCorrupt, kIo, naming the zone.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace flopsight::base {

class Zone {
 public:
  static Zone utc();
  static Zone fixed(std::int64_t offset_seconds, std::string name);
  // "UTC", "Z", "+02:00", "-0530", or a name of tzdata. `folder` is where tzdata lies.
  static Result<Zone> find(std::string_view name, const std::string& folder = "/usr/share/zoneinfo");
  // The bytes of a file of tzdata (TZif, RFC 8536).
  static Result<Zone> parse(std::string_view tzif, std::string name);

  const std::string& name() const;
  // East of Greenwich is positive.
  std::int64_t offset_seconds(std::int64_t unix_seconds) const;
  // Seconds of a calendar date and time as if in UTC, to Unix seconds. Where the date occurs twice: the first that is not before
  // `not_before_unix_seconds`, else the later one.
  std::int64_t unix_seconds(std::int64_t local_seconds, std::int64_t not_before_unix_seconds = INT64_MIN) const;

 private:
  struct Data;
  explicit Zone(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace flopsight::base
