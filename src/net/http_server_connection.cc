// g++ 12 may destroy a temporary in a co_await expression twice. So coroutines take references,
// nothing of a class type is made in the arguments of a call that is co_awaited, and what starts an
// operation with captured state is an ordinary function that returns an awaitable.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>

#include "net/http_server_connection_internal.h"
#include "net/http_server_response.h"

namespace flopsight::net {

using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kHeadRead = 4 * 1024;   // an idle connection holds no more
constexpr std::size_t kBodyRead = 64 * 1024;  // 1 MB POSTs: 763/s, and 107/s with buffers that grow
constexpr std::size_t kOneWrite = 16 * 1024;  // a body up to this size goes out with its head
constexpr std::size_t kDrainBytesMax =
    64 * 1024;  // of a body that was answered early, to keep the connection
constexpr std::size_t kLingerBytesMax =
    1024 * 1024;  // read and forgotten so that the peer can read why we close
constexpr milliseconds kLingerTime{2'000};
// How long a stop waits for what is no request yet, or no more.
constexpr milliseconds kStopGrace{500};
// A reader that takes less than this over a whole response is stalled, however steadily it takes
// it.
constexpr std::size_t kWriteBytesPerMillisecondMin = 10;

std::string address_text(const tcp::socket& socket) {
  error_code error;
  asio::ip::address address = socket.remote_endpoint(error).address();
  if (error) return {};
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return address.to_string(error);
}

std::string_view view(const boost::beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

}  // namespace

// ---- what all connections share

ServerCore::ServerCore(ServerOptions the_options, HeadHandler the_head, Handler the_handler)
    : options(std::move(the_options)),
      head(std::move(the_head)),
      handler(std::move(the_handler)),
      bodies(options.bodies_bytes_max),
      pool(options.handler_threads, options.handler_queue_max) {}

ServerResponse ServerCore::call_handler(ServerRequest request) {
  if (abandoned) return error_response(503, "stopping");
  try {
    return handler(std::move(request));
  } catch (...) {
    return error_response(500);
  }
}

const std::string& ServerCore::date() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (now != date_second_) {
    date_second_ = now;
    date_ = http_date(now);
  }
  return date_;
}

// ---- deadlines

Connection::Connection(ServerCore& core, tcp::socket socket, TlsContext tls)
    : core_(core), socket_(std::move(socket)), context_(std::move(tls)) {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  remote_address_ = address_text(socket_);
  if (context_) tls_.emplace(socket_, *context_);
  arm(tls_ ? Phase::kHandshake : Phase::kIdle, core.options.head_timeout);
}

void Connection::arm(Phase phase, ServerClock::time_point deadline) {
  phase_ = phase;
  deadline_ = deadline;
  expired_ = false;
}

ServerClock::time_point Connection::effective_deadline() const {
  if (!core_.stopping) return deadline_;
  switch (phase_) {
    case Phase::kHandshake:
    case Phase::kIdle:
      return core_.stop_started;
    case Phase::kHead:
    case Phase::kClosing:
      return std::min(deadline_, core_.stop_started + kStopGrace);
    case Phase::kBody:
    case Phase::kHandler:
    case Phase::kWriting:
      break;
  }
  return deadline_;
}

void Connection::check_deadline(ServerClock::time_point now) {
  error_code ignored;
  if (core_.stopping && now >= core_.stop_started + core_.options.stop_timeout) {
    socket_.close(ignored);
  } else if (now >= effective_deadline()) {
    expired_ = true;
    socket_.cancel(ignored);
  }
}

bool Connection::timed_out() {
  const bool late = expired_ && ServerClock::now() >= deadline_;  // not only because of a stop
  if (late) ++core_.counters.timeouts;
  return late;
}

// ---- bytes

asio::awaitable<std::size_t> Connection::read_some(asio::mutable_buffer into, error_code& error) {
  if (tls_) return tls_->async_read_some(into, asio::redirect_error(asio::use_awaitable, error));
  return socket_.async_read_some(into, asio::redirect_error(asio::use_awaitable, error));
}

asio::awaitable<std::size_t> Connection::write_some(const std::array<asio::const_buffer, 2>& from,
                                                    error_code& error) {
  if (tls_) return tls_->async_write_some(from, asio::redirect_error(asio::use_awaitable, error));
  return socket_.async_write_some(from, asio::redirect_error(asio::use_awaitable, error));
}

asio::awaitable<std::size_t> Connection::read_more(std::size_t room) {
  error_code error;
  const asio::mutable_buffer into = buffer_.prepare(room);
  const std::size_t got = co_await read_some(into, error);
  buffer_.commit(got);
  co_return got;
}

asio::awaitable<bool> Connection::send(std::string& head, std::string& body) {
  if (body.size() <= kOneWrite) {
    head += body;
    body.clear();
  }
  const auto started = ServerClock::now();
  const std::size_t total = head.size() + body.size();
  const auto end =
      started + core_.options.write_timeout + milliseconds(total / kWriteBytesPerMillisecondMin);
  for (std::size_t sent = 0; sent < total;) {
    const std::size_t of_head = std::min(sent, head.size());
    const asio::const_buffer rest_of_head = asio::buffer(head) + of_head;
    const asio::const_buffer rest_of_body = asio::buffer(body) + (sent - of_head);
    std::array<asio::const_buffer, 2> parts = {rest_of_head, rest_of_body};
    // TLS takes the first buffer only, and must not find it empty.
    if (rest_of_head.size() == 0) parts = {rest_of_body, asio::const_buffer()};
    arm(Phase::kWriting, std::min(ServerClock::now() + core_.options.write_timeout, end));
    error_code error;
    sent += co_await write_some(parts, error);
    if (error) {
      // What the kernel still holds is not wanted, and would keep its memory for minutes.
      if (timed_out()) socket_.set_option(asio::socket_base::linger(true, 0), error);
      co_return false;
    }
  }
  co_return true;
}

// Closing a socket with unread bytes resets the connection, and the reset may overtake our last
// answer. So the end of our side is sent, and what the peer still sends is read and forgotten for a
// while.
asio::awaitable<void> Connection::linger() {
  arm(Phase::kClosing, kLingerTime);
  error_code error;
  if (tls_) co_await tls_->async_shutdown(asio::redirect_error(asio::use_awaitable, error));
  socket_.shutdown(tcp::socket::shutdown_send, error);
  std::array<char, 8192> forgotten;
  for (std::size_t bytes = 0; bytes < kLingerBytesMax && !expired_;) {
    const asio::mutable_buffer into = asio::buffer(forgotten);
    bytes +=
        co_await socket_.async_read_some(into, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
  }
}

// ---- a connection

asio::awaitable<void> Connection::serve() {
  if (tls_) {
    const bool spoken = co_await handshake();
    if (!spoken) co_return;
  }
  Next next = Next::kGoOn;
  while (next == Next::kGoOn) next = co_await exchange();
  if (next == Next::kLinger) co_await linger();
}

asio::awaitable<void> Connection::turn_away() {
  tls_.reset();  // a handshake is what a full server has no room for
  const bool plain = context_ == nullptr;
  if (!plain) co_return;
  const RequestRefusal why{503, "too many connections"};
  const Next next = co_await last_answer(why);
  if (next == Next::kLinger) co_await linger();
}

asio::awaitable<bool> Connection::handshake() {
  error_code error;
  co_await tls_->async_handshake(asio::ssl::stream_base::server,
                                 asio::redirect_error(asio::use_awaitable, error));
  if (!error) {
    client_name_ = peer_common_name(tls_->native_handle());
    co_return true;
  }
  const bool late = timed_out();
  if (!late && !core_.stopping) ++core_.counters.tls_failures;
  if (is_plain_http(error)) {
    tls_.reset();
    const RequestRefusal why{400, "this port speaks HTTPS"};
    const Next next = co_await last_answer(why);
    if (next == Next::kLinger) co_await linger();
  }
  co_return false;
}

asio::awaitable<Connection::Next> Connection::exchange() {
  RequestParser parser(core_.options.body_bytes_max, core_.bodies);
  bool gone = false;
  std::optional<RequestRefusal> refusal = co_await read_head(parser, gone);
  if (gone) co_return Next::kDrop;
  if (refusal) {
    const Next next = co_await refuse(*refusal);
    co_return next;
  }
  ++core_.counters.requests;
  first_request_ = false;
  ServerRequest& request = parser.request();
  request.remote_address = remote_address_;
  request.client_certificate_name = client_name_;
  const bool head_only = request.method == "HEAD";
  const bool keep_alive = parser.keep_alive();
  std::optional<ServerResponse> early = early_answer(request);
  if (early) {
    const bool small = parser.content_length() && *parser.content_length() <= kDrainBytesMax;
    const bool drained = parser.done() || (small && !parser.expects_continue());
    const Next next = co_await respond(parser, *early, keep_alive && drained, head_only);
    if (next != Next::kGoOn || parser.done()) co_return next;
    parser.discard_body();
    refusal = co_await read_body(parser, gone);
    co_return gone || refusal ? Next::kDrop : Next::kGoOn;
  }
  if (!parser.done()) {
    const Next next = co_await exchange_body(parser);
    if (next != Next::kGoOn) co_return next;
  }
  arm(Phase::kHandler, ServerClock::time_point::max());
  ServerResponse response = co_await handle(request);
  const Next next = co_await respond(parser, response, keep_alive, head_only);
  co_return next;
}

// The body of a request that is wanted. Goes on: it is there.
asio::awaitable<Connection::Next> Connection::exchange_body(RequestParser& parser) {
  std::optional<RequestRefusal> refusal = announced_too_much(parser);
  if (!refusal) {
    if (parser.expects_continue() && buffer_.size() == 0) {
      std::string head = "HTTP/1.1 100 Continue\r\n\r\n", body;
      const bool sent = co_await send(head, body);
      if (!sent) co_return Next::kDrop;
    }
    bool gone = false;
    refusal = co_await read_body(parser, gone);
    if (gone) co_return Next::kDrop;
  }
  if (!refusal) co_return Next::kGoOn;
  const Next next = co_await refuse(*refusal);
  co_return next;
}

asio::awaitable<std::optional<RequestRefusal>> Connection::read_head(RequestParser& parser,
                                                                     bool& gone) {
  if (buffer_.size() == 0 && buffer_.capacity() > 2 * kHeadRead)
    buffer_.shrink_to_fit();  // of a body
  arm(Phase::kIdle, first_request_ ? core_.options.head_timeout : core_.options.idle_timeout);
  const std::size_t limit = core_.options.head_bytes_max;
  const RequestRefusal too_large{431, "head over " + std::to_string(limit) + " bytes"};
  std::size_t scanned = 0;
  while (true) {
    // Some clients send an empty line behind a body.
    while (scanned == 0 && view(buffer_).starts_with("\r\n")) buffer_.consume(2);
    const bool begun = buffer_.size() > 0 && view(buffer_) != "\r";
    if (begun) {
      if (phase_ == Phase::kIdle) arm(Phase::kHead, core_.options.head_timeout);
      const HeadScan found = scan_head(view(buffer_), scanned);
      if (scanned > limit || (found == HeadScan::kMore && scanned == limit)) co_return too_large;
      if (found == HeadScan::kBad) co_return RequestRefusal{400, "not an HTTP request"};
      if (found == HeadScan::kComplete) break;
    }
    const std::size_t got = co_await read_more(kHeadRead);
    if (got > 0) continue;
    if (begun && timed_out()) co_return RequestRefusal{408, "head not complete in time"};
    gone = true;
    co_return std::nullopt;
  }
  parser.read_head(view(buffer_).substr(0, scanned));
  buffer_.consume(scanned);
  co_return parser.refusal();
}

asio::awaitable<std::optional<RequestRefusal>> Connection::read_body(RequestParser& parser,
                                                                     bool& gone) {
  const auto end = ServerClock::now() + core_.options.body_total_timeout;
  while (true) {
    const std::size_t taken = parser.read_body(view(buffer_));
    buffer_.consume(taken);
    if (parser.refusal() || parser.done()) co_return parser.refusal();
    if (taken > 0 && buffer_.size() > 0) continue;
    // Only lines of chunks and trailers wait for their end.
    if (buffer_.size() > core_.options.head_bytes_max)
      co_return RequestRefusal{400, "chunk line too long"};
    arm(Phase::kBody, std::min(ServerClock::now() + core_.options.body_timeout, end));
    const std::size_t got = co_await read_more(kBodyRead);
    if (got > 0) continue;
    if (timed_out()) co_return RequestRefusal{408, "body not complete in time"};
    gone = true;
    co_return std::nullopt;
  }
}

std::optional<RequestRefusal> Connection::announced_too_much(const RequestParser& parser) const {
  const auto length = parser.content_length();
  if (!length) return std::nullopt;
  const std::size_t limit = core_.options.body_bytes_max;
  if (*length > limit) return RequestRefusal{413, "body over " + std::to_string(limit) + " bytes"};
  if (*length > core_.bodies.left()) return RequestRefusal{503, "too many bodies at once"};
  return std::nullopt;
}

std::optional<ServerResponse> Connection::early_answer(const ServerRequest& request) {
  if (!core_.head) return std::nullopt;
  try {
    return core_.head(request);
  } catch (...) {
    return error_response(500);
  }
}

asio::awaitable<Connection::Next> Connection::refuse(const RequestRefusal& refusal) {
  AtomicCounters& counters = core_.counters;
  if (refusal.status == 413) {
    ++counters.body_too_large;
  } else if (refusal.status == 503) {
    ++counters.overloaded;
  } else if (refusal.status != 408) {  // counted as a time-out
    ++counters.malformed;
  }
  const Next next = co_await last_answer(refusal);
  co_return next;
}

// The next bytes of this connection could be anything.
asio::awaitable<Connection::Next> Connection::last_answer(const RequestRefusal& why) {
  ServerResponse response = error_response(why.status, why.reason);
  std::string head = response_head(response, {false, false, core_.date()});
  const bool sent = co_await send(head, response.body);
  co_return sent ? Next::kLinger : Next::kDrop;
}

asio::awaitable<ServerResponse> Connection::handle(ServerRequest& request) {
  const auto initiate = [this](auto completion, ServerRequest asked) {
    // Shared, because std::function copies; it is called once, on the loop.
    auto done = std::make_shared<decltype(completion)>(std::move(completion));
    const auto answer = [&core = core_](auto& completed, ServerResponse response) {
      asio::post(core.io,
                 [completed = std::move(completed), response = std::move(response)]() mutable {
                   (*completed)(std::move(response));
                 });
    };
    auto job = [&core = core_, answer, done, asked = std::move(asked)]() mutable {
      answer(done, core.call_handler(std::move(asked)));
    };
    if (core_.pool.submit(std::move(job))) return;
    ++core_.counters.overloaded;
    answer(done, error_response(503, "too many requests are waiting"));
  };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(ServerResponse)>(
      initiate, asio::use_awaitable, std::move(request));
}

asio::awaitable<Connection::Next> Connection::respond(const RequestParser& parser,
                                                      ServerResponse& response, bool keep_alive,
                                                      bool head_only) {
  keep_alive = keep_alive && !core_.stopping;
  std::string head = response_head(response, {keep_alive, parser.http_1_0(), core_.date()});
  if (head_only || !status_has_body(response.status)) response.body.clear();
  const bool sent = co_await send(head, response.body);
  if (!sent) co_return Next::kDrop;
  co_return keep_alive ? Next::kGoOn : Next::kLinger;
}

}  // namespace flopsight::net
