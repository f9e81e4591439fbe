#include "wire/remote_write.h"

#include <protozero/varint.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "base/text.h"
#include "base/utf8.h"
#include "wire/remote_write_internal.h"

namespace flopsight::wire {

FieldCursor::Number FieldCursor::long_varint(const char* at, const char* end) {
  try {
    const std::uint64_t value = protozero::decode_varint(&at, end);
    return {value, at};
  } catch (const protozero::exception&) {
    stop(at, "a number that does not end");
  }
}

LabelHasher::LabelHasher(std::uint64_t seed) : seed_(seed) {
  static_assert(sizeof secret_ >= XXH3_SECRET_SIZE_MIN &&
                sizeof secret_ == XXH3_SECRET_DEFAULT_SIZE);
  XXH3_generateSecret_fromSeed(secret_.data(), seed);
}

LabelsKey LabelHasher::operator()(const void* bytes, std::size_t size) const {
  const XXH128_hash_t hash =
      XXH3_128bits_withSecretandSeed(bytes, size, secret_.data(), secret_.size(), seed_);
  return {hash.low64, hash.high64};
}

namespace {

using base::ErrorCode;

static_assert(std::endian::native == std::endian::little, "doubles are copied as they lie");

// Separates the keys of the two versions, which are over different things.
constexpr std::uint64_t kSeedOfV2 = 0x9E3779B97F4A7C15;

// Label sets that were found right, by their keys. Two places for each, or two sets of one node
// that meet in the same place would throw each other out with every sample. Forgets some when full:
// they are checked again.
class KnownGood {
 public:
  bool has(const LabelsKey& key) const {
    const Pair& pair = pairs_[key.low % kPairs];
    return (pair.newer == key || pair.older == key) && key != LabelsKey{};
  }
  void add(const LabelsKey& key) {
    Pair& pair = pairs_[key.low % kPairs];
    pair = {key, pair.newer};
  }

 private:
  struct Pair {
    LabelsKey newer;
    LabelsKey older;
  };
  static constexpr std::size_t kPairs = 1 << 11;  // 64 KiB: the sets of a few hundred nodes at once
  std::vector<Pair> pairs_ = std::vector<Pair>(kPairs);
};

// Finds the same name twice.
class Repeats {
 public:
  bool in(std::span<const Label> labels) {
    // Every sender is told to sort, so neighbours are compared first.
    const auto unsorted = [](const Label& a, const Label& b) { return a.name >= b.name; };
    if (std::adjacent_find(labels.begin(), labels.end(), unsorted) == labels.end()) return false;
    names_.clear();
    for (const Label& label : labels) names_.push_back(label.name);
    std::sort(names_.begin(), names_.end());
    return std::adjacent_find(names_.begin(), names_.end()) != names_.end();
  }

 private:
  std::vector<std::string_view> names_;
};

std::string over(std::string_view what, std::uint32_t bytes_max) {
  return std::string(what) + " of over " + std::to_string(bytes_max) + " bytes";
}

// The rule that a metric's name breaks; empty if none.
std::string fault_of(std::string_view metric, const RemoteWriteLimits& limits) {
  if (metric.size() > limits.label_value_bytes_max) {
    return over("a metric name", limits.label_value_bytes_max);
  }
  return base::is_utf8(metric) ? "" : "a metric name that is not UTF-8";
}

// The rule that labels (all but the name) break; empty if none.
std::string fault_of(std::span<const Label> labels, const RemoteWriteLimits& limits,
                     Repeats& repeats) {
  for (const Label& label : labels) {
    if (label.name.empty()) return "an empty label name";
    if (label.name == kNameLabel) return "a repeated label name";
    if (label.name.size() > limits.label_name_bytes_max) {
      return over("a label name", limits.label_name_bytes_max);
    }
    if (label.value.size() > limits.label_value_bytes_max) {
      return over("a label value", limits.label_value_bytes_max);
    }
    if (!base::is_utf8(label.name)) return "a label name that is not UTF-8";
    if (!base::is_utf8(label.value)) return "a label value that is not UTF-8";
  }
  return repeats.in(labels) ? "a repeated label name" : "";
}

constexpr std::size_t kShownBytesMax = 200;

std::string shown(std::span<const Label> labels) {
  std::string text = "{";
  for (const Label& label : labels) {
    if (text.size() > 1) text += ", ";
    text.append(label.name.substr(0, kShownBytesMax)).append("=\"");
    text.append(label.value.substr(0, kShownBytesMax)).append("\"");
    if (text.size() > kShownBytesMax) break;
  }
  return base::printable(text + "}", kShownBytesMax);
}

RemoteWriteSample sample_of(std::string_view message) {
  RemoteWriteSample sample;
  for (FieldCursor fields(message); !fields.done();) {
    switch (const std::uint32_t tag = fields.tag()) {
      case tag_of(1, kFixed64):
        sample.value = fields.fixed64();
        break;
      case tag_of(2, kVarint):
        sample.timestamp_milliseconds = static_cast<std::int64_t>(fields.varint());
        break;
      default:
        fields.skip(tag, 2);
    }
  }
  return sample;
}

constexpr std::uint32_t kSamples = 2;  // the field of a series, in both versions

}  // namespace

struct RemoteWriteDecoder::State final : RemoteWriteSeries {
  State(std::uint64_t seed, const RemoteWriteLimits& limits_in)
      : limits(limits_in), records_(seed), refs_(seed ^ kSeedOfV2) {}

