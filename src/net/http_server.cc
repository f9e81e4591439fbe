#include "net/http_server.h"

#include <algorithm>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "base/text.h"
#include "net/http_server_connection_internal.h"

namespace flopsight::net {

using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kAcceptPause{50};    // when the process has no file descriptor left
constexpr std::size_t kTurnedAwayMax = 64;  // told why at the same time; more are just closed
constexpr milliseconds kTickMin{2}, kTickMax{250};

// Deadlines are met within an eighth of the shortest.
milliseconds tick_of(const ServerOptions& options) {
  const milliseconds shortest =
      std::min({options.head_timeout, options.body_timeout, options.body_total_timeout,
                options.write_timeout, options.idle_timeout, options.stop_timeout});
  return std::clamp(shortest / 8, kTickMin, kTickMax);
}

base::Result<tcp::endpoint> endpoint_of(const ServerOptions& options) {
  std::string_view text = options.address;
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  error_code error;
  const asio::ip::address address = asio::ip::make_address(text, error);
  if (error) {
    return base::Error{base::ErrorCode::kInvalid, "listen address '" +
                                                      base::printable(options.address) +
                                                      "': expected an IPv4 or IPv6 address"};
  }
  return tcp::endpoint(address, options.port);
}

std::string endpoint_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

}  // namespace

bool is_ip_address(const std::string& text) {
  error_code error;
  asio::ip::make_address(text, error);
  return !error;
}

std::string_view ServerRequest::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

std::optional<std::string_view> ServerRequest::query_value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

struct HttpServer::State {
  State(ServerOptions options, HeadHandler head, Handler handler)
      : core(std::move(options), std::move(head), std::move(handler)),
        tick_every(tick_of(core.options)) {}

  base::Status listen(const tcp::endpoint& endpoint);
  void run();  // on the thread of the loop
  void begin_stop();

  asio::awaitable<void> accept_all();
  void take(tcp::socket socket);
  void remove(Connection* connection);
  void tick();
  void check_deadlines();
  void end_if_done();

  ServerCore core;
  milliseconds tick_every;
  std::uint16_t port = 0;
  std::mutex tls_mutex;
  TlsContext tls;  // null: plain

  tcp::acceptor acceptor{core.io};
  asio::steady_timer ticker{core.io};
  asio::steady_timer accept_pause{core.io};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  struct Entry {
    std::unique_ptr<Connection> connection;
    bool turned_away = false;
  };
  std::unordered_map<Connection*, Entry> connections;
  std::size_t turned_away = 0;  // of them
  std::once_flag stopped;
  std::thread loop;
};

base::Status HttpServer::State::listen(const tcp::endpoint& endpoint) {
  error_code error;
  const auto failed = [&] {
    const bool address = error == asio::error::address_family_not_supported ||
                         error == boost::system::errc::address_not_available;
    return base::Error{
        address ? base::ErrorCode::kInvalid : base::ErrorCode::kIo,
        "cannot listen on " + endpoint_text(endpoint) + ": " + base::to_lower(error.message())};
  };
  acceptor.open(endpoint.protocol(), error);
  if (error) return failed();
  acceptor.set_option(tcp::acceptor::reuse_address(true),
                      error);  // connections of a process before this one may linger
  if (error) return failed();
  acceptor.bind(endpoint, error);
  if (error) return failed();
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return failed();
  port = acceptor.local_endpoint(error).port();
  if (error) return failed();
  return {};
}

void HttpServer::State::run() {
  while (true) {
    try {
      core.io.run();
      return;
    } catch (...) {
      // Memory ran out between two coroutines; what else there is goes on.
    }
  }
}

