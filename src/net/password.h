#pragma once
// Passwords against bcrypt hashes ("$2y$10$…", as htpasswd -B makes them and web configurations
// hold them).
//
// A check takes tens of milliseconds by design: never on the event loop. PasswordCache::remembers()
// is the quick half for there. Threads: everything here from any.

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

namespace flopsight::net {

// Of nobody's password. Who checks an unknown user's password against it takes as long as for a
// known one.
inline constexpr std::string_view kNobodyHash =
    "$2b$10$8QPh6fU04lC8vKfV0CbDzOZNPaP24opUtc79JVfbzeVnnnhshnFDm";

bool is_bcrypt_hash(std::string_view text);

// False for a hash that is none, and for a password with a NUL, which bcrypt would read as its end.
// Only the first 72 bytes of a password count, as everywhere with bcrypt.
bool password_matches(std::string_view password, std::string_view bcrypt_hash);

// Remembers which passwords matched, so that bcrypt is not run for each request. Holds salted
// SHA-256 of both, no password. What did not match is not remembered.
class PasswordCache {
 public:
  explicit PasswordCache(std::size_t entries_max = 256);  // the oldest goes first

  // Quick. False: not known, try matches().
  bool remembers(std::string_view password, std::string_view bcrypt_hash) const;
  bool matches(std::string_view password, std::string_view bcrypt_hash);
  std::size_t size() const;

 private:
  std::string key_of(std::string_view password, std::string_view bcrypt_hash) const;

  const std::size_t entries_max_;
  std::string salt_;  // of this process: a key says nothing elsewhere
  mutable std::mutex mutex_;
  std::unordered_set<std::string> known_;
  std::deque<std::string> order_;
};

}  // namespace flopsight::net
