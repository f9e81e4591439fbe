#include "serve/scraper.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <queue>
#include <unordered_map>

#include "base/text.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint32_t kBackOffMax = 10;  // intervals
constexpr std::uint32_t kFailuresBeforeBackOff = 2;
constexpr std::size_t kErrorTextBytesMax = 400;
constexpr milliseconds kPollMax{500};
constexpr std::size_t kCrowd = 100;
constexpr milliseconds kCrowdPause{10};
constexpr std::uint32_t kLabelSetsKept = 20'000;
constexpr std::string_view kAccept =
    "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5";

struct Target {
  sources::ScrapeTarget spec;
  std::string shown;  // URL without credentials
  std::vector<wire::Label> labels;  // views into spec
  milliseconds interval{0};
  milliseconds timeout{0};
  Clock::time_point due;
  bool in_flight = false;
  Clock::time_point began;
  units::Instant began_wall;
  TargetHealth health;  // without url and labels
};

milliseconds milliseconds_of(units::Seconds seconds) {
  return milliseconds(static_cast<std::int64_t>(seconds.value * 1000 + 0.5));
}

// How many intervals until a target that has failed so often in a row is asked again.
std::uint32_t intervals_after(std::uint32_t failures) {
  if (failures <= kFailuresBeforeBackOff) return 1;
  const std::uint32_t doublings = std::min(failures - kFailuresBeforeBackOff, std::uint32_t{4});
  return std::min(kBackOffMax, std::uint32_t{1} << doublings);
}

// As many open files as the process may have; connections are kept open between scrapes.
std::size_t open_files_max() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit more = limit;
    more.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1 << 18);
    if (more.rlim_cur > limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &more) == 0) limit = more;
  }
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 18));
}

// Counts; a label block of before is not parsed again, but few are kept.
wire::ExpositionParser counting_parser(wire::ExpositionFormat format) {
  wire::ExpositionParser::Options options;
  options.format = format;
  options.label_sets_max = kLabelSetsKept;
  return wire::ExpositionParser(options);
}

class Counter : public wire::ExpositionSink {
 public:
  void sample(const wire::ExpositionSample&) override { ++samples; }
  void malformed(const wire::ExpositionError& error) override {
    if (malformed_lines++ > 0) return;
    first_line = error.line;
    expected = error.expected;
  }
  std::uint64_t samples = 0;
  std::uint64_t malformed_lines = 0;
  std::uint64_t first_line = 0;
  std::string expected;
};

}  // namespace

// The thread that scrapes. What others look at is under the lock; the lock is not held while something is fetched or taken.
class Scraper::Loop {
 public:
  Loop(const ScraperOptions& options, ScrapeSink sink, std::function<units::Instant()> clock, net::HttpClient http,
       std::size_t parallel_max)
      : options_(options), sink_(std::move(sink)), clock_(std::move(clock)), http_(std::move(http)),
        parallel_max_(parallel_max) {}

  void run() {
    while (!stopping_) {
      // libcurl looks at every transfer for every event of one; where hundreds hang, events are better taken together.
      if (http_.in_flight() > kCrowd) std::this_thread::sleep_for(kCrowdPause);
      take_targets();
      const Clock::time_point next = begin_due();
      const auto wait = std::chrono::ceil<milliseconds>(next - Clock::now());
      http_.poll(std::clamp(wait, milliseconds(0), kPollMax), [&](std::uint64_t id, base::Result<net::HttpResponse> answer) {
        if (!stopping_) finish(id, std::move(answer));
      });
    }
  }
  void stop() {
    stopping_ = true;
    http_.wake();
  }

  void set_targets(std::vector<sources::ScrapeTarget> targets) {
    {
      const std::scoped_lock guard(mutex_);
      wanted_ = std::move(targets);
    }
    http_.wake();
  }

