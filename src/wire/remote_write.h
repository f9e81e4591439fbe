#pragma once
// Prometheus remote write, 1.0 (prometheus.WriteRequest) and 2.0 (io.prometheus.write.v2.Request): a decoded
// body to series. Decoding is the hot path of the service, so a series is a view into the message, its labels
// are resolved only when somebody asks, and its key is one hash over the bytes that name it.
//
// Bad input: a message that is no message (a length that runs past the end, an unknown wire type, a symbol
// reference out of range, a field that only the other version has) is kInvalid with the byte where it broke, and
// what came before it was handed over. A series that breaks a rule (no metric name, an empty label name, a repeated,
// over-long or non-UTF-8 label, an odd number of references) is told to the sink with its reason, and the others go
// on. Labels are accepted in any order, label values may be empty, and fields that nobody knows are skipped. Labels
// of a series that the sink does not want are not looked at, so their faults are not found.
//
// Cost: the rules are checked once for each distinct set of labels, remembered by its key in a small table. A series
// seen before costs a walk over its fields, one hash and its samples.
// Threads: one decoder, one thread. Lifetime: everything handed to the sink lives for that call only.
// Sources: Prometheus remote-write specification 1.0 and 2.0 (prometheus.io/docs/specs/prw), prompb/types.proto and
// prompb/io/prometheus/write/v2/types.proto of Prometheus.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/exposition.h"

namespace flopsight::wire {

enum class RemoteWriteVersion { kV1, kV2 };

// From Content-Type: "application/x-protobuf" with no proto parameter or proto=prometheus.WriteRequest is 1.0,
// proto=io.prometheus.write.v2.Request is 2.0. Nothing for any other.
std::optional<RemoteWriteVersion> remote_write_version(std::string_view content_type);

// XXH3-128 of all labels but the metric's name, seeded. Two series of one exporter and GPU that differ in
// the name only have the same key: what the labels mean is looked up once for all of them.
struct LabelsKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const LabelsKey&) const = default;
};

struct RemoteWriteSample {
  std::int64_t timestamp_milliseconds = 0;
  double value = 0;  // a stale marker keeps its bits
};

// One series of a message.
class RemoteWriteSeries {
 public:
  virtual std::string_view metric() const = 0;  // never empty
  // Labels without the name are the same exactly when the keys are (up to a collision of 128 bits, and spelling: labels
  // in another order may have another key; the keys of 1.0 and 2.0 are unrelated).
  virtual LabelsKey labels_key() = 0;
  // All labels but the name, in the order of the message. Resolved when asked for; lives until the next series.
  virtual std::span<const Label> labels() = 0;
  virtual std::span<const RemoteWriteSample> samples() const = 0;
  virtual std::uint32_t histograms() const = 0;
  virtual std::uint32_t exemplars() const = 0;

 protected:
  ~RemoteWriteSeries() = default;
};

class RemoteWriteSink {
 public:
  virtual ~RemoteWriteSink() = default;
  // Asked first, by name alone: false skips the series without looking at its labels, and it is counted.
  virtual bool wants(std::string_view metric) = 0;
  // True: these labels were handed over before, and so broke no rule; they are not looked at again. A sink that remembers
  // label sets anyway answers for a whole fleet, the decoder alone for the last few thousand.
  virtual bool knows(const LabelsKey& key) {
    (void)key;
    return false;
  }
  virtual void series(RemoteWriteSeries& series) = 0;
  // `series` as {name="value", …}, cut at 200 bytes and made printable; `reason` as "an empty label name".
  virtual void rejected(std::string_view series, std::string_view reason) = 0;
};

struct RemoteWriteLimits {
  std::uint32_t labels_per_series_max = 128;  // the name is one
  std::uint32_t label_name_bytes_max = 1024;
  std::uint32_t label_value_bytes_max = 4096;
  std::uint32_t series_max = 1'000'000;   // of one message; kLimit past it
  std::uint32_t samples_max = 4'000'000;  // of one message; kLimit past it
  std::uint32_t symbols_max = 1'000'000;  // of one 2.0 message; kLimit past it
};

struct RemoteWriteTotals {
  std::uint64_t series = 0;           // handed over, also without samples
  std::uint64_t samples = 0;          // of series handed over
  std::uint64_t series_unwanted = 0;  // skipped by name
  std::uint64_t samples_unwanted = 0;
  std::uint64_t series_rejected = 0;
  std::uint64_t samples_rejected = 0;
  std::uint64_t histograms = 0;  // of all series; none is used
  std::uint64_t exemplars = 0;
  std::uint64_t metadata = 0;  // entries of 1.0, series that have some in 2.0
};

class RemoteWriteDecoder {
 public:
  // `seed` makes keys unguessable to who sends; keys of decoders with one seed compare.
  explicit RemoteWriteDecoder(std::uint64_t seed, RemoteWriteLimits limits = {});
  ~RemoteWriteDecoder();
  RemoteWriteDecoder(RemoteWriteDecoder&&) noexcept;
  RemoteWriteDecoder& operator=(RemoteWriteDecoder&&) noexcept;

  // `message` is after snappy. Adds to `totals` also when it fails.
  base::Status decode(RemoteWriteVersion version, std::string_view message, RemoteWriteSink& sink,
                      RemoteWriteTotals& totals);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- Writing ----

struct RemoteWriteSeriesOut {
  std::vector<Label> labels;  // with __name__, sorted by name
  std::vector<RemoteWriteSample> samples;
};

// One message, before snappy.
std::string encode_remote_write(RemoteWriteVersion version, std::span<const RemoteWriteSeriesOut> series);

}  // namespace flopsight::wire
