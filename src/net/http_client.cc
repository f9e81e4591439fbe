// libcurl's multi interface, driven by one loop (Round). libcurl could follow redirects and keep
// the Authorization header from strangers, but it would hand them every custom header
// (X-Scope-OrgID, API keys) and the client certificate; so each hop is a transfer of its own here,
// with the credentials left out once the origin changes.
#include "net/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "net/http_answer.h"
#include "net/http_options.h"
#include "net/http_target.h"
#include "net/http_text.h"

namespace flopsight::net {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRedirectsMax = 10;
constexpr std::size_t kErrorTextBytesMax = 200;             // of libcurl's words in a message
constexpr std::chrono::milliseconds kTimeoutTolerance{20};  // of libcurl's own timers

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Easy = std::unique_ptr<CURL, Freer<curl_easy_cleanup>>;
using Multi = std::unique_ptr<CURLM, Freer<curl_multi_cleanup>>;
using Url = std::unique_ptr<CURLU, Freer<curl_url_cleanup>>;
using CurlText = std::unique_ptr<char, Freer<curl_free>>;

using Lines = std::unique_ptr<curl_slist, Freer<curl_slist_free_all>>;

void append(Lines& lines, const std::string& line) {
  lines.reset(curl_slist_append(lines.release(), line.c_str()));
}

// "Name;" is how libcurl is told to send a header without a value; "Name:" would remove it.
void append(Lines& lines, const std::string& name, const std::string& value) {
  append(lines, value.empty() ? name + ";" : name + ": " + value);
}

// ---- URLs

std::string url_part(CURLU* url, CURLUPart part, unsigned int flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  return CurlText(text).get();
}

// `location` seen from `url`, which may be empty.
base::Result<HttpTarget> parse_target(const std::string& url, const std::string& location) {
  const Url parsed(curl_url());
  CURLUcode code = CURLUE_OK;
  if (!url.empty()) code = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0);
  if (code == CURLUE_OK) code = curl_url_set(parsed.get(), CURLUPART_URL, location.c_str(), 0);
  HttpTarget target;
  target.scheme = url_part(parsed.get(), CURLUPART_SCHEME, 0);
  if (code == CURLUE_UNSUPPORTED_SCHEME || code == CURLUE_BAD_SCHEME ||
      (code == CURLUE_OK && target.scheme != "http" && target.scheme != "https")) {
    return base::Error{base::ErrorCode::kInvalid,
                       "expected a URL that starts with http:// or https://"};
  }
  if (code != CURLUE_OK) {
    return base::Error{base::ErrorCode::kInvalid,
                       "not a URL: " + base::to_lower(curl_url_strerror(code))};
  }
  target.host = base::to_lower(url_part(parsed.get(), CURLUPART_HOST, 0));
  target.port = url_part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const std::string user = url_part(parsed.get(), CURLUPART_USER, CURLU_URLDECODE);
  const std::string password = url_part(parsed.get(), CURLUPART_PASSWORD, CURLU_URLDECODE);
  if (!user.empty() || !password.empty()) target.basic = {user, password};
  for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT}) {
    curl_url_set(parsed.get(), part, nullptr, 0);
  }
  target.url = url_part(parsed.get(), CURLUPART_URL, 0);
  return target;
}

// ---- One transfer

struct Transfer {
  std::size_t index = 0;
  const HttpRequest* request = nullptr;
  HttpTarget target;             // of the present hop
  bool with_credentials = true;  // false once a redirect has left the origin
  int attempts = 0;
  int redirects = 0;
  Clock::time_point due;  // of the next attempt, while it waits

  Easy easy;
  Lines headers;
  Lines connect_to;
  HttpAnswer answer;
  char error_buffer[CURL_ERROR_SIZE] = {};
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) noexcept {
  static_cast<Transfer*>(user)->answer.take_header({data, size * count});
  return size * count;
}

