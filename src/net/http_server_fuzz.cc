// Any bytes as what a connection sends: the first byte says in pieces of which size they arrive.
// However they are cut, the same requests are understood and the same refusal ends them; no byte is
// lost or counted twice; the budget of bodies is whole afterwards. What was understood is then sent
// back in the headers of a response, which must stay one response.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "net/http_server_parser.h"
#include "net/http_server_response.h"

namespace {

using namespace flopsight::net;

// Which of two limits is met first depends on how the bytes arrive, so that only one is within
// reach at a time.
struct Limits {
  std::size_t body_bytes_max, budget;
};
constexpr Limits kLimits[] = {{200, 1'000}, {1'000, 150}};

// A connection without its socket.
class Replay {
 public:
  Replay(std::string_view bytes, std::size_t step, const Limits& limits)
      : input_(bytes), step_(step), limits_(limits), budget_(limits.budget) {}

  bool ended_in_a_body() const { return in_body_; }

  std::vector<std::string> run() {
    while (one_request()) {
    }
    FLOPSIGHT_CHECK(budget_.left() == limits_.budget);
    return said_;
  }

 private:
  bool more() {
    const std::size_t piece = std::min(step_, input_.size());
    buffer_.append(input_.substr(0, piece));
    input_.remove_prefix(piece);
    return piece > 0;
  }

  bool refused(const RequestParser& parser) {
    if (!parser.refusal()) return false;
    said_.push_back(std::to_string(parser.refusal()->status) + " " + parser.refusal()->reason);
    return true;
  }

  bool one_request() {
    std::size_t scanned = 0;
    HeadScan scan = HeadScan::kMore;
    while ((scan = scan_head(buffer_, scanned)) == HeadScan::kMore) {
      if (!more()) return false;
    }
    if (scan == HeadScan::kBad) {
      said_.push_back("bad");
      return false;
    }
    RequestParser parser(limits_.body_bytes_max, budget_);
    parser.read_head(std::string_view(buffer_).substr(0, scanned));
    buffer_.erase(0, scanned);
    if (refused(parser)) return false;
    while (!parser.done()) {
      const std::size_t taken = parser.read_body(buffer_);
      FLOPSIGHT_CHECK(taken <= buffer_.size());
      buffer_.erase(0, taken);
      if (refused(parser)) return false;
      if (parser.done() || (taken > 0 && !buffer_.empty())) continue;
      if (!more()) {
        in_body_ = true;
        return false;
      }
    }
    note(parser);
    return parser.keep_alive();
  }

  void note(RequestParser& parser) {
    const ServerRequest& request = parser.request();
    FLOPSIGHT_CHECK(request.body.size() <= std::min(limits_.body_bytes_max, limits_.budget));
    FLOPSIGHT_CHECK(!parser.content_length() || *parser.content_length() == request.body.size());
    ServerResponse response;
    response.content_type = request.path;
    response.headers = request.headers;
    response.headers.insert(response.headers.end(), request.query.begin(), request.query.end());
    response.headers.emplace_back("X-Body", request.body);
    const std::string head = response_head(response, {parser.keep_alive(), parser.http_1_0(), {}});
    FLOPSIGHT_CHECK(head.find("\r\n\r\n") == head.size() - 4);
    std::size_t lines = 0;
    for (std::size_t i = 0; i < head.size(); ++i) {
      FLOPSIGHT_CHECK((head[i] == '\n') == (i > 0 && head[i - 1] == '\r'));
      lines += head[i] == '\n';
    }
    FLOPSIGHT_CHECK(lines <= 5 + response.headers.size());
    said_.push_back(request.method + " " + head);
  }

  std::string_view input_;
  std::size_t step_;
  std::string buffer_;
  Limits limits_;
  BodyBudget budget_;
  std::vector<std::string> said_;
  bool in_body_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Limits& limits = kLimits[data[0] / 64 % 2];
  auto whole = Replay(bytes, std::max<std::size_t>(bytes.size(), 1), limits).run();
  Replay cut(bytes, 1 + data[0] % 64, limits);
  const auto pieces = cut.run();
  // The last bytes of a body may be wrong already and still be waited behind.
  if (cut.ended_in_a_body() && whole.size() == pieces.size() + 1) whole.pop_back();
  FLOPSIGHT_CHECK(whole == pieces);
  return 0;
}
