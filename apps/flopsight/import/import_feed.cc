#include "import/import_feed.h"

#include <algorithm>

#include "base/text.h"
#include "live/live_fleet.h"
#include "wire/snappy.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kSamplesPerMessage = 200'000;
// A row of a GPU has some twenty samples and a hundred bytes.
constexpr std::uint64_t kSamplesPerFlush = 20'000'000;

std::string_view name_of(const FeedSeries& series) {
  for (const auto& [name, value] : *series.labels) {
    if (name == "__name__") return value;
  }
  return {};
}

// Identity without spelling, as the store and the fleet see it.
std::string key_of(const samples::GpuIdentity& gpu) {
  if (!gpu.uuid.empty()) return "u" + samples::normalized_uuid(gpu.uuid) + '\0' + gpu.mig_instance;
  return "i" + gpu.host + '\0' + gpu.index + '\0' + gpu.mig_instance;
}

// Empty where the labels name no GPU for sure: the fleet decides then.
std::string key_of(const jobs::LabelRules& rules, const FeedSeries& series) {
  std::vector<jobs::LabelView> views;
  for (const auto& [name, value] : *series.labels) {
    if (name != "__name__") views.push_back({name, value});
  }
  const jobs::LabelFacts facts = rules.apply(views);
  if (facts.masked_uuid || (facts.gpu.uuid.empty() && facts.gpu.index.empty())) return {};
  return key_of(facts.gpu);
}

wire::RemoteWriteSeriesOut message_series(const FeedSeries& series) {
  wire::RemoteWriteSeriesOut out;
  for (const auto& [name, value] : *series.labels) {
    if (!value.empty()) out.labels.push_back({name, value});
  }
  std::sort(out.labels.begin(), out.labels.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const wire::ApiPoint& point : series.points) out.samples.push_back({point.unix_milliseconds, point.value});
  return out;
}

}  // namespace

ImportFeed::ImportFeed(Ingest& ingest, const jobs::LabelRules& rules, units::Seconds slot, units::Instant now)
    : ingest_(ingest), rules_(rules), slot_milliseconds_(static_cast<std::int64_t>(slot.value * 1000)), now_(now) {
  was_simulated_ = ingest_.store()->simulated();
  const auto records = ingest_.store()->gpus();
  if (!records.ok()) return;
  for (const store::GpuRecord& record : *records) {
    known_[key_of(record.identity)] = {record.first.unix_milliseconds, record.closed_until.unix_milliseconds};
    if (!known_window_) known_window_ = {record.first, record.closed_until};
    known_window_->start = std::min(known_window_->start, record.first);
    known_window_->end = std::max(known_window_->end, record.closed_until);
  }
}

bool ImportFeed::wants(std::string_view metric) {
  const auto [at, is_new] = wanted_.emplace(std::string(metric), false);
  if (is_new) at->second = live::metric_use(metric).wanted();
  return at->second;
}

std::span<const wire::ApiPoint> ImportFeed::not_closed_yet(const FeedSeries& series) {
  if (live::metric_use(name_of(series)).simulated) {
    // Of no GPU; that some of the store is simulated is said once for all of it.
    if (!was_simulated_ || !known_window_) return series.points;
    const auto open = std::partition_point(series.points.begin(), series.points.end(), [&](const wire::ApiPoint& point) {
      return point.unix_milliseconds < known_window_->end.unix_milliseconds;
    });
    own_.already += static_cast<std::uint64_t>(open - series.points.begin());
    return {open, series.points.end()};
  }
  const std::string key = key_of(rules_, series);
  if (!key.empty()) gpus_.insert(key);
  const auto known = key.empty() ? known_.end() : known_.find(key);
  if (known == known_.end()) return series.points;
  const auto at_or_after = [&](std::int64_t time) {
    return std::partition_point(series.points.begin(), series.points.end(),
                                [&](const wire::ApiPoint& point) { return point.unix_milliseconds < time; });
  };
  // The first slot may begin before the first sample, and after it where that one said nothing.
  const auto first = at_or_after(known->second.first - slot_milliseconds_);
  const auto open = std::max(first, at_or_after(known->second.closed));
  own_.too_early += static_cast<std::uint64_t>(first - series.points.begin());
  own_.already += static_cast<std::uint64_t>(open - first);
  return {open, series.points.end()};
}

base::Status ImportFeed::feed(std::vector<FeedSeries> series, units::Window window) {
  std::erase_if(series, [&](FeedSeries& one) {
    if (!wants(name_of(one))) return true;
    const auto before = [](std::int64_t time) {
      return [time](const wire::ApiPoint& point) { return point.unix_milliseconds < time; };
    };
    const auto begin = std::partition_point(one.points.begin(), one.points.end(), before(window.start.unix_milliseconds));
    one.points = {begin, std::partition_point(begin, one.points.end(), before(window.end.unix_milliseconds))};
    if (!one.points.empty()) one.points = not_closed_yet(one);
    return one.points.empty();
  });
  // A GPU's first sample must be the earliest of it: the fleet begins there.
  std::stable_sort(series.begin(), series.end(), [](const FeedSeries& a, const FeedSeries& b) {
    return a.points.front().unix_milliseconds < b.points.front().unix_milliseconds;
  });
  std::vector<wire::RemoteWriteSeriesOut> message;
  std::size_t samples = 0;
  for (const FeedSeries& one : series) {
    message.push_back(message_series(one));
    samples += one.points.size();
    if (samples < kSamplesPerMessage) continue;
    FLOPSIGHT_RETURN_IF_ERROR(send(message));
    message.clear();
    samples = 0;
  }
  return message.empty() ? base::Status() : send(message);
}

base::Status ImportFeed::send(std::span<const wire::RemoteWriteSeriesOut> message) {
  const std::string body =
      wire::snappy_compress(wire::encode_remote_write(wire::RemoteWriteVersion::kV1, message));
  const WriteAnswer answer = ingest_.remote_write(wire::RemoteWriteVersion::kV1, body, now_);
  // 400 names samples that were not taken; they are in the counters.
  if (answer.status >= 400 && answer.status != 400) {
    return base::Error{base::ErrorCode::kIo, "not taken: " + base::printable(answer.text, 500)};
  }
  for (const wire::RemoteWriteSeriesOut& series : message) unclosed_ += series.samples.size();
  return {};
}

base::Status ImportFeed::close_some() {
  if (unclosed_ < kSamplesPerFlush) return {};
  unclosed_ = 0;
  return ingest_.flush(now_);
}

base::Status ImportFeed::finish() { return ingest_.flush(now_, true); }

ImportTotals ImportFeed::totals() const {
  const IngestCounters c = ingest_.counters();
  ImportTotals totals = own_;
  totals.taken = c.samples;
  totals.copies = c.samples_duplicate;
  totals.already += c.samples_too_old;
  totals.no_gpu = c.samples_not_ours;
  totals.unusable = c.samples_over_limit + c.samples_too_new + c.samples_rejected;
  return totals;
}

}  // namespace flopsight::app