asio::awaitable<void> HttpServer::State::accept_all() {
  while (acceptor.is_open()) {
    error_code error;
    tcp::socket socket =
        co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      try {
        take(std::move(socket));
      } catch (...) {
        // No memory for this one; the next may find some.
      }
    } else if (acceptor.is_open()) {
      accept_pause.expires_after(kAcceptPause);
      co_await accept_pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

void HttpServer::State::take(tcp::socket socket) {
  if (core.stopping) return;
  const bool refused = connections.size() - turned_away >= core.options.connections_max;
  if (refused) {
    ++core.counters.connections_refused;
    if (turned_away >= kTurnedAwayMax) return;
    ++turned_away;
  } else {
    ++core.counters.connections_total;
    ++core.counters.connections_open;
  }
  TlsContext context;
  {
    const std::lock_guard lock(tls_mutex);
    context = tls;
  }
  auto made = std::make_unique<Connection>(core, std::move(socket), std::move(context));
  Connection* const connection = made.get();
  connections.emplace(connection, Entry{std::move(made), refused});
  try {
    asio::co_spawn(core.io, refused ? connection->turn_away() : connection->serve(),
                   [this, connection](const std::exception_ptr&) { remove(connection); });
  } catch (...) {
    remove(connection);
    throw;
  }
}

void HttpServer::State::remove(Connection* connection) {
  const auto found = connections.find(connection);
  if (found->second.turned_away) {
    --turned_away;
  } else {
    --core.counters.connections_open;
  }
  connections.erase(found);
  end_if_done();
}

void HttpServer::State::check_deadlines() {
  const auto now = ServerClock::now();
  if (core.stopping && now >= core.stop_started + core.options.stop_timeout) core.abandoned = true;
  for (const auto& [connection, entry] : connections) connection->check_deadline(now);
}

void HttpServer::State::tick() {
  ticker.expires_after(tick_every);
  ticker.async_wait([this](const error_code& error) {
    // The last tick may have been on its way already when the end cancelled it.
    if (error || !work) return;
    check_deadlines();
    tick();
  });
}

void HttpServer::State::begin_stop() {
  core.stopping = true;
  core.stop_started = ServerClock::now();
  error_code ignored;
  acceptor.close(ignored);
  accept_pause.cancel();
  check_deadlines();
  end_if_done();
}

void HttpServer::State::end_if_done() {
  if (!core.stopping || !connections.empty()) return;
  ticker.cancel();
  work.reset();
}

// ---- the interface

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() { stop(); }

base::Result<std::unique_ptr<HttpServer>> HttpServer::start(ServerOptions options, HeadHandler head,
                                                            Handler handler) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, endpoint_of(options));
  TlsContext context;
  if (options.tls) {
    FLOPSIGHT_ASSIGN_OR_RETURN(context, make_tls_context(*options.tls));
  }
  try {
    auto state = std::make_unique<State>(std::move(options), std::move(head), std::move(handler));
    state->tls = std::move(context);
    FLOPSIGHT_RETURN_IF_ERROR(state->listen(endpoint));
    state->work.emplace(state->core.io.get_executor());
    State* const raw = state.get();
    asio::co_spawn(raw->core.io, raw->accept_all(), [](const std::exception_ptr&) {});
    raw->tick();
    raw->loop = std::thread([raw] { raw->run(); });
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
  } catch (const std::system_error& error) {
    return base::Error{base::ErrorCode::kIo,
                       std::string("cannot start the HTTP server: ") + error.what()};
  }
}

std::uint16_t HttpServer::port() const { return state_->port; }

ServerCounters HttpServer::counters() const {
  const AtomicCounters& now = state_->core.counters;
  ServerCounters out;
  out.connections_total = now.connections_total;
  out.connections_open = now.connections_open;
  out.connections_refused_total = now.connections_refused;
  out.requests_total = now.requests;
  out.malformed_total = now.malformed;
  out.timeouts_total = now.timeouts;
  out.body_too_large_total = now.body_too_large;
  out.overloaded_total = now.overloaded;
  out.tls_failures_total = now.tls_failures;
  return out;
}

base::Status HttpServer::reload_tls(const ServerTls& tls) {
  FLOPSIGHT_ASSIGN_OR_RETURN(TlsContext context, make_tls_context(tls));
  const std::lock_guard lock(state_->tls_mutex);
  if (state_->tls == nullptr) {
    return base::Error{base::ErrorCode::kInvalid,
                       "a server that was started without TLS stays without it"};
  }
  state_->tls = std::move(context);
  return {};
}

void HttpServer::stop() {
  std::call_once(state_->stopped, [this] {
    asio::post(state_->core.io, [this] { state_->begin_stop(); });
    state_->loop.join();
    state_->core.pool.join();
  });
}

}  // namespace flopsight::net
