#include "net/request_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace flopsight::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::string path_of(const std::string& target) {
  const auto parsed = parse_request_target(target);
  return parsed.ok() ? parsed->path : "error: " + parsed.error().message;
}

TEST(RequestTarget, the_path_is_decoded_and_a_plus_in_it_is_a_plus) {
  EXPECT_EQ(path_of("/"), "/");
  EXPECT_EQ(path_of("/a%20b+c%2Fd%C3%a4"), "/a b+c/d\xc3\xa4");
  EXPECT_EQ(path_of("/a?b=/c%zz"), "error: bad percent escape in the query");
  EXPECT_EQ(path_of("//a/../b"), "//a/../b");
}

TEST(RequestTarget, a_target_for_a_proxy_is_taken_for_ours) {
  EXPECT_EQ(path_of("http://host:9090/api/v1?x=1"), "/api/v1");
  EXPECT_EQ(path_of("HTTPS://host/api"), "/api");
  EXPECT_EQ(path_of("http://host"), "/");
  EXPECT_EQ(path_of("http://host?x=1"), "/");
  EXPECT_EQ(path_of("*"), "*");
  EXPECT_THAT(parse_request_target("http://host?x=1")->query, ElementsAre(Pair("x", "1")));
}

TEST(RequestTarget, what_is_no_path_is_an_error) {
  for (const std::string target : {"", "a", "?x=1", "host:443", "ftp://host/", "%2Fa", "*a"}) {
    EXPECT_EQ(path_of(target), "error: a request target starts with '/'") << target;
  }
  for (const std::string target : {"/%", "/%1", "/%zz", "/%1g", "/a%"}) {
    EXPECT_EQ(path_of(target), "error: bad percent escape in the path") << target;
  }
  for (const std::string target : {"/%00", "/%0a", "/%0D", "/%1f", "/%7f", "/\x01"}) {
    EXPECT_EQ(path_of(target), "error: control character in the path") << target;
  }
  EXPECT_EQ(path_of("/a#b"), "error: '#' in the request target");
}

TEST(RequestTarget, a_query_keeps_order_repetitions_and_empty_values) {
  EXPECT_THAT(*parse_query("b=1&a=2&b=3&c&d=&=e"),
              ElementsAre(Pair("b", "1"), Pair("a", "2"), Pair("b", "3"), Pair("c", ""),
                          Pair("d", ""), Pair("", "e")));
  EXPECT_THAT(*parse_query("match%5B%5D=up%7Bx%3D%221%22%7D+%2b%201&x=a=b"),
              ElementsAre(Pair("match[]", "up{x=\"1\"} + 1"), Pair("x", "a=b")));
  EXPECT_THAT(*parse_query("query=a%0Ab"), ElementsAre(Pair("query", "a\nb")));
  EXPECT_THAT(*parse_query(""), IsEmpty());
  EXPECT_THAT(*parse_query("&&"), IsEmpty());
}

TEST(RequestTarget, a_query_with_a_bad_escape_or_a_nul_is_an_error) {
  EXPECT_EQ(parse_query("a=%").error().message, "bad percent escape in the query");
  EXPECT_EQ(parse_query("%f=1").error().message, "bad percent escape in the query");
  EXPECT_EQ(parse_query("a=%00").error().message, "NUL in the query");
  EXPECT_EQ(parse_query("%00=a").error().message, "NUL in the query");
}

}  // namespace
}  // namespace flopsight::net
