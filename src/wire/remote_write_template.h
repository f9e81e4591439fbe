#pragma once
// A remote-write message that is sent again and again with other values: encoded and compressed once, then each round writes
// eight bytes of value and six of time for each series into the compressed bytes. For load, where the sender must not be
// what is measured.
//
// How: a Snappy block is a list of literals and copies of what came before (format description of google/snappy). Labels
// that were sent already become copies; values stand in literals, so that their place is known. Any Snappy decoder reads
// it, and it is about as small as what a compressor makes.
//
// Threads: one writer. Errors: none; texts are the caller's own. Preconditions are checked.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wire/remote_write.h"

namespace flopsight::wire {

class RemoteWriteTemplate {
 public:
  explicit RemoteWriteTemplate(RemoteWriteVersion version) : version_(version) {}

  // Series of these metrics with these labels: sorted by name, without __name__. `metrics` must outlive finish().
  void add(std::span<const Label> labels, std::span<const std::string_view> metrics);
  // Encodes; add() no more.
  void finish();

  std::size_t series() const { return series_; }
  // The sample of the series that was added as number `index`. Times from 1972 to 2109.
  void set(std::size_t index, double value, std::int64_t timestamp_milliseconds);
  // The message as it is now, compressed: the body of a request.
  const std::string& compressed() const { return bytes_; }

 private:
  struct Group {
    std::vector<std::string> before;  // encoded labels that sort before __name__, and after it
    std::vector<std::string> after;
    std::vector<std::string_view> metrics;
  };
  std::string label_bytes(const Label& label);
  std::uint32_t symbol(std::string_view text);

  RemoteWriteVersion version_;
  std::vector<Group> groups_;
  std::vector<std::string> symbols_{""};  // of 2.0; the first is empty by the protocol
  std::unordered_map<std::string, std::uint32_t> symbol_refs_{{"", 0}};
  std::size_t series_ = 0;
  std::string bytes_;
  std::vector<std::uint32_t> places_;  // of each value in bytes_
};

}  // namespace flopsight::wire
