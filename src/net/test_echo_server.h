#pragma once
// The server under test with a handler that tells what it was asked. Test-only.

#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "net/http_server.h"

namespace flopsight::net {

// "POST /path a=1 b=2 body"
inline ServerResponse echo(ServerRequest request) {
  ServerResponse response;
  response.body = request.method + " " + request.path;
  for (const auto& [name, value] : request.query) response.body += " " + name + "=" + value;
  if (!request.body.empty()) response.body += " " + request.body;
  return response;
}

inline std::unique_ptr<HttpServer> start_server(ServerOptions options = {}, Handler handler = echo,
                                                HeadHandler head = nullptr) {
  auto server = HttpServer::start(std::move(options), std::move(head), std::move(handler));
  FLOPSIGHT_CHECK(server.ok());
  return std::move(server).value();
}

// A request of HTTP/1.1 with the header that it must have.
inline std::string request_text(const std::string& first_line, const std::string& headers = {},
                                const std::string& body = {}) {
  return first_line + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n" + body;
}
inline std::string post_text(const std::string& path, const std::string& body,
                             const std::string& headers = {}) {
  return request_text("POST " + path,
                      headers + "Content-Length: " + std::to_string(body.size()) + "\r\n", body);
}

}  // namespace flopsight::net
