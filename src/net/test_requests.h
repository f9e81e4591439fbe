#pragma once
// What the tests of the HTTP client ask and answer with. Test-only.

#include <chrono>
#include <string>
#include <utility>

#include "net/http_client.h"
#include "net/test_http_server.h"

namespace flopsight::net {

inline HttpOptions quick() {
  HttpOptions options;
  options.retry_backoff = std::chrono::milliseconds(1);
  return options;
}

inline HttpClient make_client(HttpOptions options = quick()) {
  auto client = HttpClient::create(std::move(options));
  FLOPSIGHT_CHECK(client.ok());
  return std::move(client).value();
}

inline HttpRequest get(const std::string& url) {
  HttpRequest request;
  request.url = url;
  return request;
}

inline HttpRequest post(const std::string& url, const std::string& body) {
  HttpRequest request = get(url);
  request.body = body;
  return request;
}

inline TestReply text(const std::string& body) {
  TestReply reply;
  reply.body = body;
  return reply;
}

}  // namespace flopsight::net
