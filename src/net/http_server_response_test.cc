#include "net/http_server_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace flopsight::net {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HttpServerResponse, is_a_status_line_and_headers) {
  ServerResponse response;
  response.headers = {{"X-A", "1"}};
  response.body = "four";
  EXPECT_EQ(response_head(response, {true, false, "today"}),
            "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Type: text/plain; "
            "charset=utf-8\r\nContent-Length: 4\r\n"
            "X-A: 1\r\n\r\n");
  EXPECT_THAT(response_head(response, {false, false, {}}), HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(response_head(response, {true, true, {}}),
              HasSubstr("\r\nConnection: keep-alive\r\n"));
}

TEST(HttpServerResponse, control_characters_become_spaces_and_names_that_are_none_are_left_out) {
  ServerResponse response;
  response.content_type = "a\r\nX: b";
  response.headers = {{"Location", std::string("/x\r\nSet-Cookie: a\0\x7f", 19)},
                      {"Bad Name", "1"},
                      {"Bad:", "2"},
                      {"", "3"},
                      {"X\r\nY", "4"},
                      {"\xc3\xa4", "5"}};
  const std::string head = response_head(response, {});
  EXPECT_THAT(head, HasSubstr("\r\nContent-Type: a  X: b\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nLocation: /x  Set-Cookie: a  \r\n\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Bad")));
}

TEST(HttpServerResponse, framing_is_the_servers) {
  ServerResponse response;
  response.headers = {{"content-length", "9"},   {"Transfer-Encoding", "chunked"},
                      {"Connection", "upgrade"}, {"Content-Type", "second"},
                      {"Date", "never"},         {"Trailer", "x"},
                      {"Upgrade", "x"}};
  EXPECT_EQ(
      response_head(response, {}),
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 0\r\n\r\n");
}

TEST(HttpServerResponse, a_status_that_is_none_is_500) {
  for (const int status : {0, -1, 100, 199, 600, 20000}) {
    ServerResponse response;
    response.status = status;
    EXPECT_THAT(response_head(response, {}), StartsWith("HTTP/1.1 500 Internal Server Error\r\n"));
  }
  ServerResponse odd;
  odd.status = 299;
  EXPECT_THAT(response_head(odd, {}), StartsWith("HTTP/1.1 299 Unknown\r\n"));
}

TEST(HttpServerResponse, dates_are_those_of_the_standard) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

}  // namespace
}  // namespace flopsight::net
