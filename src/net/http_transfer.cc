// libcurl's easy interface. libcurl could follow redirects and keep the Authorization header from strangers, but it
// would hand them every custom header (X-Scope-OrgID, API keys) and the client certificate; so each hop is a transfer of
// its own, with the credentials left out once the origin changes.
#include "net/http_transfer_internal.h"

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "net/http_text.h"

namespace flopsight::net {
namespace {

constexpr std::size_t kErrorTextBytesMax = 200;             // of libcurl's words in a message
constexpr std::chrono::milliseconds kTimeoutTolerance{20};  // of libcurl's own timers

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

}  // namespace

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

namespace {

// ---- One transfer

std::chrono::milliseconds timeout_of(const Transfer& transfer, const HttpOptions& options) {
  return transfer.request->timeout.value_or(options.total_timeout);
}

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

}  // namespace

void prepare_transfer(Transfer& transfer, const HttpOptions& options) {
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
  if (options.unix_socket) {
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, options.unix_socket->c_str());
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  }
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  const bool keep = transfer.request->keep_encoding;
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, keep ? "gzip" : "gzip, deflate");
  curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, keep ? 0L : 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_of(transfer, options).count()));
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

namespace {

// ---- What went wrong

}  // namespace

base::Error transfer_failure(const Transfer& transfer, base::ErrorCode code, const std::string& cause) {
  return attempt_error(code, transfer.target.url, cause, transfer.attempts);
}

namespace {

std::string timeout_text(const Transfer& transfer, const HttpOptions& options) {
  curl_off_t microseconds = 0;
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_TOTAL_TIME_T, &microseconds);
  const std::chrono::microseconds elapsed(microseconds);
  if (elapsed + kTimeoutTolerance < timeout_of(transfer, options)) {
    return "time-out after " + duration_text(options.connect_timeout) + " while connecting";
  }
  return "time-out after " + duration_text(timeout_of(transfer, options));
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

}  // namespace

base::Error transport_failure(const Transfer& transfer, const HttpOptions& options, CURLcode code) {
  using enum base::ErrorCode;
  if (transfer.answer.over_limit) {
    const std::string limit = std::to_string(options.body_bytes_max) + " bytes";
    return transfer_failure(transfer, kLimit, "the body is larger than " + limit);
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return transfer_failure(transfer, kUnavailable, timeout_text(transfer, options));
  }
  if (code == CURLE_COULDNT_CONNECT) return transfer_failure(transfer, kUnavailable, connect_text(transfer));
  const std::string detail = curl_text(transfer, code);
  for (const PlainWords& row : kPlainWords) {
    if (row.code != code) continue;
    const std::string words(row.words);
    return transfer_failure(transfer, row.error, row.with_detail ? words + ": " + detail : words);
  }
  return transfer_failure(transfer, kInvalid, detail);
}

base::Error status_failure(const Transfer& transfer) {
  const bool later = transfer.answer.may_succeed_later();
  return transfer_failure(transfer, later ? base::ErrorCode::kUnavailable : base::ErrorCode::kInvalid,
                 transfer.answer.failure_text());
}

}  // namespace flopsight::net
