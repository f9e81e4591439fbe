#include <algorithm>
#include <barrier>
#include <chrono>
#include <iomanip>
#include <mutex>
#include <ostream>
#include <thread>

#include "base/text.h"
#include "simulate/simulate_batch.h"
#include "simulate/simulate_targets.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using Clock = std::chrono::steady_clock;

// Messages are kept between rounds up to about this much; beyond, they are made anew each round.
constexpr std::uint64_t kKeptSeriesMax = 15'000'000;  // of about 70 bytes

struct Counts {
  std::atomic<std::uint64_t> samples{0};  // taken by the receiver
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> dropped{0};  // samples that were refused, or could not be sent
};

// What all senders share.
struct Load {
  const SimulateArguments& arguments;
  const simulation::Timetable& timetable;
  const std::atomic<bool>& stop;
  Counts counts;
  std::atomic<bool> gave_up{false};
  std::mutex mutex;
  std::string first_refusal;         // guarded by mutex
  std::optional<Error> fatal;        // guarded by mutex

  bool over() const { return stop || gave_up; }
  void refuse(const std::string& why, std::uint64_t samples) {
    counts.dropped += samples;
    const std::lock_guard lock(mutex);
    if (first_refusal.empty()) first_refusal = why;
  }
  void give_up(Error error) {
    gave_up = true;
    const std::lock_guard lock(mutex);
    if (!fatal) fatal = std::move(error);
  }
};

net::HttpRequest request_of(const SimulateArguments& a, const std::string& body) {
  const bool v2 = a.version == wire::RemoteWriteVersion::kV2;
  net::HttpRequest request;
  request.url = a.remote_write;
  request.body = body;
  request.content_type = v2 ? "application/x-protobuf;proto=io.prometheus.write.v2.Request" : "application/x-protobuf";
  request.headers = {{"Content-Encoding", "snappy"},
                     {"X-Prometheus-Remote-Write-Version", v2 ? "2.0.0" : "0.1.0"}};
  request.any_status = true;
  return request;
}

// One thread: some of the batches, round after round.
class Sender {
 public:
  Sender(Load& load, net::HttpClient client, std::vector<SimulatedBatch> batches)
      : load_(load), client_(std::move(client)), batches_(std::move(batches)), meter_(load.timetable) {}

  void round(std::int64_t start, bool first_round, bool keep) {
    const SimulatedBatch::How how{load_.arguments.version, load_.arguments.labels_min, first_round};
    for (SimulatedBatch& batch : batches_) {
      if (load_.over()) return;
      const SimulatedBatch::Message message = batch.fill(load_.timetable, meter_, start, how);
      if (message.samples > 0) send(message);
      if (!keep) batch.forget();
    }
  }

 private:
  void send(const SimulatedBatch::Message& message) {
    auto answer = client_.send(request_of(load_.arguments, *message.body));
    ++load_.counts.requests;
    if (!answer.ok()) {
      // Before anything was taken, an address that does not answer is a mistake of the user.
      if (load_.counts.samples == 0 || answer.error().code != ErrorCode::kUnavailable) {
        load_.give_up(answer.error());
      } else {
        load_.refuse(answer.error().message, message.samples);
      }
    } else if (answer->status / 100 == 2) {
      load_.counts.samples += message.samples;
      load_.counts.bytes += message.body->size();
    } else {
      const std::string_view body = base::trim(answer->body);
      load_.refuse(answer->status_line + ": " + base::printable(body.substr(0, body.find('\n')), 300), message.samples);
    }
  }

  Load& load_;
  net::HttpClient client_;
  std::vector<SimulatedBatch> batches_;
  simulation::Meter meter_;
};

base::Result<std::vector<std::unique_ptr<Sender>>> senders_of(Load& load) {
  const SimulateArguments& a = load.arguments;
  const simulation::Options& options = load.timetable.options();
  const std::size_t host_series = options.gpus_per_host * simulation::metrics_of(options).size() + 1;
  const auto hosts_each = static_cast<std::uint32_t>(std::max<std::size_t>(1, a.batch_series / host_series));
  std::vector<std::vector<SimulatedBatch>> batches(a.concurrency);
  std::size_t next = 0;
  for (std::uint32_t host = 0; host < options.hosts(); host += hosts_each) {
    batches[next++ % a.concurrency].emplace_back(host, std::min(host + hosts_each, options.hosts()));
  }
  std::vector<std::unique_ptr<Sender>> out;
  for (auto& part : batches) {
    if (part.empty()) continue;
    net::HttpOptions http = a.http;
    http.retries = 6;
    FLOPSIGHT_ASSIGN_OR_RETURN(net::HttpClient client, net::HttpClient::create(http));
    out.push_back(std::make_unique<Sender>(load, std::move(client), std::move(part)));
  }
  return out;
}

