#pragma once
// What remote_write.cc is made of: a walk over protobuf fields, and the labels of a series in
// either version. Threads: one.

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "wire/remote_write.h"

namespace flopsight::wire {

constexpr std::string_view kNameLabel = "__name__";

// Why a message is read no further. Thrown and caught within the decoder only: it comes from six
// calls down, and seldom.
struct BrokenMessage {
  base::ErrorCode code;
  const char* at;
  std::string what;
};

[[noreturn]] [[gnu::cold]] inline void stop(const char* at, std::string what) {
  throw BrokenMessage{base::ErrorCode::kInvalid, at, std::move(what)};
}

enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr std::uint32_t tag_of(std::uint32_t field, WireType type) { return field << 3U | type; }

// The unread rest of a protobuf message. Not protozero's reader, which does not say where it broke,
// and takes a length of 2^32 + 1 for 1.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return at_ == end_; }
  const char* at() const { return at_; }

  std::uint64_t varint() {
    if (at_ != end_ && (*at_ & '\x80') == 0) return static_cast<unsigned char>(*at_++);
    const Number number = long_varint(at_, end_);
    at_ = number.next;
    return number.value;
  }
  std::uint32_t tag() {
    const char* const begin = at_;
    const std::uint64_t tag = varint();
    if (tag > 0xFFFFFFFF || tag >> 3U == 0) stop(begin, "no field number");
    return static_cast<std::uint32_t>(tag);
  }
  std::string_view bytes() {
    const char* const begin = at_;
    const std::uint64_t size = varint();
    if (size > left()) stop(begin, "a length of " + std::to_string(size) + ", past the end");
    return take(static_cast<std::size_t>(size));
  }
  double fixed64() {
    double value = 0;
    std::memcpy(&value, fixed(sizeof value).data(), sizeof value);
    return value;
  }
  // Past a field that is not read. Those up to `known` are, so they have come with a type that is
  // not theirs.
  void skip(std::uint32_t tag, std::uint32_t known) {
    const std::uint32_t field = tag >> 3U;
    const std::uint32_t type = tag & 7U;
    if (field <= known) {
      stop(at_, "field " + std::to_string(field) + " with wire type " + std::to_string(type));
    }
    switch (type) {
      case kVarint:
        varint();
        break;
      case kFixed64:
        fixed(8);
        break;
      case kBytes:
        bytes();
        break;
      case kFixed32:
        fixed(4);
        break;
      default:
        stop(at_, "the unknown wire type " + std::to_string(type));
    }
  }

 private:
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::string_view take(std::size_t size) {
    const std::string_view taken(at_, size);
    at_ += size;
    return taken;
  }
  std::string_view fixed(std::size_t size) {
    if (size > left()) stop(at_, std::to_string(size) + " bytes, past the end");
    return take(size);
  }
  // By value, so that a cursor can live in registers.
  struct Number {
    std::uint64_t value;
    const char* next;
  };
  static Number long_varint(const char* at, const char* end);

  const char* at_;
  const char* end_;
};

// XXH3-128 with a secret of its own, made once: making it from the seed costs as much as hashing
// 200 bytes.
class LabelHasher {
 public:
  explicit LabelHasher(std::uint64_t seed);
  LabelsKey operator()(const void* bytes, std::size_t size) const;

 private:
  std::uint64_t seed_;
  std::array<unsigned char, 192> secret_{};
};

enum class With { kName, kNoName };

// The labels of a 1.0 series: one record (tag, length, name and value) after another. Records say
// where they end, so the bytes of all but the name's are one spelling of the labels, wherever among
// them the name stood.
class LabelRecords {
 public:
  static constexpr std::uint32_t kExemplars = 3, kHistograms = 4, kMetadata = 0, kKnown = 4;
  static constexpr bool kUnpacked = false;

  explicit LabelRecords(std::uint64_t seed) : hash_(seed) {}

  void begin() {
    records_ = {};
    count_ = 0;
    metric_.reset();
    scattered_ = false;
    known_ = false;
  }
  void add(std::string_view record, std::string_view label) {
    known_ = false;  // one more, behind a sample
    ++count_;
    if (!scattered_ && (records_.empty() || records_.data() + records_.size() == record.data()))
        [[likely]] {
      const char* const first = records_.empty() ? record.data() : records_.data();
      records_ = {first, records_.size() + record.size()};
    } else {
      scatter(record);
    }
    // The spelling of every encoder; find_name() knows the others.
    constexpr std::string_view kPrefix = "\x0a\x08__name__\x12";
    if (!metric_ && label.size() > kPrefix.size() &&
        std::memcmp(label.data(), kPrefix.data(), kPrefix.size()) == 0) {
      FieldCursor cursor(label.substr(kPrefix.size()));
      const std::string_view value = cursor.bytes();
      if (cursor.done()) set_name(records_.size() - record.size(), record.size(), value);
    }
  }

  std::optional<std::string_view> metric() {
    if (!metric_) find_name();
    return metric_;
  }
  std::uint32_t count() const { return count_; }
  std::string_view unreadable() const { return {}; }

