#include "wire/remote_write_internal.h"

namespace flopsight::wire {
namespace {

Label next_label(FieldCursor& records) {
  records.tag();
  Label label;
  for (FieldCursor fields(records.bytes()); !fields.done();) {
    switch (const std::uint32_t tag = fields.tag()) {
      case tag_of(1, kBytes):
        label.name = fields.bytes();
        break;
      case tag_of(2, kBytes):
        label.value = fields.bytes();
        break;
      default:
        fields.skip(tag, 2);
    }
  }
  return label;
}

}  // namespace

void LabelRecords::resolve(std::vector<Label>& into, With with) const {
  into.clear();
  for (FieldCursor cursor(records_); !cursor.done();) {
    const auto at = static_cast<std::size_t>(cursor.at() - records_.data());
    const Label label = next_label(cursor);
    if (with == With::kName || !metric_ || at != name_at_) into.push_back(label);
  }
}

void LabelRecords::find_name() {
  for (FieldCursor cursor(records_); !cursor.done() && !metric_;) {
    const auto at = static_cast<std::size_t>(cursor.at() - records_.data());
    const Label label = next_label(cursor);
    const auto end = static_cast<std::size_t>(cursor.at() - records_.data());
    if (label.name == kNameLabel) set_name(at, end - at, label.value);
  }
}

void LabelRecords::remember(const LabelsKey& key) {
  recent_.resize(kRecent);
  const auto place = static_cast<std::uint32_t>(key.low % kRecent);
  recent_[last_].next = place;
  last_ = place;
  Recent& recent = recent_[place];
  if (recent.key == key) return;
  if (joined_.size() > kRecentBytesMax) return;
  recent.labels = joined_;
  recent.name_at = name_at_;
  recent.count = count_;
  recent.key = key;
}

const char* LabelRecords::begin_as_before(std::string_view series) {
  if (recent_.empty()) return nullptr;
  const std::uint32_t next = recent_[last_].next;
  if (const char* const end = begin_as(last_, series)) return end;
  return begin_as(next, series);
}

const char* LabelRecords::begin_as(std::uint32_t place, std::string_view series) {
  const Recent& recent = recent_[place];
  // The name's record has at least its tag, its length and kPrefix.
  constexpr std::string_view kPrefix = "\x0a\x08__name__\x12";
  constexpr std::size_t kLeast = 2 + kPrefix.size() + 1;
  if (recent.count == 0 || series.size() < recent.labels.size() + kLeast) return nullptr;
  const char* const name = series.data() + recent.name_at;
  const auto name_record = static_cast<unsigned char>(name[1]);
  const std::size_t after_size = recent.labels.size() - recent.name_at;
  // A length of one byte, the usual spelling, and a value that ends where its record does.
  if (name[0] != '\x0a' || name_record >= 0x80 || name_record < kPrefix.size() + 1) return nullptr;
  if (series.size() - recent.name_at - 2 < name_record + after_size) return nullptr;
  if (std::memcmp(name + 2, kPrefix.data(), kPrefix.size()) != 0) return nullptr;
  const auto value_size = static_cast<unsigned char>(name[2 + kPrefix.size()]);
  if (value_size + kPrefix.size() + 1 != name_record) return nullptr;
  const char* const after = name + 2 + name_record;
  if (std::memcmp(series.data(), recent.labels.data(), recent.name_at) != 0) return nullptr;
  if (std::memcmp(after, recent.labels.data() + recent.name_at, after_size) != 0) return nullptr;
  // Another label behind them would be one of the set.
  const char* const end = after + after_size;
  if (end != series.data() + series.size() && *end == '\x0a') return nullptr;
  last_ = place;
  known_ = true;
  scattered_ = false;
  records_ = {series.data(), static_cast<std::size_t>(end - series.data())};
  count_ = recent.count;
  set_name(recent.name_at, 2U + name_record, {name + kLeast, value_size});
  return end;
}

// Something stands between the labels: they are copied together.
void LabelRecords::scatter(std::string_view record) {
  if (!scattered_) scratch_.assign(records_);
  scattered_ = true;
  scratch_.append(record);
  records_ = scratch_;
}

void LabelRefs::add(std::string_view, std::string_view packed) {
  if (packed.empty()) return;
  if ((packed.back() & '\x80') != 0) stop(packed.data(), "a number that does not end");
  if (packed_.empty()) {
    packed_ = packed;
    return;
  }
  if (!scattered_) scratch_.assign(packed_);
  scattered_ = true;
  scratch_.append(packed);
  packed_ = scratch_;
}

std::optional<std::string_view> LabelRefs::metric() {
  for (FieldCursor cursor(packed_); !cursor.done();) {
    const char* const at = cursor.at();
    const std::uint32_t name = ref(cursor);
    if (cursor.done()) break;
    const std::uint32_t value = ref(cursor);
    if (is_name(name)) {
      name_at_ = static_cast<std::size_t>(at - packed_.data());
      name_end_ = static_cast<std::size_t>(cursor.at() - packed_.data());
      return symbols_[value].text;
    }
  }
  return std::nullopt;
}

std::string_view LabelRefs::unreadable() {
  joined_.assign(packed_, 0, name_at_).append(packed_, name_end_);
  refs_hash_ = hash_(joined_.data(), joined_.size());
  const Known& slot = slots_[refs_hash_.low % kKnownSlots];
  if (slot.message == message_ && slot.refs == refs_hash_) {
    known_ = &slot;
    return {};
  }
  read_refs();
  return refs_.size() % 2 == 0 ? "" : "an odd number of label references";
}

void LabelRefs::read_refs() {
  refs_.clear();
  for (FieldCursor cursor(packed_); !cursor.done();) refs_.push_back(ref(cursor));
}

const LabelsKey& LabelRefs::hash_of(std::uint32_t ref) {
  Symbol& symbol = symbols_[ref];
  if (!symbol.hashed) {
    symbol.hash = hash_(symbol.text.data(), symbol.text.size());
    symbol.hashed = true;
  }
  return symbol.hash;
}

LabelsKey LabelRefs::key() {
  if (known_ != nullptr) return known_->key;
  hashes_.clear();
  bool name_seen = false;
  for (std::size_t i = 0; i + 1 < refs_.size(); i += 2) {
    if (is_name(refs_[i]) && !std::exchange(name_seen, true)) continue;
    hashes_.push_back(hash_of(refs_[i]));
    hashes_.push_back(hash_of(refs_[i + 1]));
  }
  const LabelsKey key = hash_(hashes_.data(), hashes_.size() * sizeof(LabelsKey));
  slots_[refs_hash_.low % kKnownSlots] = {message_, refs_hash_, key, count()};
  return key;
}

void LabelRefs::resolve(std::vector<Label>& into, With with) {
  into.clear();
  if (refs_.empty()) read_refs();
  bool name_seen = with == With::kName;
  for (std::size_t i = 0; i + 1 < refs_.size(); i += 2) {
    if (is_name(refs_[i]) && !std::exchange(name_seen, true)) continue;
    into.push_back({symbols_[refs_[i]].text, symbols_[refs_[i + 1]].text});
  }
}

}  // namespace flopsight::wire