void show(const Env& env, const Load& load, Clock::time_point begun, const char* end) {
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const std::uint64_t samples = load.counts.samples, dropped = load.counts.dropped;
  env.err << "\r\x1b[Ksent " << samples << " samples, " << std::fixed << std::setprecision(0)
          << static_cast<double>(samples) / std::max(seconds, 1e-3) << " a second";
  if (dropped > 0) env.err << ", " << dropped << " refused";
  env.err << end << std::flush;
}

// Waits for the round's time; false when it is not to come.
bool wait_for(std::int64_t round_end, const Env& env, const Load& load) {
  while (!load.over()) {
    const std::int64_t left = round_end - env.now().unix_milliseconds;
    if (left <= 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min<std::int64_t>(left, 100)));
  }
  return false;
}

void send_rounds(Load& load, std::vector<std::unique_ptr<Sender>>& senders, const Env& env, Clock::time_point begun) {
  const simulation::Options& options = load.timetable.options();
  const std::int64_t interval = options.interval_milliseconds();
  const auto rounds = static_cast<std::uint64_t>((options.end_milliseconds() - options.start_milliseconds()) / interval);
  const bool live = !load.arguments.rounds;
  const bool keep = std::uint64_t{options.gpus} * simulation::metrics_of(options).size() < kKeptSeriesMax;
  const bool progress = env.err_is_terminal && !load.arguments.quiet;
  // All senders go from round to round together: a receiver refuses samples that are much older than its newest.
  std::barrier together(static_cast<std::ptrdiff_t>(senders.size()));
  const auto work = [&](std::size_t which) {
    auto shown = Clock::now();
    for (std::uint64_t r = 0; r < rounds; ++r) {
      const std::int64_t start = options.start_milliseconds() + static_cast<std::int64_t>(r) * interval;
      // A scrape of this round is at most one interval late.
      if (!live || wait_for(start + interval, env, load)) senders[which]->round(start, r == 0, keep);
      together.arrive_and_wait();
      if (load.over()) break;
      if (which == 0 && progress && Clock::now() - shown > std::chrono::milliseconds(500)) {
        shown = Clock::now();
        show(env, load, begun, "");
      }
    }
    together.arrive_and_drop();
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < senders.size(); ++i) threads.emplace_back(work, i);
  work(0);
}

}  // namespace

base::Status simulate_to_remote_write(const SimulateArguments& a, const Env& env, const std::atomic<bool>& stop,
                                      bool& all_taken) {
  simulation::Options options = a.fleet;
  const units::Seconds length =
      a.rounds ? options.interval * static_cast<double>(*a.rounds) : a.length.value_or(units::Seconds(366 * 86400.0));
  const units::Instant now = env.now();
  // A load ends now, so that no sample is of the future; a live fleet begins now.
  const units::Instant start = a.start.value_or(a.rounds ? now - length : now);
  options.window = {start, start + length};
  FLOPSIGHT_ASSIGN_OR_RETURN(options, simulation::check(options));
  const simulation::Timetable timetable(options);
  Load load{a, timetable, stop, {}, {}, {}, {}, {}};
  FLOPSIGHT_ASSIGN_OR_RETURN(auto senders, senders_of(load));
  const auto begun = Clock::now();
  send_rounds(load, senders, env, begun);
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  if (env.err_is_terminal && !a.quiet) show(env, load, begun, "\n");
  if (load.fatal) return *load.fatal;
  const std::uint64_t samples = load.counts.samples, dropped = load.counts.dropped;
  all_taken = dropped == 0;
  env.out << "SIMULATED fleet of " << options.gpus << " GPUs: sent " << samples << " samples in " << std::fixed
          << std::setprecision(3) << seconds << " s, " << std::setprecision(0)
          << static_cast<double>(samples) / std::max(seconds, 1e-6) << " a second, " << load.counts.requests
          << " requests, " << load.counts.bytes << " bytes, " << dropped << " samples refused\n";
  if (dropped > 0) env.err << error_line("simulate", "refused: " + load.first_refusal);
  return {};
}

}  // namespace flopsight::app