// Returning less than what was offered ends the transfer with CURLE_WRITE_ERROR.
std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) noexcept {
  return static_cast<Transfer*>(user)->answer.take_body({data, size * count}) ? size * count : 0;
}

void set_tls(Transfer& transfer, const HttpTls& tls) {
  CURL* easy = transfer.easy.get();
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, tls.insecure_skip_verify ? 0L : 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, tls.insecure_skip_verify ? 0L : 2L);
  if (tls.ca_file) {  // instead of the system's store, not beside it
    curl_easy_setopt(easy, CURLOPT_CAINFO, tls.ca_file->c_str());
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  if (!transfer.with_credentials) return;
  if (tls.cert_file) curl_easy_setopt(easy, CURLOPT_SSLCERT, tls.cert_file->c_str());
  if (tls.key_file) curl_easy_setopt(easy, CURLOPT_SSLKEY, tls.key_file->c_str());
  curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");  // or OpenSSL asks the terminal
  if (tls.server_name && transfer.target.scheme == "https") {
    // libcurl takes SNI and the name to verify from the URL alone: so the URL gets that name, the
    // connection goes where the URL pointed, and the Host header stays what it was.
    const HttpTarget& target = transfer.target;
    const Url url(curl_url());
    curl_url_set(url.get(), CURLUPART_URL, target.url.c_str(), 0);
    curl_url_set(url.get(), CURLUPART_HOST, tls.server_name->c_str(), 0);
    curl_easy_setopt(easy, CURLOPT_URL, url_part(url.get(), CURLUPART_URL, 0).c_str());
    append(transfer.connect_to, "::" + target.host + ":" + target.port);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, transfer.connect_to.get());
    append(transfer.headers, "Host", target.host + (target.port == "443" ? "" : ":" + target.port));
  }
}

void set_credentials(Transfer& transfer, const HttpAuth& auth) {
  CURL* easy = transfer.easy.get();
  const auto& basic = transfer.target.basic ? transfer.target.basic : auth.basic;
  if (!transfer.with_credentials && !transfer.target.basic) return;
  if (transfer.target.basic || (basic && !auth.bearer_token)) {
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    curl_easy_setopt(easy, CURLOPT_USERNAME, basic->first.c_str());
    curl_easy_setopt(easy, CURLOPT_PASSWORD, basic->second.c_str());
  } else if (auth.bearer_token) {
    append(transfer.headers, "Authorization", "Bearer " + *auth.bearer_token);
  }
  if (!transfer.with_credentials) return;
  for (const auto& [name, value] : auth.headers) append(transfer.headers, name, value);
}

void prepare(Transfer& transfer, const HttpOptions& options) {
  transfer.answer = HttpAnswer{};
  transfer.answer.body_bytes_max = options.body_bytes_max;
  transfer.error_buffer[0] = '\0';
  transfer.headers.reset();
  transfer.connect_to.reset();
  CURL* easy = transfer.easy.get();
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, transfer.target.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  const bool keep = transfer.request->keep_encoding;
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, keep ? "gzip" : "gzip, deflate");
  curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, keep ? 0L : 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(options.total_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error_buffer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  if (transfer.request->body) {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(transfer.request->body->size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer.request->body->data());
    append(transfer.headers, "Content-Type", transfer.request->content_type);
    append(transfer.headers, "Expect:");  // no waiting for "100 Continue"
  }
  if (transfer.with_credentials) {
    for (const auto& [name, value] : transfer.request->headers)
      append(transfer.headers, name, value);
  }
  set_credentials(transfer, options.auth);
  set_tls(transfer, options.tls);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
}

// ---- What went wrong

base::Error failure(const Transfer& transfer, base::ErrorCode code, const std::string& cause) {
  return attempt_error(code, transfer.target.url, cause, transfer.attempts);
}

