#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <unordered_map>

#include "wire/remote_write.h"

namespace flopsight::wire {
namespace {

// The numbers of a message's fields that hold a series and the labels of one.
constexpr protozero::pbf_tag_type kSeriesV1 = 1, kSymbolsV2 = 4, kSeriesV2 = 5;
constexpr protozero::pbf_tag_type kLabels = 1, kSamples = 2;

void add_samples(protozero::pbf_writer& series, std::span<const RemoteWriteSample> samples) {
  for (const RemoteWriteSample& sample : samples) {
    protozero::pbf_writer message(series, kSamples);
    // Written also when zero: receivers may tell, and it is what Prometheus does not save on
    // either.
    message.add_double(1, sample.value);
    message.add_int64(2, sample.timestamp_milliseconds);
  }
}

// What a series and a sample have around their texts, at most, in usual messages.
constexpr std::size_t kLabelFrameBytes = 6, kRefsBytes = 6, kSampleBytes = 20, kSeriesBytes = 12;

std::string encode_v1(std::span<const RemoteWriteSeriesOut> all) {
  std::size_t bytes = 0;
  for (const RemoteWriteSeriesOut& one : all) {
    bytes += kSeriesBytes + one.samples.size() * kSampleBytes;
    for (const Label& label : one.labels) {
      bytes += kLabelFrameBytes + label.name.size() + label.value.size();
    }
  }
  std::string out;
  out.reserve(bytes);
  protozero::pbf_writer request(out);
  for (const RemoteWriteSeriesOut& one : all) {
    protozero::pbf_writer series(request, kSeriesV1);
    for (const Label& label : one.labels) {
      protozero::pbf_writer message(series, kLabels);
      message.add_string(1, label.name.data(), label.name.size());
      message.add_string(2, label.value.data(), label.value.size());
    }
    add_samples(series, one.samples);
  }
  return out;
}

class Symbols {
 public:
  std::uint32_t ref(std::string_view text) {
    const auto [at, fresh] = refs_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(text);
    return at->second;
  }
  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  std::vector<std::string_view> texts_{""};  // as the protocol wants it
  std::unordered_map<std::string_view, std::uint32_t> refs_{{"", 0}};
};

std::string encode_v2(std::span<const RemoteWriteSeriesOut> all) {
  Symbols symbols;
  std::vector<std::uint32_t> refs;
  std::size_t bytes = 0;
  for (const RemoteWriteSeriesOut& one : all) {
    bytes += kSeriesBytes + one.samples.size() * kSampleBytes + one.labels.size() * kRefsBytes;
    for (const Label& label : one.labels) {
      refs.push_back(symbols.ref(label.name));
      refs.push_back(symbols.ref(label.value));
    }
  }
  for (const std::string_view text : symbols.texts()) bytes += kLabelFrameBytes + text.size();
  std::string out;
  out.reserve(bytes);
  protozero::pbf_writer request(out);
  for (const std::string_view text : symbols.texts()) {
    request.add_string(kSymbolsV2, text.data(), text.size());
  }
  const std::uint32_t* next = refs.data();
  for (const RemoteWriteSeriesOut& one : all) {
    protozero::pbf_writer series(request, kSeriesV2);
    const std::uint32_t* const end = next + 2 * one.labels.size();
    series.add_packed_uint32(kLabels, next, end);
    next = end;
    add_samples(series, one.samples);
  }
  return out;
}

}  // namespace

std::string encode_remote_write(RemoteWriteVersion version,
                                std::span<const RemoteWriteSeriesOut> series) {
  return version == RemoteWriteVersion::kV1 ? encode_v1(series) : encode_v2(series);
}

}  // namespace flopsight::wire
