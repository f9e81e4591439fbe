#pragma once
// The only HTTP client: many requests at once over libcurl, with TLS, proxies of the environment, gzip,
// credentials, retries and hard limits. It knows nothing of metrics.
//
// Retries: every request is taken to be repeatable, also a POST (it carries a query, not an order).
// Redirects: followed for GET only, at most 10, to http and https only. Credentials (also custom headers and
// the client certificate) go to the URL's own host and port only, or from its port 80 to its port 443.
// user:password@ in a URL is used before HttpAuth, and never printed.
// Threads: one HttpClient, one thread (it runs its own event loop inside send, send_all and poll), but wake() by any.
// Errors: kUnavailable for what may succeed later (refused, reset, time-out, 429, 5xx after the last
// retry), kInvalid for a URL or option that cannot work and for 4xx, kLimit for a body over its limit.
// A message is one line: the URL without credentials, the last cause, and how many attempts were made.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flopsight::net {

struct HttpAuth {
  std::optional<std::string> bearer_token;                        // Authorization: Bearer …
  std::optional<std::pair<std::string, std::string>> basic;      // user, password
  std::vector<std::pair<std::string, std::string>> headers;      // e.g. X-Scope-OrgID
};

struct HttpTls {
  std::optional<std::string> ca_file;      // PEM; default: the system's store
  std::optional<std::string> cert_file;    // client certificate, PEM
  std::optional<std::string> key_file;
  std::optional<std::string> server_name;  // verify against (and SNI) this name instead of the URL's host
  bool insecure_skip_verify = false;
};

struct HttpOptions {
  HttpAuth auth;
  HttpTls tls;
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds total_timeout{120'000};  // for one attempt
  int retries = 2;                                   // further attempts after the first
  std::chrono::milliseconds retry_backoff{200};      // doubled each time; Retry-After is respected up to 30 s
  std::size_t body_bytes_max = std::size_t{1} << 30;  // after content decoding
  int parallel_max = 64;                             // transfers at once
  // Idle connections that are kept; nothing: four times as many as there are transfers at once.
  std::optional<int> connections_kept_max;
  std::string user_agent = "flopsight";
  std::optional<std::string> unix_socket;  // a path to connect to whatever host the URL names; no proxy then
};

struct HttpRequest {
  std::string url;
  std::optional<std::string> body;  // present: POST
  std::string content_type = "application/x-www-form-urlencoded";
  std::vector<std::pair<std::string, std::string>> headers;
  // An answer that is neither 2xx nor a redirect is a response too, not an error (after the retries that
  // 429 and 5xx get): for protocols that explain themselves in the body.
  bool any_status = false;
  // Hand a gzip body over as it came, for a caller that decodes it: libcurl takes one that ends too early for
  // whole. Only gzip is asked for then, and body_bytes_max counts the bytes as they came.
  bool keep_encoding = false;
  std::optional<std::chrono::milliseconds> timeout;  // instead of HttpOptions::total_timeout
};

struct HttpResponse {
  // 2xx unless HttpRequest::any_status; others are errors, whose message carries the start of the body.
  int status = 0;
  std::string status_line;  // "503 Service Unavailable"
  std::string content_type;
  std::string body;  // gzip and deflate resolved unless keep_encoding; of a status other than 2xx at most its first 64 KiB
  int attempts = 1;
  std::optional<std::chrono::seconds> retry_after;  // what it asked for, at most a day; dates are ignored
};

class HttpClient {
 public:
  // Errors: kInvalid/kNotFound/kIo for a TLS file that is missing, unreadable or no PEM (named in the
  // message); kInvalid for a header or token that HTTP cannot carry.
  static base::Result<HttpClient> create(HttpOptions options);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  base::Result<HttpResponse> send(const HttpRequest& request);

  // All requests, at most parallel_max at a time; `done` is called once for each index, in order of
  // completion, on the calling thread. Responses are handed over, not collected, so that memory stays
  // bounded by what is in flight. `done` must not use this client (checked).
  void send_all(std::span<const HttpRequest> requests,
                const std::function<void(std::size_t index, base::Result<HttpResponse> response)>& done);

  // The same bit by bit, for a caller whose requests come one after another: start() queues one (parallel_max are under
  // way at once), poll() drives them, waits for at most `wait` until some have ended, and calls `done` for each of those.
  // `done` may start others. send and send_all are for a client that has none of these in flight (checked). What is in flight
  // when the client goes is dropped without a word.
  void start(std::uint64_t id, HttpRequest request);
  std::size_t in_flight() const;
  void poll(std::chrono::milliseconds wait,
            const std::function<void(std::uint64_t id, base::Result<HttpResponse> response)>& done);
  void wake();  // ends a poll() that waits; from any thread

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Percent-encodes for a query string or form body.
std::string url_encode(std::string_view text);
// The URL without user:password@, for messages. Errs on the side of hiding: a password with an
// unencoded '/' is hidden as well.
std::string url_without_credentials(std::string_view url);

}  // namespace flopsight::net
