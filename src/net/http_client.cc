// libcurl's multi interface, driven by one loop (Engine).
#include "net/http_client.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/check.h"
#include "net/http_options.h"
#include "net/http_text.h"
#include "net/http_transfer_internal.h"

namespace flopsight::net {
namespace {

using Clock = std::chrono::steady_clock;
using Owned = std::unique_ptr<Transfer>;

constexpr int kRedirectsMax = 10;
constexpr std::chrono::milliseconds kPollMax{1000};

Owned transfer_of(std::uint64_t id, const HttpRequest& request) {
  auto transfer = std::make_unique<Transfer>();
  transfer->id = id;
  transfer->request = &request;
  return transfer;
}

}  // namespace

// ---- The loop

struct HttpClient::State {
  HttpOptions options;
  Multi multi;  // keeps connections between calls
  std::vector<Easy> idle;
  bool running = false;

  class Engine;
  std::unique_ptr<Engine> engine;  // of start() and poll(); goes first
};

// The transfers under way: of one call of send_all, or of start() and poll().
class HttpClient::State::Engine {
 public:
  using Done = std::function<void(std::uint64_t, base::Result<HttpResponse>)>;
  explicit Engine(State& state) : state_(state) {}
  ~Engine() {
    for (const auto& [easy, unused] : active_) curl_multi_remove_handle(state_.multi.get(), easy);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void add(Owned transfer) { queue_.push_back(std::move(transfer)); }
  bool has_room() const {
    return active_.size() + queue_.size() < static_cast<std::size_t>(state_.options.parallel_max);
  }
  std::size_t size() const { return active_.size() + queue_.size() + waiting_.size(); }

  // Hands over what has ended, and waits for at most `wait` where nothing has.
  void step(std::chrono::milliseconds wait, const Done& done) {
    done_ = &done;
    if (!perform()) {
      curl_multi_poll(state_.multi.get(), nullptr, 0, poll_milliseconds(wait), nullptr);
      perform();
    }
    done_ = nullptr;
  }

 private:
  bool may_start() const { return active_.size() < static_cast<std::size_t>(state_.options.parallel_max); }

  // True if something has ended.
  bool perform() {
    ended_ = false;
    start_what_may();
    int unfinished = 0;
    curl_multi_perform(state_.multi.get(), &unfinished);
    collect();
    return ended_;
  }

  void start_what_may() {
    for (auto it = waiting_.begin(); it != waiting_.end() && may_start();) {
      if ((*it)->due > Clock::now()) {
        ++it;
        continue;
      }
      Owned transfer = std::move(*it);
      it = waiting_.erase(it);
      begin(std::move(transfer));
    }
    while (!queue_.empty() && may_start()) {
      Owned transfer = std::move(queue_.front());
      queue_.pop_front();
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
      hand_over(std::move(transfer), error.within(url));
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
    prepare_transfer(*transfer, state_.options);
    CURL* easy = transfer->easy.get();
    FLOPSIGHT_CHECK(curl_multi_add_handle(state_.multi.get(), easy) == CURLM_OK);
    active_.emplace(easy, std::move(transfer));
  }

  void collect() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(state_.multi.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      curl_multi_remove_handle(state_.multi.get(), message->easy_handle);
      auto node = active_.extract(message->easy_handle);
      finish(std::move(node.mapped()), code);
      ended_ = true;
    }
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
    response.retry_after = answer.retry_after;
    hand_over(std::move(transfer), std::move(response));
  }

  void hand_over(Owned transfer, base::Result<HttpResponse> result) {
    const std::uint64_t id = transfer->id;
    if (transfer->easy) state_.idle.push_back(std::move(transfer->easy));
    transfer.reset();
    ended_ = true;
    (*done_)(id, std::move(result));
  }

  void follow(Owned transfer) {
    const HttpRequest& request = *transfer->request;
    const auto refuse = [&](const std::string& why) {
      const std::string to = url_without_credentials(transfer->answer.location);
      const base::Error error = transfer_failure(*transfer, base::ErrorCode::kInvalid,
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
  int poll_milliseconds(std::chrono::milliseconds longest) const {
    if (!may_start()) return static_cast<int>(longest.count());
    for (const Owned& transfer : waiting_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(transfer->due - Clock::now());
      longest = std::clamp(left, std::chrono::milliseconds(0), longest);
    }
    return static_cast<int>(longest.count());
  }

  State& state_;
  const Done* done_ = nullptr;  // while step() runs
  bool ended_ = false;
  std::map<CURL*, Owned> active_;
  std::deque<Owned> queue_;
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
  if (state->options.connections_kept_max) {
    curl_multi_setopt(state->multi.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(*state->options.connections_kept_max));
  }
  state->engine = std::make_unique<State::Engine>(*state);
  return HttpClient(std::move(state));
}

void HttpClient::send_all(
    std::span<const HttpRequest> requests,
    const std::function<void(std::size_t index, base::Result<HttpResponse> response)>& done) {
  FLOPSIGHT_CHECK(!state_->running && in_flight() == 0);
  state_->running = true;
  {
    State::Engine engine(*state_);
    std::size_t next = 0;
    while (next < requests.size() || engine.size() > 0) {
      for (; next < requests.size() && engine.has_room(); ++next) engine.add(transfer_of(next, requests[next]));
      engine.step(kPollMax, done);
    }
  }
  state_->running = false;
}

void HttpClient::start(std::uint64_t id, HttpRequest request) {
  auto owned = std::make_unique<const HttpRequest>(std::move(request));
  Owned transfer = transfer_of(id, *owned);
  transfer->owned = std::move(owned);
  state_->engine->add(std::move(transfer));
}

std::size_t HttpClient::in_flight() const { return state_->engine->size(); }

void HttpClient::poll(std::chrono::milliseconds wait,
                      const std::function<void(std::uint64_t id, base::Result<HttpResponse> response)>& done) {
  FLOPSIGHT_CHECK(!state_->running);
  state_->running = true;
  state_->engine->step(wait, done);
  state_->running = false;
}

void HttpClient::wake() { curl_multi_wakeup(state_->multi.get()); }

base::Result<HttpResponse> HttpClient::send(const HttpRequest& request) {
  std::optional<base::Result<HttpResponse>> answer;
  send_all({&request, 1}, [&](std::size_t, base::Result<HttpResponse> response) {
    answer.emplace(std::move(response));
  });
  FLOPSIGHT_CHECK(answer.has_value());
  return std::move(*answer);
}

}  // namespace flopsight::net
