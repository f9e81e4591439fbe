#pragma once
// Remote-write messages written by hand, and what a decoder says of them.

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "wire/remote_write.h"

namespace flopsight::wire {

constexpr auto kV1 = RemoteWriteVersion::kV1;
constexpr auto kV2 = RemoteWriteVersion::kV2;

// Protobuf by hand, so that what the tests read was not written by the code beside it.
inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7F) | 0x80);
  return out + static_cast<char>(value);
}
inline std::string bytes_field(std::uint32_t field, const std::string& bytes) {
  return varint(field << 3U | 2) + varint(bytes.size()) + bytes;
}
inline std::string varint_field(std::uint32_t field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}
inline std::string label(const std::string& name, const std::string& value) {
  return bytes_field(1, bytes_field(1, name) + bytes_field(2, value));
}
inline std::string sample(double value, std::int64_t milliseconds) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  std::string fixed(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) fixed[i] = static_cast<char>(bits >> (8 * i) & 0xFF);
  return bytes_field(2, "\x09" + fixed + varint_field(2, static_cast<std::uint64_t>(milliseconds)));
}
inline std::string series_v1(const std::string& fields) { return bytes_field(1, fields); }
inline std::string up(const std::string& labels, double value = 1) {
  return series_v1(label("__name__", "up") + labels + sample(value, 1'000));
}

inline std::string symbols(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += bytes_field(4, text);
  return out;
}
inline std::string refs(const std::vector<std::uint32_t>& numbers) {
  std::string packed;
  for (const std::uint32_t number : numbers) packed += varint(number);
  return bytes_field(1, packed);
}
inline std::string series_v2(const std::string& fields) { return bytes_field(5, fields); }

struct Seen {
  std::string metric;
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<RemoteWriteSample> samples;
  LabelsKey key;
  std::uint32_t histograms = 0;
  std::uint32_t exemplars = 0;
};

struct Transcript : RemoteWriteSink {
  bool wants(std::string_view metric) override { return metric != unwanted; }
  void series(RemoteWriteSeries& series) override {
    Seen one{.metric = std::string(series.metric()),
             .labels = {},
             .samples = {series.samples().begin(), series.samples().end()},
             .key = series.labels_key(),
             .histograms = series.histograms(),
             .exemplars = series.exemplars()};
    for (const Label& l : series.labels()) one.labels.emplace_back(l.name, l.value);
    seen.push_back(std::move(one));
  }
  void rejected(std::string_view series, std::string_view reason) override {
    rejections.emplace_back(series, reason);
  }
  std::string unwanted = "unwanted";
  std::vector<Seen> seen;
  std::vector<std::pair<std::string, std::string>> rejections;
};

struct Decoded : Transcript {
  RemoteWriteTotals totals;
  base::Status status;
};

inline Decoded decode(RemoteWriteVersion version, const std::string& message,
                      RemoteWriteLimits limits = {}, std::uint64_t seed = 7) {
  RemoteWriteDecoder decoder(seed, limits);
  Decoded out;
  out.status = decoder.decode(version, message, out, out.totals);
  return out;
}

}  // namespace flopsight::wire
