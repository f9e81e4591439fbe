// Any bytes as a remote-write message. A decoder that has read the message before must say the same
// as a new one, what is handed over keeps the rules, every series is counted once, and what was
// read can be written and read again. The first byte chooses the version and the limits.
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "wire/remote_write.h"

namespace {

using flopsight::base::ErrorCode;
using flopsight::wire::encode_remote_write;
using flopsight::wire::Label;
using flopsight::wire::LabelsKey;
using flopsight::wire::RemoteWriteDecoder;
using flopsight::wire::RemoteWriteLimits;
using flopsight::wire::RemoteWriteSample;
using flopsight::wire::RemoteWriteSeries;
using flopsight::wire::RemoteWriteSeriesOut;
using flopsight::wire::RemoteWriteSink;
using flopsight::wire::RemoteWriteTotals;
using flopsight::wire::RemoteWriteVersion;

void add(std::string& bytes, std::string_view text) {
  const std::size_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}

struct Series {
  std::vector<std::pair<std::string, std::string>> labels;  // the name last
  std::vector<RemoteWriteSample> samples;
};

// All that was said, as bytes, so that NaN equals NaN.
struct Transcript : RemoteWriteSink {
  explicit Transcript(const RemoteWriteLimits& limits_in) : limits(limits_in) {}
  bool wants(std::string_view metric) override {
    FLOPSIGHT_CHECK(!metric.empty());
    return metric.front() != 'u';
  }
  void series(RemoteWriteSeries& series) override {
    Series one;
    std::set<std::string> names{"__name__"};
    std::string labels;
    for (const Label& label : series.labels()) {
      FLOPSIGHT_CHECK(!label.name.empty() && label.name.size() <= limits.label_name_bytes_max);
      FLOPSIGHT_CHECK(label.value.size() <= limits.label_value_bytes_max);
      one.labels.emplace_back(label.name, label.value);
      FLOPSIGHT_CHECK(names.insert(one.labels.back().first).second);
      add(labels, label.name);
      add(labels, label.value);
    }
    FLOPSIGHT_CHECK(one.labels.size() < limits.labels_per_series_max);
    const LabelsKey key = series.labels_key();
    // The same key, the same labels. The reverse holds for one spelling only.
    const auto [at, fresh] = labels_of.try_emplace({key.low, key.high}, labels);
    FLOPSIGHT_CHECK(at->second == labels);
    one.labels.emplace_back("__name__", series.metric());
    one.samples.assign(series.samples().begin(), series.samples().end());
    add(bytes, labels);
    add(bytes, series.metric());
    for (const RemoteWriteSample& sample : one.samples) {
      bytes.append(reinterpret_cast<const char*>(&sample), sizeof sample);
    }
    samples += one.samples.size();
    seen.push_back(std::move(one));
  }
  void rejected(std::string_view series, std::string_view reason) override {
    FLOPSIGHT_CHECK(series.size() <= 203 && !reason.empty());
    FLOPSIGHT_CHECK((std::string(series) + std::string(reason)).find_first_of("\n\x1b") ==
                    std::string::npos);
    ++rejections;
    add(bytes, series);
    add(bytes, reason);
  }

  RemoteWriteLimits limits;
  std::string bytes;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> labels_of;
  std::vector<Series> seen;
  std::size_t samples = 0;
  std::size_t rejections = 0;
};

std::string decode(RemoteWriteDecoder& decoder, RemoteWriteVersion version,
                   std::string_view message, Transcript& transcript) {
  RemoteWriteTotals totals;
  const auto status = decoder.decode(version, message, transcript, totals);
  FLOPSIGHT_CHECK(totals.series == transcript.seen.size());
  FLOPSIGHT_CHECK(totals.samples == transcript.samples);
  FLOPSIGHT_CHECK(totals.series_rejected == transcript.rejections);
  FLOPSIGHT_CHECK(totals.series + totals.series_rejected + totals.series_unwanted <=
                  transcript.limits.series_max);
  FLOPSIGHT_CHECK(totals.samples + totals.samples_rejected + totals.samples_unwanted <=
                  transcript.limits.samples_max);
  add(transcript.bytes, std::to_string(totals.samples_unwanted) + " " +
                            std::to_string(totals.histograms) + " " +
                            std::to_string(totals.exemplars));
  if (status.ok()) return "";
  const ErrorCode code = status.error().code;
  FLOPSIGHT_CHECK(code == ErrorCode::kInvalid || code == ErrorCode::kLimit);
  const std::string& text = status.error().message;
  FLOPSIGHT_CHECK(text.starts_with("at byte ") && std::stoull(text.substr(8)) <= message.size());
  return text;
}

void write_and_read_again(const Transcript& transcript) {
  std::vector<RemoteWriteSeriesOut> all;
  for (const Series& series : transcript.seen) {
    RemoteWriteSeriesOut& out = all.emplace_back();
    for (const auto& [name, value] : series.labels) out.labels.push_back({name, value});
    out.samples = series.samples;
  }
  RemoteWriteDecoder decoder(1, transcript.limits);
  for (const auto version : {RemoteWriteVersion::kV1, RemoteWriteVersion::kV2}) {
    Transcript again(transcript.limits);
    const std::string message = encode_remote_write(version, all);
    FLOPSIGHT_CHECK(decode(decoder, version, message, again).empty());
    FLOPSIGHT_CHECK(again.rejections == 0 && again.seen.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      FLOPSIGHT_CHECK(again.seen[i].labels == transcript.seen[i].labels);
      const auto& a = again.seen[i].samples;
      const auto& b = transcript.seen[i].samples;
      FLOPSIGHT_CHECK(a.size() == b.size());
      FLOPSIGHT_CHECK(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  const std::vector<char> copy(data + 1, data + size);  // of exactly this size
  const std::string_view message(copy.data(), copy.size());

  const auto version = (choice & 1) != 0 ? RemoteWriteVersion::kV2 : RemoteWriteVersion::kV1;
  RemoteWriteLimits limits;
  if ((choice & 2) != 0) limits.labels_per_series_max = 3;
  if ((choice & 4) != 0) limits.label_name_bytes_max = limits.label_value_bytes_max = 9;
  if ((choice & 8) != 0) limits.series_max = limits.samples_max = limits.symbols_max = 4;

  RemoteWriteDecoder decoder(0, limits);
  Transcript first(limits);
  const std::string error = decode(decoder, version, message, first);
  Transcript second(limits);
  FLOPSIGHT_CHECK(decode(decoder, version, message, second) == error);
  FLOPSIGHT_CHECK(second.bytes == first.bytes);
  FLOPSIGHT_CHECK(second.labels_of == first.labels_of);

  // The symbols of a message written again may be more than the limit for the first allows.
  if ((choice & 8) == 0 && !first.seen.empty()) write_and_read_again(first);
  return 0;
}
