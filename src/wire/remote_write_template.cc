#include "wire/remote_write_template.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace flopsight::wire {
namespace {

constexpr std::string_view kName = "__name__";
constexpr std::size_t kTimeBytes = 6;      // of a varint between 2^35 and 2^42
constexpr std::size_t kCopyReach = 65535;  // of a copy with two bytes of offset
constexpr std::size_t kCopyBytesMax = 64;
// Sample {1: fixed64 value, 2: varint timestamp} as field 2 of a series, in both versions.
constexpr std::size_t kSampleInner = 1 + 8 + 1 + kTimeBytes;
constexpr std::size_t kSampleBytes = 2 + kSampleInner;

void append_varint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::size_t varint_bytes(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

void append_field(char tag, std::string_view text, std::string& out) {
  out += tag;
  append_varint(text.size(), out);
  out += text;
}

// Builds a Snappy block, knowing where every byte of the message came to lie.
class Block {
 public:
  std::size_t position() const { return position_; }  // in the message

  void literal(std::string_view text) {
    pending_ += text;
    position_ += text.size();
  }
  // Bytes that will be written later; their place is appended to places() when it is known.
  void hole(std::size_t bytes) {
    marks_.push_back(pending_.size());
    pending_.append(bytes, '\0');
    position_ += bytes;
  }
  // The same as `text`, which the message has at `from`: a copy if that is near and saves something.
  void again(std::size_t from, std::string_view text) {
    if (text.size() < 4 || position_ - from > kCopyReach) return literal(text);
    flush();
    const std::size_t distance = position_ - from;
    for (std::size_t left = text.size(); left > 0;) {
      const std::size_t part = std::min(left, kCopyBytesMax);
      body_ += static_cast<char>((part - 1) << 2 | 2);
      body_ += static_cast<char>(distance & 255);
      body_ += static_cast<char>(distance >> 8);
      left -= part;
    }
    position_ += text.size();
  }
  std::string take(std::vector<std::uint32_t>& places) {
    flush();
    std::string out;
    append_varint(position_, out);
    for (const std::size_t place : places_) places.push_back(static_cast<std::uint32_t>(out.size() + place));
    return out + body_;
  }

 private:
  void flush() {
    if (pending_.empty()) return;
    const std::size_t last = pending_.size() - 1;
    if (last < 60) {
      body_ += static_cast<char>(last << 2);
    } else {
      const int bytes = last < 1U << 8 ? 1 : last < 1U << 16 ? 2 : last < 1U << 24 ? 3 : 4;
      body_ += static_cast<char>((59 + bytes) << 2);
      for (int i = 0; i < bytes; ++i) body_ += static_cast<char>(last >> (8 * i) & 255);
    }
    for (const std::size_t mark : marks_) places_.push_back(body_.size() + mark);
    marks_.clear();
    body_ += pending_;
    pending_.clear();
  }

  std::string body_;
  std::string pending_;
  std::vector<std::size_t> marks_;   // holes in pending_
  std::vector<std::size_t> places_;  // holes in body_
  std::size_t position_ = 0;
};

// Pieces of text by where they were written last.
class Seen {
 public:
  explicit Seen(Block& block) : block_(block) {}
  void write(const std::string& text) {
    const auto [at, fresh] = last_.try_emplace(text, block_.position());
    if (fresh) {
      block_.literal(text);
    } else {
      const std::size_t before = at->second;
      at->second = block_.position();
      block_.again(before, text);
    }
  }

 private:
  Block& block_;
  std::unordered_map<std::string, std::size_t> last_;
};

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}

}  // namespace

std::uint32_t RemoteWriteTemplate::symbol(std::string_view text) {
  const auto [at, fresh] = symbol_refs_.try_emplace(std::string(text), static_cast<std::uint32_t>(symbols_.size()));
  if (fresh) symbols_.emplace_back(text);
  return at->second;
}

std::string RemoteWriteTemplate::label_bytes(const Label& label) {
  std::string out;
  if (version_ == RemoteWriteVersion::kV2) {
    append_varint(symbol(label.name), out);
    append_varint(symbol(label.value), out);
    return out;
  }
  std::string inner;
  append_field(0x0A, label.name, inner);
  append_field(0x12, label.value, inner);
  append_field(0x0A, inner, out);
  return out;
}

void RemoteWriteTemplate::add(std::span<const Label> labels, std::span<const std::string_view> metrics) {
  FLOPSIGHT_CHECK(bytes_.empty());
  Group group;
  for (const Label& label : labels) (label.name < kName ? group.before : group.after).push_back(label_bytes(label));
  group.metrics.assign(metrics.begin(), metrics.end());
  series_ += metrics.size();
  groups_.push_back(std::move(group));
}

void RemoteWriteTemplate::finish() {
  const bool v2 = version_ == RemoteWriteVersion::kV2;
  std::unordered_map<std::string_view, std::string> names;
  for (const Group& group : groups_) {
    for (const std::string_view metric : group.metrics) {
      if (!names.contains(metric)) names.emplace(metric, label_bytes({kName, metric}));
    }
  }
  Block block;
  Seen seen(block);
  for (const std::string& text : symbols_) {
    if (!v2) break;
    std::string field;
    append_field(0x22, text, field);
    block.literal(field);
  }
  const std::string sample_head{0x12, static_cast<char>(kSampleInner), 0x09}, time_tag{0x10};
  for (const Group& group : groups_) {
    const std::string before = joined(group.before), after = joined(group.after);
    std::size_t last_before = 0, last_after = 0;
    for (std::size_t i = 0; i < group.metrics.size(); ++i) {
      const std::string& name = names.at(group.metrics[i]);
      const std::size_t labels = before.size() + name.size() + after.size();
      const std::size_t inner = (v2 ? 1 + varint_bytes(labels) : 0) + labels + kSampleBytes;
      std::string head;
      head += v2 ? '\x2A' : '\x0A';
      append_varint(inner, head);
      if (v2) {
        head += '\x0A';
        append_varint(labels, head);
      }
      block.literal(head);
      // The first series of a group writes its labels one by one, as other groups have some of them; the others at once.
      const auto write = [&](const std::vector<std::string>& parts, const std::string& all, std::size_t& last) {
        const std::size_t here = block.position();
        if (i > 0) {
          block.again(last, all);
        } else {
          for (const std::string& part : parts) seen.write(part);
        }
        last = here;
      };
      write(group.before, before, last_before);
      seen.write(name);
      write(group.after, after, last_after);
      block.literal(sample_head);
      block.hole(8);
      block.literal(time_tag);
      block.literal(std::string(kTimeBytes - 1, '\x80') + '\1');
    }
  }
  groups_.clear();
  symbol_refs_.clear();
  symbols_.clear();
  places_.reserve(series_);
  bytes_ = block.take(places_);
  FLOPSIGHT_CHECK(places_.size() == series_);
}

void RemoteWriteTemplate::set(std::size_t index, double value, std::int64_t timestamp_milliseconds) {
  FLOPSIGHT_CHECK(index < places_.size());
  FLOPSIGHT_CHECK(timestamp_milliseconds >= std::int64_t{1} << 35 && timestamp_milliseconds < std::int64_t{1} << 42);
  char* at = bytes_.data() + places_[index];
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(at, &value, sizeof value);
  auto time = static_cast<std::uint64_t>(timestamp_milliseconds);
  at += sizeof value + 1;
  for (std::size_t i = 0; i + 1 < kTimeBytes; ++i, time >>= 7) *at++ = static_cast<char>(time | 0x80);
  *at = static_cast<char>(time);
}

}  // namespace flopsight::wire
