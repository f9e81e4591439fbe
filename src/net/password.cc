#include "net/password.h"

#include <crypt.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/check.h"

namespace flopsight::net {
namespace {

constexpr std::size_t kHashBytes = 60;
constexpr std::size_t kSaltBytes = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes as long whatever differs.
bool same_bytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differences = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return differences == 0;
}

}  // namespace

bool is_bcrypt_hash(std::string_view text) {
  if (text.size() != kHashBytes || !text.starts_with("$2") || text[3] != '$' || text[6] != '$')
    return false;
  if (text[2] != 'a' && text[2] != 'b' && text[2] != 'y') return false;
  if (!is_digit(text[4]) || !is_digit(text[5])) return false;
  const int cost = (text[4] - '0') * 10 + (text[5] - '0');
  return cost >= 4 && cost <= 31 && std::all_of(text.begin() + 7, text.end(), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
                  c == '/';
         });
}

bool password_matches(std::string_view password, std::string_view bcrypt_hash) {
  if (!is_bcrypt_hash(bcrypt_hash) || password.find('\0') != std::string_view::npos) return false;
  const auto memory = std::make_unique<crypt_data>();  // 32 KiB, and must be zero
  const char* const made =
      crypt_r(std::string(password).c_str(), std::string(bcrypt_hash).c_str(), memory.get());
  return made != nullptr && same_bytes(made, bcrypt_hash);
}

PasswordCache::PasswordCache(std::size_t entries_max)
    : entries_max_(entries_max), salt_(kSaltBytes, '\0') {
  FLOPSIGHT_CHECK(getrandom(salt_.data(), salt_.size(), 0) == static_cast<ssize_t>(salt_.size()));
}

std::string PasswordCache::key_of(std::string_view password, std::string_view bcrypt_hash) const {
  // The length keeps the two apart: nothing moves from the end of one to the start of the other.
  std::string text = salt_ + std::to_string(password.size()) + ":";
  text.append(password).append(bcrypt_hash);
  std::string key(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(key.data()));
  return key;
}

bool PasswordCache::remembers(std::string_view password, std::string_view bcrypt_hash) const {
  const std::string key = key_of(password, bcrypt_hash);
  const std::lock_guard lock(mutex_);
  return known_.contains(key);
}

bool PasswordCache::matches(std::string_view password, std::string_view bcrypt_hash) {
  if (remembers(password, bcrypt_hash)) return true;
  if (!password_matches(password, bcrypt_hash)) return false;
  std::string key = key_of(password, bcrypt_hash);
  const std::lock_guard lock(mutex_);
  if (entries_max_ == 0 || !known_.insert(key).second) return true;
  order_.push_back(std::move(key));
  if (order_.size() > entries_max_) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

std::size_t PasswordCache::size() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

}  // namespace flopsight::net