  LabelsKey key() {
    if (known_) return recent_[last_].key;
    const std::string_view before = records_.substr(0, name_at_);
    const std::string_view after = records_.substr(name_at_ + name_size_);
    joined_.assign(before).append(after);
    const LabelsKey key = hash_(joined_.data(), joined_.size());
    if (!scattered_) remember(key);
    return key;
  }

  // Whether the series begins with labels that were read lately, but for the name: those of the one before, or those that came after them
  // the last time. Then they need not be walked through, nor hashed; what follows them begins at the result. Otherwise null, and nothing
  // has changed. A GPU's metrics come one after another, or one metric of all GPUs of an exporter and then the next.
  const char* begin_as_before(std::string_view series);
  void resolve(std::vector<Label>& into, With with) const;

 private:
  void find_name();
  void set_name(std::size_t at, std::size_t size, std::string_view metric) {
    name_at_ = at;
    name_size_ = size;
    metric_ = metric;
  }
  void scatter(std::string_view record);
  void remember(const LabelsKey& key);
  const char* begin_as(std::uint32_t place, std::string_view series);

  // Labels as they lie, without the name's record.
  struct Recent {
    std::string labels;
    std::size_t name_at = 0;
    std::uint32_t count = 0;  // with the name
    LabelsKey key;
    std::uint32_t next = 0;  // what came after it the last time
  };
  static constexpr std::size_t kRecent = 512;  // hosts with hundreds of GPUs; some 300 KiB
  static constexpr std::size_t kRecentBytesMax = 4'096;  // of one; what is longer is not remembered

  LabelHasher hash_;
  std::vector<Recent> recent_;  // none before the first 1.0 message
  std::uint32_t last_ = 0;
  bool known_ = false;  // the series at hand is recent_[last_]
  std::string_view records_;
  std::uint32_t count_ = 0;
  std::size_t name_at_ = 0;
  std::size_t name_size_ = 0;
  std::optional<std::string_view> metric_;
  bool scattered_ = false;
  std::string scratch_;
  std::string joined_;
};

// The labels of a 2.0 series: pairs of references into the symbols of the message. What a reference
// stands for changes from message to message, so the key is a hash over hashes of the symbols, each
// made once a message. Within one message equal references are equal labels, and a GPU's metrics
// all have the same: their key is remembered by the bytes of the references.
class LabelRefs {
 public:
  static constexpr std::uint32_t kExemplars = 4, kHistograms = 3, kMetadata = 5, kKnown = 5;
  static constexpr bool kUnpacked = true;

  explicit LabelRefs(std::uint64_t seed) : hash_(seed) {}

  void begin_message() {
    symbols_.clear();
    slots_.resize(kKnownSlots);
    ++message_;
  }
  // Labels of 2.0 are short, and their keys are remembered by what they are written as.
  const char* begin_as_before(std::string_view) { return nullptr; }
  void add_symbol(std::string_view text) { symbols_.push_back({text, {}, false}); }
  std::size_t symbols() const { return symbols_.size(); }

  void begin() {
    packed_ = {};
    scattered_ = false;
    refs_.clear();
    known_ = nullptr;
  }
  void add(std::string_view field, std::string_view packed);

  // Reads no further than the name, which is all that an unwanted series costs.
  std::optional<std::string_view> metric();
  // Why the labels cannot be read; empty if they can.
  std::string_view unreadable();
  std::uint32_t count() const {
    return known_ != nullptr ? known_->count : static_cast<std::uint32_t>(refs_.size() / 2);
  }
  LabelsKey key();
  void resolve(std::vector<Label>& into, With with);

 private:
  struct Symbol {
    std::string_view text;
    LabelsKey hash;
    bool hashed;
  };
  struct Known {
    std::uint64_t message = 0;  // in which it is so; 0 for none
    LabelsKey refs;             // a hash of their bytes, without the name's
    LabelsKey key;
    std::uint32_t count = 0;
  };
  static constexpr std::size_t kKnownSlots = 1
                                             << 12;  // 192 KiB; a message has some thousand series

  bool is_name(std::uint32_t ref) const { return symbols_[ref].text == kNameLabel; }
  std::uint32_t ref(FieldCursor& cursor) const {
    const char* const begin = cursor.at();
    const std::uint64_t ref = cursor.varint();
    if (ref >= symbols_.size()) [[unlikely]] {
      stop(begin, "symbol " + std::to_string(ref) + " of " + std::to_string(symbols_.size()));
    }
    return static_cast<std::uint32_t>(ref);
  }
  const LabelsKey& hash_of(std::uint32_t ref);
  void read_refs();

  LabelHasher hash_;
  std::uint64_t message_ = 0;
  std::vector<Symbol> symbols_;
  std::vector<Known> slots_;  // none before the first 2.0 message

  std::string_view packed_;
  bool scattered_ = false;
  std::string scratch_;
  std::size_t name_at_ = 0;  // of the name's pair in packed_
  std::size_t name_end_ = 0;
  std::string joined_;
  LabelsKey refs_hash_;
  const Known* known_ = nullptr;
  std::vector<std::uint32_t> refs_;
  std::vector<LabelsKey> hashes_;
};

}  // namespace flopsight::wire
