#pragma once
// One connection of the server: a coroutine that reads requests, has them answered, writes the
// answers, and says good-bye. Everything here runs on the thread of the event loop, except where a
// line says otherwise.
//
// Deadlines: an operation arms one, and the server's clock (ServerCore::tick) cancels what is past
// its own. A timer per connection would cost several times as much as the reading of a small
// request.

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>  // before awaitable.hpp, which needs std::exchange and does not include it for g++ 12

#include "net/handler_pool.h"
#include "net/http_server.h"
#include "net/http_server_parser.h"
#include "net/http_server_tls_internal.h"

namespace flopsight::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using ServerClock = std::chrono::steady_clock;

// ServerCounters while they are counted: written on the loop, read anywhere.
struct AtomicCounters {
  std::atomic<std::uint64_t> connections_total = 0, connections_open = 0, connections_refused = 0,
                             requests = 0, malformed = 0, timeouts = 0, body_too_large = 0,
                             overloaded = 0, tls_failures = 0;
};

// What all connections share.
struct ServerCore {
  ServerCore(ServerOptions the_options, HeadHandler the_head, Handler the_handler);

  // From a thread of the pool. What handlers throw is theirs; the client learns that it was
  // something.
  ServerResponse call_handler(ServerRequest request);
  const std::string& date();  // of this second

  const ServerOptions options;
  const HeadHandler head;
  const Handler handler;
  asio::io_context io{1};
  AtomicCounters counters;
  BodyBudget bodies;
  HandlerPool pool;
  bool stopping = false;
  ServerClock::time_point stop_started{};
  std::atomic<bool> abandoned =
      false;  // stop_timeout is over: handlers that wait are not called any more

 private:
  std::time_t date_second_ = 0;
  std::string date_;
};

class Connection {
 public:
  Connection(ServerCore& core, tcp::socket socket, TlsContext tls);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Until the connection has ended.
  asio::awaitable<void> serve();
  // Says 503 and ends.
  asio::awaitable<void> turn_away();

  // Ends what is overdue, also by a stop that has begun.
  void check_deadline(ServerClock::time_point now);

 private:
  enum class Phase { kHandshake, kIdle, kHead, kBody, kHandler, kWriting, kClosing };
  enum class Next { kGoOn, kLinger, kDrop };  // after one request

  void arm(Phase phase, ServerClock::time_point deadline);
  void arm(Phase phase, std::chrono::milliseconds from_now) {
    arm(phase, ServerClock::now() + from_now);
  }
  ServerClock::time_point effective_deadline() const;
  bool timed_out();  // and counts it

  asio::awaitable<bool> handshake();
  asio::awaitable<Next> exchange();
  asio::awaitable<Next> exchange_body(RequestParser& parser);
  asio::awaitable<std::optional<RequestRefusal>> read_head(RequestParser& parser, bool& gone);
  asio::awaitable<std::optional<RequestRefusal>> read_body(RequestParser& parser, bool& gone);
  asio::awaitable<Next> refuse(const RequestRefusal& refusal);  // and counts it
  asio::awaitable<Next> last_answer(const RequestRefusal& why);
  asio::awaitable<ServerResponse> handle(ServerRequest& request);
  asio::awaitable<Next> respond(const RequestParser& parser, ServerResponse& response,
                                bool keep_alive, bool head_only);
  // Uses its arguments up.
  asio::awaitable<bool> send(std::string& head, std::string& body);
  asio::awaitable<void> linger();

  std::optional<ServerResponse> early_answer(const ServerRequest& request);
  std::optional<RequestRefusal> announced_too_much(const RequestParser& parser) const;

  // Bytes that came; 0 when none will any more.
  asio::awaitable<std::size_t> read_more(std::size_t room);
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer into,
                                         boost::system::error_code& error);
  asio::awaitable<std::size_t> write_some(const std::array<asio::const_buffer, 2>& from,
                                          boost::system::error_code& error);

  ServerCore& core_;
  tcp::socket socket_;
  TlsContext context_;  // outlives a reload
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  boost::beast::flat_buffer buffer_;  // read and not yet understood
  std::string remote_address_, client_name_;

  Phase phase_ = Phase::kIdle;
  ServerClock::time_point deadline_ = ServerClock::time_point::max();
  bool expired_ = false;
  bool first_request_ = true;
};

}  // namespace flopsight::net
