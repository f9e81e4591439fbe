#include "engine/remote_writer.h"

#include <atomic>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/test_http_server.h"
#include "wire/snappy.h"

namespace flopsight::engine {
namespace {

using net::TestHttpServer;
using net::TestReply;
using net::TestRequest;
using testing::HasSubstr;

std::vector<Series> some_series(int count) {
  std::vector<Series> series;
  for (int i = 0; i < count; ++i) {
    series.push_back({{{"__name__", "m"}, {"i", std::to_string(i)}}, {{1'000 + i, 1.0 * i}, {2'000 + i, 2.0 * i}}});
  }
  return series;
}

// Names of the series in a message.
class Names : public wire::RemoteWriteSink {
 public:
  explicit Names(const std::string& compressed) {
    std::string message;
    FLOPSIGHT_CHECK(wire::snappy_decompress(compressed, 1 << 24, message).ok());
    wire::RemoteWriteDecoder decoder(1);
    wire::RemoteWriteTotals totals;
    FLOPSIGHT_CHECK(decoder.decode(wire::RemoteWriteVersion::kV1, message, *this, totals).ok());
  }
  bool wants(std::string_view) override { return true; }
  void series(wire::RemoteWriteSeries& series) override {
    names.insert(std::string(series.labels().front().value));
    samples += series.samples().size();
  }
  void rejected(std::string_view, std::string_view) override { FLOPSIGHT_CHECK(false); }
  std::set<std::string> names;
  std::size_t samples = 0;
};

RemoteWriter writer_to(const TestHttpServer& server) {
  auto writer = RemoteWriter::create(server.url("/api/v1/write"), {});
  FLOPSIGHT_CHECK(writer.ok());
  return std::move(writer).value();
}

TEST(RemoteWriter, sends_messages_of_a_size_with_the_protocols_headers) {
  TestHttpServer server([](const TestRequest&) { return TestReply{"204 No Content"}; });
  RemoteWriter writer = writer_to(server);
  writer.samples_max = 6;
  const auto sent = writer.send(some_series(7));
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_EQ(sent->samples, 14U);
  EXPECT_EQ(sent->rejected, 0U);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);
  std::set<std::string> names;
  for (const TestRequest& request : requests) {
    EXPECT_EQ(request.method + request.target, "POST/api/v1/write");
    EXPECT_EQ(request.header("content-encoding"), "snappy");
    EXPECT_EQ(request.header("content-type"), "application/x-protobuf");
    EXPECT_EQ(request.header("x-prometheus-remote-write-version"), "0.1.0");
    const Names message(request.body);
    EXPECT_LE(message.samples, 6U);
    names.insert(message.names.begin(), message.names.end());
  }
  EXPECT_EQ(names.size(), 7U);
}

TEST(RemoteWriter, what_an_engine_will_never_take_is_found_and_the_rest_arrives) {
  std::mutex mutex;
  std::set<std::string> taken;
  TestHttpServer server([&](const TestRequest& request) {
    const Names message(request.body);
    // All or nothing, as Prometheus does.
    if (message.names.contains("3") || message.names.contains("12")) return TestReply{"400 Bad Request", {}, "out of order sample\n"};
    const std::scoped_lock lock(mutex);
    taken.insert(message.names.begin(), message.names.end());
    return TestReply{"204 No Content"};
  });
  RemoteWriter writer = writer_to(server);
  const auto sent = writer.send(some_series(20));
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_EQ(sent->samples, 36U);
  EXPECT_EQ(sent->rejected, 4U);
  EXPECT_THAT(sent->rejection, HasSubstr("{__name__=\"m\", i=\"3\"}: HTTP 400 Bad Request: out of order sample"));
  EXPECT_EQ(taken.size(), 18U);
  EXPECT_FALSE(taken.contains("3") || taken.contains("12"));
}

TEST(RemoteWriter, an_engine_that_refuses_everything_is_not_asked_for_each_series) {
  TestHttpServer server([](const TestRequest&) { return TestReply{"422 Unprocessable Entity", {}, "limit of series"}; });
  RemoteWriter writer = writer_to(server);
  const auto sent = writer.send(some_series(2'000));
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->rejected, 4'000U);
  EXPECT_LE(server.requests().size(), 203U);
}

TEST(RemoteWriter, a_message_that_is_too_large_goes_in_parts) {
  TestHttpServer server([](const TestRequest& request) {
    return TestReply{Names(request.body).names.size() > 3 ? "413 Payload Too Large" : "200 OK"};
  });
  RemoteWriter writer = writer_to(server);
  const auto sent = writer.send(some_series(20));
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->samples, 40U);
  EXPECT_EQ(sent->rejected, 0U);
}

TEST(RemoteWriter, what_may_succeed_later_is_unavailable_with_one_line) {
  for (const char* status : {"503 Service Unavailable", "500 Internal Server Error", "429 Too Many Requests", "401 Unauthorized",
                             "403 Forbidden", "404 Not Found", "301 Moved Permanently"}) {
    TestHttpServer server([&](const TestRequest&) { return TestReply{status, {}, "no\nnot now"}; });
    RemoteWriter writer = writer_to(server);
    const auto sent = writer.send(some_series(3));
    ASSERT_FALSE(sent.ok()) << status;
    EXPECT_EQ(sent.error().code, base::ErrorCode::kUnavailable) << status;
    EXPECT_EQ(sent.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(server.requests().size(), 1U) << status;
  }
  TestHttpServer broken([](const TestRequest&) {
    TestReply reply;
    reply.drop_after = 5;
    return reply;
  });
  RemoteWriter writer = writer_to(broken);
  EXPECT_EQ(writer.send(some_series(3)).error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace flopsight::engine
