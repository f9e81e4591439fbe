#include "net/http_server_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "base/text.h"
#include "net/request_target.h"

namespace flopsight::net {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using View = boost::beast::string_view;

constexpr std::size_t kBodyReserveMax = 1 << 20;  // of a length that is only announced

std::string_view view(View text) { return {text.data(), text.size()}; }

bool is_token_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "HTTP/2.0" is well formed, and answered with 505 instead of 400.
bool names_another_version(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::string_view version = line.substr(std::min(line.rfind(' ') + 1, line.size()));
  return version.size() == 8 && version.starts_with("HTTP/") && all_digits(version.substr(5, 1)) &&
         version[6] == '.' && all_digits(version.substr(7));
}

std::string words_for(const error_code& error) {
  if (error == http::error::bad_method) return "malformed method";
  if (error == http::error::bad_target) return "malformed request target";
  if (error == http::error::bad_version) return "malformed request line";
  if (error == http::error::bad_content_length || error == http::error::multiple_content_length) {
    return "bad Content-Length";
  }
  if (error == http::error::bad_transfer_encoding) return "bad Transfer-Encoding";
  if (error == http::error::bad_chunk || error == http::error::bad_chunk_extension) {
    return "malformed chunk";
  }
  return "malformed header";
}

}  // namespace

HeadScan scan_head(std::string_view bytes, std::size_t& scanned) {
  for (std::size_t i = scanned; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const char before = i > 0 ? bytes[i - 1] : '\0';
    if (i == 0 && !is_token_byte(c)) return HeadScan::kBad;
    if ((c == '\n') != (before == '\r')) return HeadScan::kBad;
    if (before == '\n' && (c == ' ' || c == '\t')) return HeadScan::kBad;
    if (static_cast<unsigned char>(c) < 0x20 ? c != '\r' && c != '\n' && c != '\t' : c == 0x7f) {
      return HeadScan::kBad;
    }
    if (c == '\n' && i >= 3 && bytes[i - 2] == '\n') {
      scanned = i + 1;
      return HeadScan::kComplete;
    }
  }
  scanned = bytes.size();
  return HeadScan::kMore;
}