std::string timeout_text(const Transfer& transfer, const HttpOptions& options) {
  curl_off_t microseconds = 0;
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_TOTAL_TIME_T, &microseconds);
  const std::chrono::microseconds elapsed(microseconds);
  if (elapsed + kTimeoutTolerance < options.total_timeout) {
    return "time-out after " + duration_text(options.connect_timeout) + " while connecting";
  }
  return "time-out after " + duration_text(options.total_timeout);
}

std::string connect_text(const Transfer& transfer) {
  long cause = 0;
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_OS_ERRNO, &cause);
  if (cause == ECONNREFUSED) return "connection refused";
  const std::string detail = cause != 0 ? base::to_lower(std::strerror(static_cast<int>(cause)))
                                        : single_line(transfer.error_buffer, kErrorTextBytesMax);
  return "cannot connect: " + detail;
}

// libcurl's own words where there are no better ones.
std::string curl_text(const Transfer& transfer, CURLcode code) {
  const std::string_view own = transfer.error_buffer;
  return single_line(own.empty() ? curl_easy_strerror(code) : own, kErrorTextBytesMax);
}

struct PlainWords {
  CURLcode code;
  base::ErrorCode error;
  std::string_view words;
  bool with_detail;  // libcurl's own words behind ours
};
constexpr PlainWords kPlainWords[] = {
    {CURLE_GOT_NOTHING, base::ErrorCode::kUnavailable, "connection closed before an answer", false},
    {CURLE_PARTIAL_FILE, base::ErrorCode::kUnavailable, "connection closed in mid-answer", false},
    {CURLE_COULDNT_RESOLVE_HOST, base::ErrorCode::kUnavailable, "unknown host", true},
    {CURLE_COULDNT_RESOLVE_PROXY, base::ErrorCode::kUnavailable, "unknown proxy host", true},
    {CURLE_SEND_ERROR, base::ErrorCode::kUnavailable, "connection broken", true},
    {CURLE_RECV_ERROR, base::ErrorCode::kUnavailable, "connection broken", true},
    {CURLE_HTTP2, base::ErrorCode::kUnavailable, "connection broken", true},
    {CURLE_HTTP2_STREAM, base::ErrorCode::kUnavailable, "connection broken", true},
    {CURLE_SSL_CONNECT_ERROR, base::ErrorCode::kUnavailable, "TLS handshake failed", true},
    {CURLE_PEER_FAILED_VERIFICATION, base::ErrorCode::kInvalid, "certificate not trusted", true},
    {CURLE_SSL_CACERT_BADFILE, base::ErrorCode::kInvalid, "TLS CA file not usable", true},
    {CURLE_SSL_CERTPROBLEM, base::ErrorCode::kInvalid, "TLS certificate file not usable", true},
    {CURLE_WRITE_ERROR, base::ErrorCode::kInvalid, "broken compression of the body", true},
    {CURLE_BAD_CONTENT_ENCODING, base::ErrorCode::kInvalid, "broken compression of the body", true},
};

base::Error transport_failure(const Transfer& transfer, const HttpOptions& options, CURLcode code) {
  using enum base::ErrorCode;
  if (transfer.answer.over_limit) {
    const std::string limit = std::to_string(options.body_bytes_max) + " bytes";
    return failure(transfer, kLimit, "the body is larger than " + limit);
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return failure(transfer, kUnavailable, timeout_text(transfer, options));
  }
  if (code == CURLE_COULDNT_CONNECT) return failure(transfer, kUnavailable, connect_text(transfer));
  const std::string detail = curl_text(transfer, code);
  for (const PlainWords& row : kPlainWords) {
    if (row.code != code) continue;
    const std::string words(row.words);
    return failure(transfer, row.error, row.with_detail ? words + ": " + detail : words);
  }
  return failure(transfer, kInvalid, detail);
}

base::Error status_failure(const Transfer& transfer) {
  const bool later = transfer.answer.may_succeed_later();
  return failure(transfer, later ? base::ErrorCode::kUnavailable : base::ErrorCode::kInvalid,
                 transfer.answer.failure_text());
}

}  // namespace