  std::vector<TargetHealth> health() const {
    std::vector<TargetHealth> out;
    const std::scoped_lock guard(mutex_);
    out.reserve(targets_.size());
    for (const auto& [id, target] : targets_) {
      out.push_back(target->health);
      out.back().url = target->shown;
      out.back().labels = target->spec.labels;
    }
    std::sort(out.begin(), out.end(), [](const TargetHealth& a, const TargetHealth& b) { return a.url < b.url; });
    return out;
  }
  ScraperCounters counters() const {
    const std::scoped_lock guard(mutex_);
    return counters_;
  }

 private:
  void take_targets();
  std::unique_ptr<Target> make(const sources::ScrapeTarget& spec) const;
  Clock::time_point begin_due();
  void begin(std::uint64_t id, Target& target);
  void finish(std::uint64_t id, base::Result<net::HttpResponse> answer);
  struct Outcome {
    std::string error;
    bool up = false;
    bool empty = false;
    bool refused = false;  // by the sink
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint64_t malformed_lines = 0;
    bool cut = false;
  };
  Outcome take(const Target& target, net::HttpResponse response);

  const ScraperOptions& options_;
  ScrapeSink sink_;
  std::function<units::Instant()> clock_;
  net::HttpClient http_;
  std::size_t parallel_max_;
  std::atomic<bool> stopping_ = false;
  wire::ExpositionParser text_parser_ = counting_parser(wire::ExpositionFormat::kPrometheusText);
  wire::ExpositionParser open_metrics_parser_ = counting_parser(wire::ExpositionFormat::kOpenMetrics);
  std::uint32_t parser_uses_ = 0;

  // Turns, soonest first; one for each target that is not being read.
  using Turn = std::pair<Clock::time_point, std::uint64_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::unordered_map<std::string, std::uint64_t> by_url_;
  std::uint64_t next_id_ = 1;

  mutable std::mutex mutex_;
  std::optional<std::vector<sources::ScrapeTarget>> wanted_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Target>> targets_;
  ScraperCounters counters_;
};

std::unique_ptr<Target> Scraper::Loop::make(const sources::ScrapeTarget& spec) const {
  auto target = std::make_unique<Target>();
  target->spec = spec;
  target->shown = net::url_without_credentials(spec.url);
  for (const auto& [name, value] : target->spec.labels) target->labels.push_back({name, value});
  target->interval = std::max(spec.interval ? milliseconds_of(*spec.interval) : options_.interval, milliseconds(1));
  target->timeout = std::min(spec.timeout ? milliseconds_of(*spec.timeout) : options_.timeout, target->interval);
  const std::int64_t interval = target->interval.count();
  const auto phase = static_cast<std::int64_t>(sources::target_hash(spec.url) % static_cast<std::uint64_t>(interval));
  const std::int64_t wall = clock_().unix_milliseconds % interval;
  target->due = Clock::now() + milliseconds((phase - wall + interval) % interval);
  return target;
}

// Targets that stay keep their turn and their history, unless their labels or times have changed.
void Scraper::Loop::take_targets() {
  const std::scoped_lock guard(mutex_);
  if (!wanted_) return;
  std::unordered_map<std::string, std::uint64_t> by_url;
  for (const sources::ScrapeTarget& spec : *wanted_) {
    if (const auto known = by_url_.find(spec.url); known != by_url_.end()) {
      const sources::ScrapeTarget& old = targets_[known->second]->spec;
      const auto same = [](const auto& a, const auto& b) { return a.has_value() == b.has_value() && (!a || a->value == b->value); };
      if (old.labels == spec.labels && same(old.interval, spec.interval) && same(old.timeout, spec.timeout)) {
        by_url.emplace(spec.url, known->second);
        by_url_.erase(known);
        continue;
      }
    }
    const std::uint64_t id = next_id_++;
    auto target = make(spec);
    turns_.emplace(target->due, id);
    by_url.emplace(spec.url, id);
    targets_.emplace(id, std::move(target));
  }
  for (const auto& [url, id] : by_url_) targets_.erase(id);
  by_url_ = std::move(by_url);
  wanted_.reset();
}

