#include "net/http_text.h"

#include <gtest/gtest.h>

#include "net/http_answer.h"
#include "net/http_client.h"
#include "net/http_options.h"
#include "net/http_target.h"

namespace flopsight::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(UrlWithoutCredentials, hides_user_and_password) {
  EXPECT_EQ(url_without_credentials("http://user:secret@host:9090/x"), "http://host:9090/x");
  EXPECT_EQ(url_without_credentials("https://user@host"), "https://host");
  EXPECT_EQ(url_without_credentials("user:secret@host/x"), "host/x");
  EXPECT_EQ(url_without_credentials("http://a@b:c@host/x"), "http://host/x");
  EXPECT_EQ(url_without_credentials("http://user:secret@[::1]:9090/x"), "http://[::1]:9090/x");
}

TEST(UrlWithoutCredentials, hides_a_password_with_an_unencoded_slash_or_question_mark) {
  EXPECT_EQ(url_without_credentials("http://user:se/cret@host/x"), "http://host/x");
  EXPECT_EQ(url_without_credentials("http://user:se?c@ret@host/x"), "http://host/x");
}

TEST(UrlWithoutCredentials, leaves_other_urls_alone) {
  for (const char* url : {"http://host:9090/x?q=a@b", "http://host/@x", "http://[::1]:9090/a@b",
                          "http://[::1]/a@b", "host", ""}) {
    EXPECT_EQ(url_without_credentials(url), url);
  }
}

TEST(UrlEncode, encodes_all_but_the_unreserved_characters) {
  EXPECT_EQ(url_encode("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(url_encode("m{a=\"b c\"}+1&x"), "m%7Ba%3D%22b%20c%22%7D%2B1%26x");
  EXPECT_EQ(url_encode("\xC3\xA9"), "%C3%A9");
  EXPECT_EQ(url_encode(std::string_view("\0", 1)), "%00");
}

TEST(SingleLine, joins_lines_and_drops_what_a_terminal_would_obey) {
  EXPECT_EQ(single_line("  <html>\r\n\t<p>no</p>\n", 200), "<html> <p>no</p>");
  EXPECT_EQ(single_line("a\x1b[31mb\x07 \xC2\x9B c", 200), "a[31mb c");
}

TEST(SingleLine, drops_bytes_that_are_not_utf8) {
  EXPECT_EQ(single_line("\xC3\xA9 \xFF\xFEx \xE2\x82\xAC \xE2\x82", 200),
            "\xC3\xA9 x \xE2\x82\xAC");
}

TEST(SingleLine, cuts_at_a_character_and_marks_it) {
  EXPECT_EQ(single_line("abcd", 4), "abcd");
  EXPECT_EQ(single_line("abcde", 4), "abcd...");
  EXPECT_EQ(single_line("abc\xE2\x82\xAC", 4), "abc...");
}

TEST(CheckHeaders, refuses_what_would_smuggle_a_second_header) {
  EXPECT_TRUE(check_headers({{"X-Scope-OrgID", "team a"}, {"X-Empty", ""}}).ok());
  EXPECT_FALSE(check_headers({{"X-A", "b\r\nX-C: d"}}).ok());
  EXPECT_FALSE(check_headers({{"X-A: b\r\nX-C", "d"}}).ok());
  EXPECT_FALSE(check_headers({{"", "d"}}).ok());
  EXPECT_EQ(check_headers({{"X-Key", "sec\nret"}}).error().message,
            "header X-Key: its value has a line break or control character");
}

TEST(RetryPause, doubles_and_ends_at_30_seconds) {
  HttpOptions options;
  options.retry_backoff = milliseconds(200);
  EXPECT_EQ(retry_pause(options, 1, {}), milliseconds(200));
  EXPECT_EQ(retry_pause(options, 2, {}), milliseconds(400));
  EXPECT_EQ(retry_pause(options, 5, {}), milliseconds(3200));
  EXPECT_EQ(retry_pause(options, 1000, {}), seconds(30));
}

TEST(RetryPause, never_comes_earlier_than_the_server_asked) {
  HttpOptions options;
  options.retry_backoff = milliseconds(200);
  EXPECT_EQ(retry_pause(options, 1, seconds(7)), seconds(7));
  EXPECT_EQ(retry_pause(options, 1, seconds(0)), milliseconds(200));
}

TEST(HttpAnswer, takes_retry_after_in_seconds_up_to_a_day_and_ignores_dates) {
  HttpAnswer answer;
  answer.take_header("HTTP/1.1 429 Too Many Requests\r\n");
  answer.take_header("Retry-After: 12\r\n");
  EXPECT_EQ(answer.retry_after, seconds(12));
  answer.take_header("retry-after:99999999999999999999\r\n");
  EXPECT_EQ(answer.retry_after, seconds(86'400));
  answer.take_header("Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n");
  EXPECT_EQ(answer.retry_after, std::nullopt);
}

TEST(HttpAnswer, forgets_a_provisional_answer) {
  HttpAnswer answer;
  answer.body_bytes_max = 10;
  answer.take_header("HTTP/1.1 100 Continue\r\n");
  answer.take_header("Location: /a\r\n");
  answer.take_header("HTTP/2 200\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.status_line, "200");
  EXPECT_EQ(answer.location, "");
  EXPECT_EQ(answer.body_bytes_max, 10U);
}

TEST(HttpAnswer, keeps_a_body_up_to_its_limit) {
  HttpAnswer answer;
  answer.body_bytes_max = 4;
  answer.take_header("HTTP/1.1 200 OK");
  EXPECT_TRUE(answer.take_body("abcd"));
  EXPECT_FALSE(answer.over_limit);
  EXPECT_FALSE(answer.take_body("e"));
  EXPECT_TRUE(answer.over_limit);
  EXPECT_EQ(answer.body, "abcd");
}

TEST(SharesCredentials, only_within_the_origin_or_up_to_its_tls_port) {
  const auto at = [](const char* scheme, const char* host, const char* port) {
    return HttpTarget{"", scheme, host, port, {}};
  };
  EXPECT_TRUE(shares_credentials(at("http", "a", "9090"), at("http", "a", "9090")));
  EXPECT_TRUE(shares_credentials(at("http", "a", "80"), at("https", "a", "443")));
  EXPECT_FALSE(shares_credentials(at("https", "a", "443"), at("http", "a", "80")));
  EXPECT_FALSE(shares_credentials(at("http", "a", "9090"), at("http", "a", "9091")));
  EXPECT_FALSE(shares_credentials(at("http", "a", "80"), at("http", "b", "80")));
}

}  // namespace
}  // namespace flopsight::net
