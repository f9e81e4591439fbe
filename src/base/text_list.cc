#include "base/text_list.h"

#include "base/room.h"

namespace flopsight::base {
namespace {

constexpr std::size_t kReplacedBytesMin = 1 << 16;

// The length at `at`, which goes on to the text.
std::size_t read_length(const char*& at) {
  std::size_t length = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    length |= static_cast<std::size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return length;
  }
}

}  // namespace

void TextList::append(std::size_t number, std::string_view text) {
  starts_[number] = static_cast<std::uint32_t>(bytes_.size());
  std::string length;
  std::size_t left = text.size();
  for (; left >= 0x80; left >>= 7) length.push_back(static_cast<char>(left | 0x80));
  length.push_back(static_cast<char>(left));
  make_room(bytes_, bytes_.size() + length.size() + text.size());
  bytes_.insert(bytes_.end(), length.begin(), length.end());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
}

void TextList::push_back(std::string_view text) {
  add_one(starts_);
  append(starts_.size() - 1, text);
}

void TextList::replace(std::size_t number, std::string_view text) {
  const std::string_view before = (*this)[number];
  if (before == text) return;
  replaced_bytes_ += static_cast<std::size_t>(before.end() - (bytes_.data() + starts_[number]));
  append(number, text);
  if (replaced_bytes_ > kReplacedBytesMin && replaced_bytes_ > bytes_.size() / 4) forget_replaced();
}

std::string_view TextList::operator[](std::size_t number) const {
  const char* at = bytes_.data() + starts_[number];
  const std::size_t length = read_length(at);
  return {at, length};
}

void TextList::forget_replaced() {
  std::vector<char> kept;
  kept.reserve(bytes_.size() - replaced_bytes_);
  for (std::size_t number = 0; number < starts_.size(); ++number) {
    const std::string_view text = (*this)[number];
    const char* const from = bytes_.data() + starts_[number];
    starts_[number] = static_cast<std::uint32_t>(kept.size());
    kept.insert(kept.end(), from, text.data() + text.size());
  }
  bytes_ = std::move(kept);
  replaced_bytes_ = 0;
}

}  // namespace flopsight::base