// Begins what is due, as far as there are connections, and says when the next turn is.
Clock::time_point Scraper::Loop::begin_due() {
  while (!turns_.empty()) {
    const auto [due, id] = turns_.top();
    const Clock::time_point now = Clock::now();
    if (due > now) return due;
    if (http_.in_flight() >= parallel_max_) break;
    turns_.pop();
    const auto at = targets_.find(id);
    if (at == targets_.end()) continue;
    Target& target = *at->second;
    if (now - due >= target.interval) {  // no connection was free for so long
      const auto missed = (now - due) / target.interval;
      target.due += missed * target.interval;
      const std::scoped_lock guard(mutex_);
      counters_.missed += static_cast<std::uint64_t>(missed);
    }
    begin(id, target);
  }
  return Clock::now() + kPollMax;
}

void Scraper::Loop::begin(std::uint64_t id, Target& target) {
  net::HttpRequest request;
  request.url = target.spec.url;
  request.keep_encoding = true;
  request.timeout = target.timeout;
  request.headers = {{"Accept", std::string(kAccept)}};
  target.in_flight = true;
  target.began = Clock::now();
  target.began_wall = clock_();
  http_.start(id, std::move(request));
}

Scraper::Loop::Outcome Scraper::Loop::take(const Target& target, net::HttpResponse response) {
  Outcome out;
  std::string inflated;
  std::string_view text = response.body;
  if (wire::looks_like_gzip(text)) {
    auto bytes = wire::gunzip(text, options_.body_bytes_max);
    if (!bytes.ok()) {
      out.error = bytes.error().message;
      return out;
    }
    inflated = std::move(bytes).value();
    text = inflated;
  }
  out.bytes = text.size();
  // Once in a while, or the label blocks of all targets and pods that ever were would stay.
  if (++parser_uses_ % 4096 == 0) {
    text_parser_.clear();
    open_metrics_parser_.clear();
  }
  // As the sink will read it: the two formats write times differently.
  const bool is_open_metrics = wire::exposition_format(response.content_type, text) == wire::ExpositionFormat::kOpenMetrics;
  Counter counter;
  const auto totals = (is_open_metrics ? open_metrics_parser_ : text_parser_).parse(text, counter);
  out.samples = counter.samples;
  out.cut = is_open_metrics && !totals.saw_eof_marker;
  out.malformed_lines = counter.malformed_lines - (out.cut ? 1 : 0);  // the mark that is missing is no line
  if (counter.samples == 0 && counter.malformed_lines > 0) {
    out.error = "line " + std::to_string(counter.first_line) + ": expected Prometheus text or OpenMetrics" +
                (response.content_type.empty() ? "" : ", found " + base::printable(response.content_type, 60));
    return out;
  }
  out.up = true;
  out.empty = counter.samples == 0;
  if (out.empty) {
    out.error = "answered without a sample";
    return out;
  }
  const base::Status taken =
      sink_({target.shown, target.labels, text, response.content_type, target.began_wall, counter.samples});
  out.refused = !taken.ok();
  if (out.refused) {
    out.error = "not taken: " + taken.error().message;
  } else if (out.malformed_lines > 0) {
    out.error = std::to_string(out.malformed_lines) + " lines that cannot be read, the first of them line " + std::to_string(counter.first_line) + ": expected " +
                counter.expected;
  } else if (out.cut) {
    out.error = "OpenMetrics without '# EOF' at the end: the answer was cut";
  }
  return out;
}

