#pragma once
// The only HTTP server: HTTP/1.1 with keep-alive, optional TLS, hard limits, graceful stop. Routing, authentication and
// meaning belong to the handler; this file knows sockets.
//
// Slow clients cannot starve others: connections are coroutines on one event loop, each with deadlines (header, body progress,
// write, idle), and handlers run on a small pool of threads of their own.
// Threads: start() returns after binding; the server owns its threads; the handler is called from several at once.
// Errors: kInvalid for an address or TLS file that cannot work, kIo for a port that is taken (naming it).

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flopsight::net {

struct ServerRequest {
  std::string method;  // "GET"
  std::string path;    // percent-decoded, without query
  std::vector<std::pair<std::string, std::string>> query;    // decoded, in order
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::string remote_address;  // without port
  std::string client_certificate_name;  // common name, when TLS asked for a certificate; else empty

  // Empty when absent. The first, where several are.
  std::string_view header(std::string_view lower_case_name) const;
  std::optional<std::string_view> query_value(std::string_view name) const;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;  // of HEAD and 204 not sent
};
// Length, framing, Connection, Date and Content-Type are the server's: such headers are left out, and so is a name that is no token.
// Control characters in a value become spaces, so that nothing a client sent can start a header. A handler that throws is a 500.

// What is decided from the head alone, before the body is read: nothing to go on, or the answer (401, 404, 405, 413, 503) that
// ends it. Called on the event loop: must be quick (no bcrypt). May be null.
using HeadHandler = std::function<std::optional<ServerResponse>(const ServerRequest& head)>;
using Handler = std::function<ServerResponse(ServerRequest request)>;

struct ServerTls {
  std::string cert_file;
  std::string key_file;
  std::string client_ca_file;            // empty: no client certificates
  bool client_certificate_required = false;
  std::string min_version = "TLS12";     // "TLS12" or "TLS13"
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  std::optional<ServerTls> tls;
  std::size_t head_bytes_max = 64 * 1024;
  std::size_t body_bytes_max = 64 << 20;       // 413 past it
  std::size_t bodies_bytes_max = 512 << 20;    // of all bodies in flight together; 503 past it
  std::uint32_t connections_max = 10'000;      // 503 and close past it
  int handler_threads = 2;
  std::size_t handler_queue_max = 1'000;       // requests waiting for a thread; 503 past it
  std::chrono::milliseconds head_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};   // without a byte of progress
  std::chrono::milliseconds body_total_timeout{300'000};
  std::chrono::milliseconds write_timeout{30'000};
  std::chrono::milliseconds idle_timeout{120'000};  // between requests of one connection
  std::chrono::milliseconds stop_timeout{10'000};   // for requests in flight
};

struct ServerCounters {
  std::uint64_t connections_total = 0;
  std::uint64_t connections_open = 0;
  std::uint64_t connections_refused_total = 0;  // over connections_max
  std::uint64_t requests_total = 0;
  std::uint64_t malformed_total = 0;
  std::uint64_t timeouts_total = 0;
  std::uint64_t body_too_large_total = 0;
  std::uint64_t overloaded_total = 0;  // 503 by bodies_bytes_max or handler_queue_max
  std::uint64_t tls_failures_total = 0;
};

// "127.0.0.1", "::1"; no name, and no address with a port or brackets.
bool is_ip_address(const std::string& text);

class HttpServer {
 public:
  static base::Result<std::unique_ptr<HttpServer>> start(ServerOptions options, HeadHandler head, Handler handler);
  ~HttpServer();  // stops

  std::uint16_t port() const;
  ServerCounters counters() const;
  // Reads the TLS files anew for connections from now on; on an error the old ones stay.
  base::Status reload_tls(const ServerTls& tls);
  // Accepts no more, closes idle connections, lets requests in flight finish (at most stop_timeout), joins. Once. A handler that
  // still runs then is waited for all the same, as what it uses is its owner's; those that wait for a thread are not called any
  // more. Not from a handler.
  void stop();

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flopsight::net