  // RemoteWriteSeries, of the series at hand.
  std::string_view metric() const override { return metric_; }
  LabelsKey labels_key() override { return key_; }
  std::span<const Label> labels() override {
    if (!std::exchange(resolved_, true)) {
      if (version_ == RemoteWriteVersion::kV1) {
        records_.resolve(labels_, With::kNoName);
      } else {
        refs_.resolve(labels_, With::kNoName);
      }
    }
    return labels_;
  }
  std::span<const RemoteWriteSample> samples() const override { return samples_; }
  std::uint32_t histograms() const override { return histograms_; }
  std::uint32_t exemplars() const override { return exemplars_; }

  void read(RemoteWriteVersion version, std::string_view message);
  void read_v1(std::string_view message);
  void read_symbols(std::string_view message);
  void read_v2(std::string_view message);
  template <typename Labels>
  void read_series(std::string_view series, Labels& its);
  template <typename Labels>
  void walk(std::string_view series, Labels& its);
  template <typename Labels>
  std::string fault(Labels& its);
  template <typename Labels>
  void reject(Labels& its, std::string_view reason);
  void count(const char* at);
  void read_samples();

  RemoteWriteLimits limits;
  RemoteWriteSink* sink = nullptr;
  RemoteWriteTotals* totals = nullptr;
  const char* series_at = nullptr;  // of the series at hand

 private:
  RemoteWriteVersion version_ = RemoteWriteVersion::kV1;
  LabelRecords records_;
  LabelRefs refs_;
  KnownGood known_good_;
  Repeats repeats_;
  std::uint64_t message_series_ = 0;
  std::uint64_t message_samples_ = 0;