// ---- The loop

struct HttpClient::State {
  HttpOptions options;
  Multi multi;  // keeps connections between calls
  std::vector<Easy> idle;
  bool running = false;

  class Round;
};

// One call of send_all.
class HttpClient::State::Round {
 public:
  using Done = std::function<void(std::size_t, base::Result<HttpResponse>)>;
  Round(State& state, std::span<const HttpRequest> requests, const Done& done)
      : state_(state), requests_(requests), done_(done) {}

  void run() {
    while (next_ < requests_.size() || !active_.empty() || !waiting_.empty()) {
      start_what_may();
      int unfinished = 0;
      curl_multi_perform(state_.multi.get(), &unfinished);
      const bool progressed = collect();
      if (!progressed && (!active_.empty() || !waiting_.empty())) {
        curl_multi_poll(state_.multi.get(), nullptr, 0, poll_milliseconds(), nullptr);
      }
    }
  }

 private:
  using Owned = std::unique_ptr<Transfer>;

  bool has_room() const {
    return active_.size() < static_cast<std::size_t>(state_.options.parallel_max);
  }

  void start_what_may() {
    for (auto it = waiting_.begin(); it != waiting_.end() && has_room();) {
      if ((*it)->due > Clock::now()) {
        ++it;
        continue;
      }
      Owned transfer = std::move(*it);
      it = waiting_.erase(it);
      begin(std::move(transfer));
    }
    while (next_ < requests_.size() && has_room()) {
      auto transfer = std::make_unique<Transfer>();
      transfer->index = next_++;
      transfer->request = &requests_[transfer->index];
      begin(std::move(transfer));
    }
  }

  // An attempt: from the request's own URL, also if the last one failed behind a redirect.
  void begin(Owned transfer) {
    const HttpRequest& request = *transfer->request;
    auto target = parse_target("", request.url);
    const base::Status headers = check_headers(request.headers);
    if (!target.ok() || !headers.ok()) {
      const base::Error& error = target.ok() ? headers.error() : target.error();
      const std::string url = single_line(url_without_credentials(request.url), kUrlTextBytesMax);
      done_(transfer->index, error.within(url));
      return;
    }
    transfer->target = std::move(target).value();
    transfer->with_credentials = true;
    transfer->redirects = 0;
    ++transfer->attempts;
    start(std::move(transfer));
  }

  void start(Owned transfer) {
    if (!transfer->easy) {
      if (state_.idle.empty()) {
        transfer->easy.reset(curl_easy_init());
        FLOPSIGHT_CHECK(transfer->easy != nullptr);
      } else {
        transfer->easy = std::move(state_.idle.back());
        state_.idle.pop_back();
      }
    }
    prepare(*transfer, state_.options);
    CURL* easy = transfer->easy.get();
    FLOPSIGHT_CHECK(curl_multi_add_handle(state_.multi.get(), easy) == CURLM_OK);
    active_.emplace(easy, std::move(transfer));
  }

  // Hands over what has ended. True if something has.
  bool collect() {
    bool progressed = false;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(state_.multi.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      curl_multi_remove_handle(state_.multi.get(), message->easy_handle);
      auto node = active_.extract(message->easy_handle);
      finish(std::move(node.mapped()), code);
      progressed = true;
    }
    return progressed;
  }

  void finish(Owned transfer, CURLcode code) {
    const HttpAnswer& answer = transfer->answer;
    // The rest of a long error text is not wanted; what has come of it is enough.
    const bool complete = code == CURLE_OK || (answer.status >= 300 && answer.over_limit);
    if (complete && answer.redirects()) return follow(std::move(transfer));
    if (complete && answer.succeeded()) return respond(std::move(transfer));
    const base::Error error =
        complete ? status_failure(*transfer) : transport_failure(*transfer, state_.options, code);
    if (error.code == base::ErrorCode::kUnavailable &&
        transfer->attempts <= state_.options.retries) {
      transfer->due = Clock::now() +
                      retry_pause(state_.options, transfer->attempts, transfer->answer.retry_after);
      waiting_.push_back(std::move(transfer));
    } else if (complete && transfer->request->any_status) {
      respond(std::move(transfer));
    } else {
      hand_over(std::move(transfer), error);
    }
  }

