#include "net/password.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace flopsight::net {
namespace {

// Of "secret", "" and "päss", by libcrypt; the last is a known vector of John the Ripper, of "U*U".
const std::string kSecret = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
const std::string kEmpty = "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq";
const std::string kNonAscii = "$2a$04$abcdefghijklmnopqrstuuF7KK/SfP9IRGj0pPJMr8GdtCS8xpmpC";
const std::string kVector = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";

std::string with_prefix(const std::string& prefix, const std::string& hash) {
  return prefix + hash.substr(prefix.size());
}

TEST(Password, matches_its_own_hash_only) {
  EXPECT_TRUE(password_matches("secret", kSecret));
  EXPECT_TRUE(password_matches("secret", with_prefix("$2y$", kSecret)));  // as htpasswd writes it
  EXPECT_TRUE(password_matches("", kEmpty));
  EXPECT_TRUE(password_matches("p\xc3\xa4ss", kNonAscii));
  EXPECT_TRUE(password_matches("U*U", kVector));
  EXPECT_FALSE(password_matches("Secret", kSecret));
  EXPECT_FALSE(password_matches("secret ", kSecret));
  EXPECT_FALSE(password_matches("", kSecret));
  EXPECT_FALSE(password_matches(kSecret, kSecret));
}

TEST(Password, a_nul_does_not_end_a_password) {
  EXPECT_FALSE(password_matches(std::string("secret\0more", 11), kSecret));
  EXPECT_FALSE(password_matches(std::string("\0", 1), kEmpty));
}

TEST(Password, what_is_no_bcrypt_hash_matches_nothing) {
  for (const std::string& text :
       {std::string(), std::string("secret"), std::string("$2b$"), kSecret + "x",
        kSecret.substr(0, 59), with_prefix("$1$", kSecret), with_prefix("$2x$", kSecret),
        with_prefix("$2b$03$", kSecret), with_prefix("$2b$32$", kSecret),
        with_prefix("$2b$0x$", kSecret), with_prefix("$2b$04$:", kSecret), std::string("*0"),
        std::string(60, '$'), std::string(60, '\0')}) {
    EXPECT_FALSE(is_bcrypt_hash(text)) << text;
    EXPECT_FALSE(password_matches("secret", text)) << text;
  }
  EXPECT_TRUE(is_bcrypt_hash(kSecret));
  EXPECT_TRUE(is_bcrypt_hash(kNobodyHash));
}

TEST(PasswordCache, remembers_what_matched_and_only_that) {
  PasswordCache cache;
  EXPECT_FALSE(cache.remembers("secret", kSecret));
  EXPECT_FALSE(cache.matches("wrong", kSecret));
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_TRUE(cache.matches("secret", kSecret));
  EXPECT_TRUE(cache.matches("secret", kSecret));
  EXPECT_TRUE(cache.remembers("secret", kSecret));
  EXPECT_FALSE(cache.remembers("secret", kEmpty));
  EXPECT_FALSE(cache.remembers("secre", "t" + kSecret));
  EXPECT_EQ(cache.size(), 1u);
}

TEST(PasswordCache, forgets_the_oldest_when_full) {
  PasswordCache cache(2);
  EXPECT_TRUE(cache.matches("secret", kSecret));
  EXPECT_TRUE(cache.matches("", kEmpty));
  EXPECT_TRUE(cache.matches("p\xc3\xa4ss", kNonAscii));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_FALSE(cache.remembers("secret", kSecret));
  EXPECT_TRUE(cache.remembers("", kEmpty));
  EXPECT_TRUE(cache.matches("secret", kSecret));
}

TEST(PasswordCache, a_cache_of_nothing_still_checks) {
  PasswordCache cache(0);
  EXPECT_TRUE(cache.matches("secret", kSecret));
  EXPECT_EQ(cache.size(), 0u);
}

TEST(PasswordCache, may_be_asked_by_several_threads) {
  PasswordCache cache(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_TRUE(cache.matches("secret", kSecret));
      EXPECT_TRUE(cache.matches("", kEmpty));
      EXPECT_TRUE(cache.matches("p\xc3\xa4ss", kNonAscii));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.size(), 2u);
}

}  // namespace
}  // namespace flopsight::net
