#pragma once
// The entries of one list of a JSON document that is larger than memory should be, fed in pieces: the list is a member of the root
// object, or the root itself. Entries arrive one by one as small values; the rest of the document is kept and read at the end. For
// profiler traces: {"schemaVersion": 1, …, "traceEvents": [{…}, …]}.
//
// Passed over: a byte order mark. Read as null: NaN, Infinity and inf, of either sign, which Python and C print and JSON does not have.
//
// Memory: two batches of entries (256 KiB, or one entry of up to entry_bytes_max) and the rest. Integers beyond 2^53 arrive as text.
// Errors: kInvalid, "JSON near byte N"; kLimit for an entry or a rest that is too long, or entries nested deeper than 64. After
// one, nothing more may be fed. Threads: one.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace flopsight::wire {

class JsonStream {
 public:
  struct Options {
    std::string_view list;                   // its key in the root
    std::span<const std::string_view> skip;  // keys that are passed over at any depth of an entry
    // Whether an entry is wanted, by its text: one that is not is passed over unparsed. None: all are.
    std::function<bool(std::string_view)> wanted = {};
    std::size_t entry_bytes_max = std::size_t{4} << 20;
    std::size_t rest_bytes_max = std::size_t{4} << 20;
  };
  // An error of `entry` ends the reading and is the answer.
  using Entry = std::function<base::Status(base::json::Value)>;

  JsonStream(const Options& options, Entry entry) : options_(options), entry_(std::move(entry)) {}

  base::Status feed(std::string_view bytes);
  // The document with an empty list in the place of the list. Errors: also when it is not complete.
  base::Result<base::json::Value> finish();
  bool list_seen() const { return list_seen_; }

 private:
  base::Status take(char c);
  base::Status open(char c);
  base::Status close(char c);
  base::Status end_entry(char c);
  base::Status flush();
  base::Status keep(std::string_view bytes);
  base::Error mistake(std::string_view what) const;
  bool in_list() const { return list_depth_ > 0; }
  bool at_list_level() const { return in_list() && depth_ == list_depth_; }

  Options options_;
  Entry entry_;
  std::string batch_;  // whole entries and the one that is being read
  std::string rest_;
  std::string key_;    // the last string at the root's level
  std::uint64_t bytes_ = 0;
  std::uint64_t mark_bytes_ = 0;     // of a byte order mark
  std::uint64_t batch_from_ = 0;     // byte of the document that the batch begins at
  std::size_t entry_from_ = 0;       // in the batch
  std::int64_t depth_ = 0;
  std::int64_t list_depth_ = 0;  // 0: outside of the list
  char before_ = 0;              // the last character at the root's level that is no space, outside strings
  bool in_string_ = false;
  bool escaped_ = false;
  bool list_seen_ = false;
  bool after_comma_ = false;  // at the list's level: an entry has to follow
};

}  // namespace flopsight::wire