  std::string_view metric_;
  LabelsKey key_;
  std::vector<Label> labels_;
  bool resolved_ = false;
  std::string_view from_first_sample_;
  std::uint32_t sample_count_ = 0;
  std::vector<RemoteWriteSample> samples_;
  std::uint32_t histograms_ = 0;
  std::uint32_t exemplars_ = 0;
};

void RemoteWriteDecoder::State::read(RemoteWriteVersion version, std::string_view message) {
  version_ = version;
  message_series_ = 0;
  message_samples_ = 0;
  series_at = message.data();
  if (version == RemoteWriteVersion::kV1) {
    read_v1(message);
  } else {
    read_symbols(message);
    read_v2(message);
  }
}

void RemoteWriteDecoder::State::read_v1(std::string_view message) {
  for (FieldCursor fields(message); !fields.done();) {
    const char* const at = fields.at();
    switch (const std::uint32_t tag = fields.tag()) {
      case tag_of(1, kBytes):
        read_series(fields.bytes(), records_);
        break;
      case tag_of(3, kBytes):
        fields.bytes();
        ++totals->metadata;
        break;
      // Skipping these would lose every sample of a sender that names the wrong version.
      case tag_of(4, kBytes):
      case tag_of(5, kBytes):
        stop(at, "a field of version 2.0 in a message of version 1.0");
      default:
        fields.skip(tag, tag >> 3U == 2 ? 0 : 3);  // 2 is reserved: Cortex has its own there
    }
  }
}

// Symbols first: their place in the message is not fixed. What is broken is left to read_v2(),
// which hands over what comes before it.
void RemoteWriteDecoder::State::read_symbols(std::string_view message) {
  refs_.begin_message();
  FieldCursor fields(message);
  try {
    while (!fields.done()) {
      const char* const at = fields.at();
      const std::uint32_t tag = fields.tag();
      if (tag != tag_of(4, kBytes)) {
        fields.skip(tag, 0);
        continue;
      }
      const std::string_view symbol = fields.bytes();
      if (refs_.symbols() == 0 && !symbol.empty()) stop(at, "a first symbol that is not empty");
      if (refs_.symbols() == limits.symbols_max) {
        throw BrokenMessage{ErrorCode::kLimit, at,
                            "more than " + std::to_string(limits.symbols_max) + " symbols"};
      }
      refs_.add_symbol(symbol);
    }
  } catch (const BrokenMessage& broken) {
    if (broken.code == ErrorCode::kLimit || refs_.symbols() == 0) throw;
  }
}

void RemoteWriteDecoder::State::read_v2(std::string_view message) {
  for (FieldCursor fields(message); !fields.done();) {
    const char* const at = fields.at();
    switch (const std::uint32_t tag = fields.tag()) {
      case tag_of(4, kBytes):
        fields.bytes();
        break;
      case tag_of(5, kBytes):
        read_series(fields.bytes(), refs_);
        break;
      case tag_of(1, kBytes):
      case tag_of(2, kBytes):
      case tag_of(3, kBytes):
        stop(at, "a field of version 1.0 in a message of version 2.0");
      default:
        fields.skip(tag, 5);
    }
  }
}

template <typename Labels>
void RemoteWriteDecoder::State::walk(std::string_view series, Labels& its) {
  from_first_sample_ = {};
  sample_count_ = 0;
  histograms_ = 0;
  exemplars_ = 0;
  std::string_view rest = series;
  if (const char* const after = its.begin_as_before(series); after != nullptr) {
    rest.remove_prefix(static_cast<std::size_t>(after - series.data()));
  } else {
    its.begin();
  }
  for (FieldCursor fields(rest); !fields.done();) {
    const char* const at = fields.at();
    switch (const std::uint32_t tag = fields.tag()) {
      case tag_of(1, kBytes): {
        const std::string_view label = fields.bytes();
        its.add({at, static_cast<std::size_t>(fields.at() - at)}, label);
        break;
      }
      case tag_of(kSamples, kBytes):
        if (sample_count_++ == 0) {
          from_first_sample_ = {at, static_cast<std::size_t>(series.data() + series.size() - at)};
        }
        fields.bytes();
        break;
      case tag_of(Labels::kExemplars, kBytes):
        ++exemplars_;
        fields.bytes();
        break;
      case tag_of(Labels::kHistograms, kBytes):
        ++histograms_;
        fields.bytes();
        break;
      case tag_of(Labels::kMetadata, kBytes):
        ++totals->metadata;
        fields.bytes();
        break;
      default: {
        const char* const number = fields.at();
        const bool unpacked = Labels::kUnpacked && tag == tag_of(1, kVarint);
        fields.skip(tag, unpacked ? 0 : Labels::kKnown);
        if (unpacked) its.add({}, {number, static_cast<std::size_t>(fields.at() - number)});
      }
    }
  }
}

void RemoteWriteDecoder::State::count(const char* at) {
  message_series_ += 1;
  message_samples_ += sample_count_;
  if (message_series_ > limits.series_max) {
    throw BrokenMessage{ErrorCode::kLimit, at,
                        "more than " + std::to_string(limits.series_max) + " series"};
  }
  if (message_samples_ > limits.samples_max) {
    throw BrokenMessage{ErrorCode::kLimit, at,
                        "more than " + std::to_string(limits.samples_max) + " samples"};
  }
  totals->histograms += histograms_;
  totals->exemplars += exemplars_;
}

template <typename Labels>
void RemoteWriteDecoder::State::read_series(std::string_view series, Labels& its) {
  series_at = series.data();
  walk(series, its);
  count(series.data());

  const std::optional<std::string_view> metric = its.metric();
  if (!metric) return reject(its, "no metric name");
  if (metric->empty()) return reject(its, "an empty metric name");
  metric_ = *metric;
  if (!sink->wants(metric_)) {
    ++totals->series_unwanted;
    totals->samples_unwanted += sample_count_;
    return;
  }
  resolved_ = false;
  if (const std::string reason = fault(its); !reason.empty()) return reject(its, reason);
  read_samples();
  ++totals->series;
  totals->samples += sample_count_;
  sink->series(*this);
}

// Also makes the key.
template <typename Labels>
std::string RemoteWriteDecoder::State::fault(Labels& its) {
  if (const std::string_view reason = its.unreadable(); !reason.empty()) return std::string(reason);
  if (its.count() > limits.labels_per_series_max) {
    return "more than " + std::to_string(limits.labels_per_series_max) + " labels";
  }
  if (std::string reason = fault_of(metric_, limits); !reason.empty()) return reason;
  key_ = its.key();
  if (known_good_.has(key_) || sink->knows(key_)) return {};
  std::string reason = fault_of(labels(), limits, repeats_);
  if (reason.empty()) known_good_.add(key_);
  return reason;
}

template <typename Labels>
void RemoteWriteDecoder::State::reject(Labels& its, std::string_view reason) {
  its.resolve(labels_, With::kName);
  ++totals->series_rejected;
  totals->samples_rejected += sample_count_;
  sink->rejected(shown(labels_), reason);
}

void RemoteWriteDecoder::State::read_samples() {
  samples_.clear();
  for (FieldCursor fields(from_first_sample_); !fields.done();) {
    const std::uint32_t tag = fields.tag();
    if (tag == tag_of(kSamples, kBytes)) {
      samples_.push_back(sample_of(fields.bytes()));
    } else {
      fields.skip(tag, 0);
    }
  }
}

RemoteWriteDecoder::RemoteWriteDecoder(std::uint64_t seed, RemoteWriteLimits limits)
    : state_(std::make_unique<State>(seed, limits)) {}
RemoteWriteDecoder::~RemoteWriteDecoder() = default;
RemoteWriteDecoder::RemoteWriteDecoder(RemoteWriteDecoder&&) noexcept = default;
RemoteWriteDecoder& RemoteWriteDecoder::operator=(RemoteWriteDecoder&&) noexcept = default;

base::Status RemoteWriteDecoder::decode(RemoteWriteVersion version, std::string_view message,
                                        RemoteWriteSink& sink, RemoteWriteTotals& totals) {
  state_->sink = &sink;
  state_->totals = &totals;
  try {
    state_->read(version, message);
  } catch (const BrokenMessage& broken) {
    // Labels that were copied together lie elsewhere; then their series is the place.
    const std::less<const char*> less;
    const bool inside =
        !less(broken.at, message.data()) && !less(message.data() + message.size(), broken.at);
    const char* const at = inside ? broken.at : state_->series_at;
    return base::Error{broken.code,
                       "at byte " + std::to_string(at - message.data()) + ": " + broken.what};
  }
  return {};
}

std::optional<RemoteWriteVersion> remote_write_version(std::string_view content_type) {
  std::vector<std::string> parts = base::split(content_type, ';');
  if (base::to_lower(base::trim(parts.front())) != "application/x-protobuf") return std::nullopt;
  RemoteWriteVersion version = RemoteWriteVersion::kV1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = std::min(parts[i].find('='), parts[i].size());
    if (base::to_lower(base::trim(std::string_view(parts[i]).substr(0, equals))) != "proto")
      continue;
    std::string_view proto =
        base::trim(std::string_view(parts[i]).substr(std::min(equals + 1, parts[i].size())));
    if (proto.size() >= 2 && proto.front() == '"' && proto.back() == '"') {
      proto = proto.substr(1, proto.size() - 2);
    }
    if (proto == "prometheus.WriteRequest") {
      version = RemoteWriteVersion::kV1;
    } else if (proto == "io.prometheus.write.v2.Request") {
      version = RemoteWriteVersion::kV2;
    } else {
      return std::nullopt;
    }
  }
  return version;
}

}  // namespace flopsight::wire