  void respond(Owned transfer) {
    HttpAnswer& answer = transfer->answer;
    HttpResponse response;
    response.status = answer.status;
    response.status_line = std::move(answer.status_line);
    response.content_type = std::move(answer.content_type);
    response.body = std::move(answer.body);
    response.attempts = transfer->attempts;
    hand_over(std::move(transfer), std::move(response));
  }

  void hand_over(Owned transfer, base::Result<HttpResponse> result) {
    const std::size_t index = transfer->index;
    state_.idle.push_back(std::move(transfer->easy));
    transfer.reset();
    done_(index, std::move(result));
  }

  void follow(Owned transfer) {
    const HttpRequest& request = *transfer->request;
    const auto refuse = [&](const std::string& why) {
      const std::string to = url_without_credentials(transfer->answer.location);
      const base::Error error = failure(*transfer, base::ErrorCode::kInvalid,
                                        "HTTP " + transfer->answer.status_line + " to " +
                                            single_line(to, kUrlTextBytesMax) + ", " + why);
      hand_over(std::move(transfer), error);
    };
    if (request.body) return refuse("which is not followed for a POST");
    if (transfer->redirects == kRedirectsMax) return refuse("the last of too many redirects");
    auto next = parse_target(transfer->target.url, transfer->answer.location);
    if (!next.ok()) return refuse(next.error().message);
    const bool shared = shares_credentials(transfer->target, *next);
    if (shared && !next->basic) next->basic = transfer->target.basic;
    transfer->with_credentials = transfer->with_credentials && shared;
    transfer->target = std::move(next).value();
    ++transfer->redirects;
    start(std::move(transfer));
  }

  // Until something is due, or libcurl has something to do.
  int poll_milliseconds() const {
    std::chrono::milliseconds longest{1000};
    if (!has_room()) return static_cast<int>(longest.count());
    for (const Owned& transfer : waiting_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(transfer->due - Clock::now());
      longest = std::clamp(left, std::chrono::milliseconds(0), longest);
    }
    return static_cast<int>(longest.count());
  }

  State& state_;
  std::span<const HttpRequest> requests_;
  const Done& done_;
  std::size_t next_ = 0;
  std::map<CURL*, Owned> active_;
  std::vector<Owned> waiting_;  // for their next attempt
};

// ---- The client

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

base::Result<HttpClient> HttpClient::create(HttpOptions options) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  FLOPSIGHT_CHECK(initialised == CURLE_OK);
  FLOPSIGHT_RETURN_IF_ERROR(check_options(options));
  options.parallel_max = std::max(options.parallel_max, 1);
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  state->multi.reset(curl_multi_init());
  FLOPSIGHT_CHECK(state->multi != nullptr);
  return HttpClient(std::move(state));
}

void HttpClient::send_all(
    std::span<const HttpRequest> requests,
    const std::function<void(std::size_t index, base::Result<HttpResponse> response)>& done) {
  FLOPSIGHT_CHECK(!state_->running);
  state_->running = true;
  State::Round(*state_, requests, done).run();
  state_->running = false;
}

base::Result<HttpResponse> HttpClient::send(const HttpRequest& request) {
  std::optional<base::Result<HttpResponse>> answer;
  send_all({&request, 1}, [&](std::size_t, base::Result<HttpResponse> response) {
    answer.emplace(std::move(response));
  });
  FLOPSIGHT_CHECK(answer.has_value());
  return std::move(*answer);
}

}  // namespace flopsight::net