class RequestParser::Impl final : public http::basic_parser<true> {
 public:
  Impl(std::size_t body_bytes_max, BodyBudget& budget)
      : body_bytes_max_(body_bytes_max), budget_(budget) {
    // Ours are checked here, to the byte and with the status that fits.
    header_limit(std::uint32_t(-1));
    body_limit(boost::none);
  }
  ~Impl() override { budget_.give_back(charged_); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool read_head(std::string_view head) {
    error_code error;
    const std::size_t taken = put(boost::asio::const_buffer(head.data(), head.size()), error);
    if (error && error != http::error::need_more && !refusal_) {
      const bool version = error == http::error::bad_version && names_another_version(head);
      refuse(version ? 505 : 400, version ? "only HTTP/1.0 and HTTP/1.1" : words_for(error));
    }
    if (!refusal_ && (taken != head.size() || !is_header_done())) refuse(400, "malformed head");
    if (!refusal_) check_head();
    eager(true);
    return !refusal_;
  }

  std::size_t read_body(std::string_view bytes) {
    if (is_done() || refusal_ || bytes.empty()) return 0;
    // Beast 1.81 asserts that it has five bytes when it looks at a last chunk for the second time.
    // Whatever comes, a chunked body has five more ("0\r\n\r\n"), so that waiting for them loses
    // nothing.
    if (chunked() && bytes.size() < 5) return 0;
    error_code error;
    const std::size_t taken = put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    if (error && error != http::error::need_more && !refusal_) refuse(400, words_for(error));
    return taken;
  }

  void discard_body() { discarding_ = true; }

  ServerRequest request_;
  std::optional<RequestRefusal> refusal_;
  bool http_1_0_ = false;
  bool expects_continue_ = false;

 private:
  void refuse(int status, std::string reason) {
    if (!refusal_) refusal_ = RequestRefusal{status, std::move(reason)};
  }

  std::vector<std::string_view> values(std::string_view name) const {
    std::vector<std::string_view> found;
    for (const auto& [key, value] : request_.headers) {
      if (key == name) found.emplace_back(value);
    }
    return found;
  }

  // Two parsers in a row (a proxy's and ours) must see the same end of the body, so that nothing is
  // taken that could be read in two ways. Beast lets several of these pass.
  void check_head() {
    const auto hosts = values("host");
    if (hosts.size() > 1 || (hosts.empty() && !http_1_0_)) refuse(400, "expected one Host header");
    const auto lengths = values("content-length");
    if (lengths.size() > 1) refuse(400, "repeated Content-Length");
    if (lengths.size() == 1 && !all_digits(lengths[0])) refuse(400, "bad Content-Length");
    const auto encodings = values("transfer-encoding");
    if (!encodings.empty()) {
      if (!lengths.empty()) refuse(400, "both Content-Length and Transfer-Encoding");
      if (http_1_0_) refuse(400, "Transfer-Encoding in HTTP/1.0");
      if (encodings.size() > 1) refuse(400, "repeated Transfer-Encoding");
      if (base::to_lower(encodings[0]) != "chunked") refuse(501, "only chunked Transfer-Encoding");
    }
    const auto expected = values("expect");
    if (!expected.empty() && !http_1_0_) {
      expects_continue_ = expected.size() == 1 && base::to_lower(expected[0]) == "100-continue";
      if (!expects_continue_) refuse(417, "only Expect: 100-continue");
    }
    if (refusal_) return;
    auto target = parse_request_target(target_);
    if (!target.ok()) return refuse(400, target.error().message);
    request_.path = std::move(target->path);
    request_.query = std::move(target->query);
  }

  std::size_t keep(View bytes, error_code& error) {
    if (discarding_) return bytes.size();
    if (bytes.size() > body_bytes_max_ - request_.body.size()) {
      refuse(413, "body over " + std::to_string(body_bytes_max_) + " bytes");
    } else if (!budget_.take(bytes.size())) {
      refuse(503, "too many bodies at once");
    }
    if (refusal_) {
      error = http::error::body_limit;
      return 0;
    }
    charged_ += bytes.size();
    request_.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  void on_request_impl(http::verb, View method, View target, int version, error_code&) override {
    request_.method = view(method);
    target_ = view(target);
    http_1_0_ = version == 10;
  }
  void on_response_impl(int, View, int, error_code&) override {}
  void on_field_impl(http::field, View name, View value, error_code&) override {
    // Trailers come after the decisions that a header is for.
    if (!head_done_) request_.headers.emplace_back(base::to_lower(view(name)), view(value));
  }
  void on_header_impl(error_code&) override { head_done_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    if (!length || discarding_) return;
    request_.body.reserve(
        static_cast<std::size_t>(std::min<std::uint64_t>(*length, kBodyReserveMax)));
  }
  std::size_t on_body_impl(View bytes, error_code& error) override { return keep(bytes, error); }
  void on_chunk_header_impl(std::uint64_t, View, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View bytes, error_code& error) override {
    return keep(bytes, error);
  }
  void on_finish_impl(error_code&) override {}

  std::size_t body_bytes_max_;
  BodyBudget& budget_;
  std::size_t charged_ = 0;
  std::string target_;
  bool head_done_ = false;
  bool discarding_ = false;
};

RequestParser::RequestParser(std::size_t body_bytes_max, BodyBudget& budget)
    : impl_(std::make_unique<Impl>(body_bytes_max, budget)) {}
RequestParser::~RequestParser() = default;

bool RequestParser::read_head(std::string_view head) { return impl_->read_head(head); }
std::size_t RequestParser::read_body(std::string_view bytes) { return impl_->read_body(bytes); }
void RequestParser::discard_body() { impl_->discard_body(); }
bool RequestParser::done() const { return impl_->is_done(); }
const std::optional<RequestRefusal>& RequestParser::refusal() const { return impl_->refusal_; }
ServerRequest& RequestParser::request() { return impl_->request_; }
std::optional<std::uint64_t> RequestParser::content_length() const {
  const auto length = impl_->content_length();
  return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}
bool RequestParser::expects_continue() const { return impl_->expects_continue_; }
bool RequestParser::keep_alive() const { return impl_->keep_alive(); }
bool RequestParser::http_1_0() const { return impl_->http_1_0_; }

}  // namespace flopsight::net