void Scraper::Loop::finish(std::uint64_t id, base::Result<net::HttpResponse> answer) {
  const auto at = targets_.find(id);
  if (at == targets_.end()) return;  // no target any more
  Target& target = *at->second;
  const Clock::time_point now = Clock::now();
  Outcome outcome;
  if (answer.ok()) {
    outcome = take(target, std::move(answer).value());
  } else {
    outcome.error = answer.error().message;
  }
  const std::scoped_lock guard(mutex_);
  ++counters_.scrapes;
  counters_.samples += outcome.samples;
  counters_.bytes += outcome.bytes;
  counters_.malformed_lines += outcome.malformed_lines;
  counters_.cut += outcome.cut ? 1 : 0;
  if (!outcome.up) ++counters_.failures;
  if (outcome.empty) ++counters_.empty;
  if (outcome.refused) ++counters_.sink_failures;
  TargetHealth& health = target.health;
  health.scraped = true;
  health.up = outcome.up;
  health.last = target.began_wall;
  health.duration = units::Seconds(std::chrono::duration<double>(now - target.began).count());
  health.samples = outcome.samples;
  health.malformed_lines = outcome.malformed_lines;
  health.error = base::printable(outcome.error, kErrorTextBytesMax);
  health.failures = outcome.up ? 0 : health.failures + 1;
  target.in_flight = false;
  target.due += intervals_after(health.failures) * target.interval;
  if (target.due <= now) {
    const auto missed = (now - target.due) / target.interval + 1;
    target.due += missed * target.interval;
    counters_.missed += static_cast<std::uint64_t>(missed);
  }
  turns_.emplace(target.due, id);
}

Scraper::Scraper(ScraperOptions options, TargetDiscovery discovery)
    : options_(std::move(options)), discovery_(std::move(discovery)) {}

base::Result<std::unique_ptr<Scraper>> Scraper::start(ScraperOptions options, ScrapeSink sink,
                                                      std::function<units::Instant()> clock) {
  if (options.interval < milliseconds(100) || options.timeout < milliseconds(1)) {
    return base::Error{base::ErrorCode::kInvalid, "scrape interval: expected 100ms or more, and a timeout above 0"};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(TargetDiscovery discovery, TargetDiscovery::create(options.discovery));
  // A quarter of the files for scrapes under way, half for connections that rest; the others are the rest of the program's.
  const std::size_t files = open_files_max();
  const std::size_t parallel =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::max(options.parallel_max, 1)), 1, std::max<std::size_t>(files / 4, 1));
  options.http.retries = 0;
  options.http.parallel_max = static_cast<int>(parallel);
  options.http.connections_kept_max = static_cast<int>(std::min<std::size_t>(files / 2, 50'000));
  options.http.total_timeout = options.timeout;
  options.http.connect_timeout = std::min(options.http.connect_timeout, options.timeout);
  options.http.body_bytes_max = options.body_bytes_max;
  FLOPSIGHT_ASSIGN_OR_RETURN(net::HttpClient http, net::HttpClient::create(options.http));
  std::unique_ptr<Scraper> scraper(new Scraper(std::move(options), std::move(discovery)));
  scraper->loop_ = std::make_unique<Loop>(scraper->options_, std::move(sink), std::move(clock), std::move(http), parallel);
  scraper->scraping_ = std::thread([loop = scraper->loop_.get()] { loop->run(); });
  scraper->discovering_ = std::thread([self = scraper.get()] { self->discover(); });
  return scraper;
}

Scraper::~Scraper() { stop(); }

void Scraper::stop() {
  {
    const std::scoped_lock guard(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  loop_->stop();
  if (discovering_.joinable()) discovering_.join();
  if (scraping_.joinable()) scraping_.join();
}

void Scraper::discover() {
  bool is_first = true;
  while (true) {
    if (discovery_.refresh(Clock::now()) || is_first) {
      loop_->set_targets(discovery_.targets());
      std::vector<std::string> problems = discovery_.problems();
      const std::scoped_lock guard(mutex_);
      problems_ = std::move(problems);
      is_first = false;
    }
    std::unique_lock lock(mutex_);
    if (stopped_.wait_until(lock, discovery_.next(Clock::now()), [this] { return stopping_; })) return;
  }
}

std::vector<TargetHealth> Scraper::health() const { return loop_->health(); }
ScraperCounters Scraper::counters() const { return loop_->counters(); }
std::vector<std::string> Scraper::problems() const {
  const std::scoped_lock guard(mutex_);
  return problems_;
}

}  // namespace flopsight::app
