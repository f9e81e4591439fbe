#include "serve/ingest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "base/hash_numbers.h"
#include "base/text.h"
#include "serve/logged_lines.h"
#include "wire/snappy.h"

namespace flopsight::app {
namespace {

using live::AddResult;

// A target's label blocks are forgotten after so many, so that churn does not grow it for ever.
constexpr std::uint32_t kTargetLabelSetsMax = 200'000;
// Label sets and jobs without a sample for one to two of these are forgotten.
constexpr double kForgetSeconds = 3600;
constexpr std::size_t kRefusalTextMax = 2'000;
// What was taken in is read again, whatever the limits are now.
constexpr std::size_t kLoggedBytesMax = std::size_t{2} << 30;

std::string_view reason_of(AddResult result) {
  switch (result) {
    case AddResult::kTooOld: return "the sample is older than what is closed already";
    case AddResult::kTooNew: return "the sample's time is too far in the future";
    case AddResult::kLimit: return "a limit on GPUs or label sets is reached";
    default: return "";
  }
}

// A target's name and labels are lines of a record.
std::string without_line_ends(std::string_view text) {
  std::string out(text);
  std::replace_if(out.begin(), out.end(), [](char c) { return c == '\n' || c == '\x1f'; }, ' ');
  return out;
}

}  // namespace

struct Ingest::Names {
  MetricNames metrics;
  base::HashNumbers label_sets;

  explicit Names(const training_logs::ExportedMetrics& reported) : metrics(reported) {}
};

// A scraped target: its parser remembers label blocks, and we what they mean.
struct Ingest::Target {
  wire::ExpositionParser parser;
  std::string head;  // its name and labels, which the sets below are bound with
  std::vector<std::optional<live::LabelSetId>> sets;  // by id of the parser's label set
  units::Instant scraped;
};

class Ingest::RemoteWriteSink : public wire::RemoteWriteSink {
 public:
  RemoteWriteSink(Ingest& ingest, units::Instant now, std::uint32_t segment, WriteAnswer& answer)
      : ingest_(ingest), now_(now), segment_(segment), answer_(answer) {}

  bool wants(std::string_view metric) override {
    use_ = ingest_.names_->metrics.use_of(metric);
    return use_.wanted();
  }

  bool knows(const wire::LabelsKey& key) override {
    const auto set = ingest_.names_->label_sets.find({key.low, key.high});
    known_ = set.has_value();
    if (known_) {
      known_set_ = *set;
      known_key_ = key;
    }
    return known_;
  }

  void series(wire::RemoteWriteSeries& series) override {
    if (series.samples().empty()) return;
    if (use_.is_beside()) {
      learn_beside(series);
      return;
    }
    const wire::LabelsKey key = series.labels_key();
    std::optional<live::LabelSetId> set;
    if ((known_ && known_key_ == key) || knows(key)) {
      set = known_set_;
    } else {
      set = ingest_.label_set(key, series.labels(), "");
    }
    for (const wire::RemoteWriteSample& sample : series.samples()) {
      const AddResult result =
          set ? ingest_.fleet_->add(*set, use_.metric, series.metric(), units::Instant{sample.timestamp_milliseconds},
                                    sample.value, now_, segment_)
              : AddResult::kLimit;
      ingest_.count(result);
      if (result == AddResult::kKept || result == AddResult::kDuplicate) ++answer_.samples;
      newest_ = std::max(newest_, result == AddResult::kKept ? sample.timestamp_milliseconds : 0);
      puts_off_ = puts_off_ || result == AddResult::kRowsFull;
      if (const std::string_view why = reason_of(result); !why.empty()) {
        refuse(std::string(series.metric()) + first_label(series), why);
      }
    }
  }

  void rejected(std::string_view series, std::string_view reason) override {
    ++ingest_.counters_.samples_rejected;
    refuse(std::string(series), reason);
  }

  std::int64_t newest() const { return newest_; }
  bool puts_off() const { return puts_off_; }

 private:
  void learn_beside(wire::RemoteWriteSeries& series) {
    labels_.clear();
    for (const wire::Label& label : series.labels()) labels_.push_back({label.name, label.value});
    answer_.samples += series.samples().size();
    if (use_.is_owner) ingest_.learn_owner(series.metric(), labels_, series.samples().back().value, series.samples().size());
    if (!use_.is_reported) return;
    for (const wire::RemoteWriteSample& sample : series.samples()) {
      ingest_.learn_reported(series.metric(), labels_, {{sample.timestamp_milliseconds}, sample.value}, now_, segment_);
    }
  }
  static std::string first_label(wire::RemoteWriteSeries& series) {
    for (const wire::Label& label : series.labels()) {
      if (label.name == "UUID" || label.name == "gpu") {
        return "{" + std::string(label.name) + "=\"" + std::string(base::printable(label.value, 80)) + "\"}";
      }
    }
    return "";
  }
  // The first refusal in full; the others as a number.
  void refuse(const std::string& series, std::string_view why) {
    answer_.status = 400;
    if (refused_++ == 0) first_ = std::string(base::printable(series, 300)) + ": " + std::string(why);
    answer_.text = first_ + (refused_ > 1 ? " (and " + std::to_string(refused_ - 1) + " more)" : "");
  }

  Ingest& ingest_;
  units::Instant now_;
  std::uint32_t segment_;
  WriteAnswer& answer_;
  MetricNames::Use use_;
  std::vector<jobs::LabelView> labels_;
  bool known_ = false;
  live::LabelSetId known_set_ = 0;
  wire::LabelsKey known_key_;
  std::uint64_t refused_ = 0;
  std::string first_;
  std::int64_t newest_ = 0;
  bool puts_off_ = false;
};

class Ingest::ScrapeSink : public wire::ExpositionSink {
 public:
  ScrapeSink(Ingest& ingest, Target& target, std::string_view scope, std::span<const wire::Label> labels,
             units::Instant now, std::uint32_t segment)
      : ingest_(ingest), target_(target), scope_(scope), labels_(labels), now_(now), segment_(segment) {}

  void sample(const wire::ExpositionSample& sample) override {
    const MetricNames::Use use = ingest_.names_->metrics.use_of(sample.metric);
    if (!use.wanted()) {
      ++ingest_.counters_.samples_unwanted;
      return;
    }
    const units::Instant time{sample.timestamp_milliseconds.value_or(now_.unix_milliseconds)};
    if (use.is_beside()) {
      const std::vector<jobs::LabelView> labels = all_labels(*sample.labels);
      if (use.is_owner) ingest_.learn_owner(sample.metric, labels, sample.value, 1);
      if (use.is_reported) ingest_.learn_reported(sample.metric, labels, {time, sample.value}, now_, segment_);
      return;
    }
    const auto set = set_of(*sample.labels);
    const AddResult result =
        set ? ingest_.fleet_->add(*set, use.metric, sample.metric, time, sample.value, now_, segment_) : AddResult::kLimit;
    ingest_.count(result);
    if (result == AddResult::kKept) ingest_.newest_sample_ = std::max(ingest_.newest_sample_, time);
  }
  void malformed(const wire::ExpositionError& error) override {
    ++ingest_.counters_.malformed_lines;
    ingest_.quality_.add("malformed_line", std::string(scope_) + " line " + std::to_string(error.line) +
                                               ": expected " + error.expected);
  }

 private:
  // Its own and, where it has none of the name, the target's.
  std::vector<jobs::LabelView> all_labels(const wire::LabelSet& set) const {
    std::vector<jobs::LabelView> all;
    for (const wire::Label& label : set.labels) all.push_back({label.name, label.value});
    for (const wire::Label& label : labels_) {
      const bool has = std::any_of(set.labels.begin(), set.labels.end(),
                                   [&](const wire::Label& own) { return own.name == label.name; });
      if (!has) all.push_back({label.name, label.value});
    }
    return all;
  }
  std::optional<live::LabelSetId> set_of(const wire::LabelSet& set) {
    if (set.kept() && set.id < target_.sets.size() && target_.sets[set.id]) return target_.sets[set.id];
    const auto bound = ingest_.fleet_->bind(all_labels(set), scope_);
    if (set.kept()) {
      if (set.id >= target_.sets.size()) target_.sets.resize(set.id + 1);
      target_.sets[set.id] = bound;
    }
    return bound;
  }

  Ingest& ingest_;
  Target& target_;
  std::string_view scope_;
  std::span<const wire::Label> labels_;
  units::Instant now_;
  std::uint32_t segment_;
};

Ingest::Ingest(IngestOptions options, const jobs::LabelRules& rules)
    : options_(std::move(options)), rules_(rules), logged_lines_(std::make_unique<LoggedLines>(options_.metrics)) {
  options_.live.rests_are_final = options_.engine.has_value();
  owners_.use_names_of(rules);
}
Ingest::~Ingest() = default;

base::Result<std::unique_ptr<Ingest>> Ingest::open(IngestOptions options, const jobs::LabelRules& rules) {
  std::unique_ptr<Ingest> ingest(new Ingest(std::move(options), rules));
  FLOPSIGHT_RETURN_IF_ERROR(ingest->start());
  return ingest;
}

base::Status Ingest::start() {
  FLOPSIGHT_RETURN_IF_ERROR(store::real_disk().make_folder(options_.folder));
  FLOPSIGHT_ASSIGN_OR_RETURN(store::FolderLock lock, store::FolderLock::take(options_.folder));
  lock_.emplace(std::move(lock));
  reserve_.give_back();
  FLOPSIGHT_RETURN_IF_ERROR(open_engine());
  {
    const std::scoped_lock guard(store_mutex_, fleet_mutex_);
    FLOPSIGHT_RETURN_IF_ERROR(recover());
    look_for_room();
  }
  // A full outbox is no reason not to start: it is what has to be emptied.
  const std::scoped_lock guard(store_mutex_);
  static_cast<void>(look_at_outbox());
  return {};
}

void Ingest::make_fleet() {
  fleet_ = std::make_unique<live::LiveFleet>(options_.live, rules_, quality_);
  restore_from_store();
  fleet_->set_jobs(jobs_);
  known_gpus_.clear();
  known_holders_.clear();
  names_ = std::make_unique<Names>(options_.metrics);
  training_logs::ExportedSteps::Options reported;
  reported.slot = options_.live.slot;
  reported.late = options_.live.late;
  reported.idle = options_.live.idle;
  reported.future_max = options_.live.future_max;
  reported_ = training_logs::ExportedSteps(reported);
  targets_.clear();
  latest_gpus_.clear();
  latest_jobs_.clear();
  if (decoder_ == nullptr) {
    std::random_device random;
    const std::uint64_t seed = std::uint64_t{random()} << 32 | random();
    decoder_ = std::make_unique<wire::RemoteWriteDecoder>(seed, options_.remote_write);
  }
}

base::Status Ingest::recover() {
  if (store_ != nullptr) store_->roll_back();
  // If it cannot be opened, questions still go to the one there is.
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<store::Store> opened, open_store());
  store_ = std::move(opened);
  engine_ = options_.engine ? static_cast<engine::EngineStore*>(store_.get()) : nullptr;
  for (std::string& note : store_->take_notes()) notes_.push_back(std::move(note));
  look_at_store();
  make_fleet();
  const std::string log_folder = options_.folder + "/log";
  fleet_->set_replaying(true);
  const IngestCounters before = counters_;
  FLOPSIGHT_ASSIGN_OR_RETURN(
      const store::LogReplay replay,
      store::Log::replay(store::real_disk(), log_folder, store_->log_segment(),
                         [&](std::uint32_t segment, const store::LogRecord& record) {
                           std::string message;
                           if (!wire::snappy_decompress(record.body, kLoggedBytesMax, message).ok()) return;
                           if (record.kind == store::LogKind::kExposition) {
                             apply_scrape(message, record.time, segment);
                             return;
                           }
                           apply_remote_write(record.kind == store::LogKind::kRemoteWrite1 ? wire::RemoteWriteVersion::kV1
                                                                                           : wire::RemoteWriteVersion::kV2,
                                              message, record.time, segment);
                         },
                         // A store that has anything knows where in the log it goes on.
                         !store_->closed_until().empty()));
  fleet_->set_replaying(false);
  counters_ = before;
  for (const std::string& damage : replay.damage) {
    notes_.push_back("lost: " + damage);
    log_unreadable_.add(samples::kNotReadable, "the log");
  }
  for (const std::string& torn : replay.torn) {
    notes_.push_back(torn + " cannot be read: after a crash, what was never acknowledged; otherwise damage");
  }
  if (log_ == nullptr) {
    FLOPSIGHT_ASSIGN_OR_RETURN(log_, store::Log::open(store::real_disk(), log_folder, options_.log, store_->log_segment()));
  }
  needs_recovery_ = false;
  return {};
}

void Ingest::count(AddResult result) {
  switch (result) {
    case AddResult::kKept: ++counters_.samples; return;
    case AddResult::kDuplicate: ++counters_.samples_duplicate; return;
    case AddResult::kNotOurs: ++counters_.samples_not_ours; return;
    case AddResult::kTooOld: ++counters_.samples_too_old; return;
    case AddResult::kTooNew: ++counters_.samples_too_new; return;
    case AddResult::kLimit: ++counters_.samples_over_limit; return;
    case AddResult::kRowsFull: ++counters_.samples_put_off; return;
  }
}

std::optional<live::LabelSetId> Ingest::label_set(const wire::LabelsKey& key, std::span<const wire::Label> labels,
                                                  std::string_view scope) {
  std::vector<jobs::LabelView> views;
  views.reserve(labels.size());
  for (const wire::Label& label : labels) views.push_back({label.name, label.value});
  const auto set = fleet_->bind(views, scope);
  if (set) names_->label_sets.emplace({key.low, key.high}, *set);
  return set;
}

WriteAnswer Ingest::apply_remote_write(wire::RemoteWriteVersion version, std::string_view message,
                                       units::Instant now, std::uint32_t segment) {
  WriteAnswer answer;
  RemoteWriteSink sink(*this, now, segment, answer);
  wire::RemoteWriteTotals totals;
  const base::Status decoded = decoder_->decode(version, message, sink, totals);
  counters_.samples_unwanted += totals.samples_unwanted;
  counters_.histograms += totals.histograms;
  counters_.exemplars += totals.exemplars;
  answer.histograms = totals.histograms;
  answer.exemplars = totals.exemplars;
  newest_sample_.unix_milliseconds = std::max(newest_sample_.unix_milliseconds, sink.newest());
  if (!decoded.ok()) {
    answer.status = 400;
    answer.text = decoded.error().message;
  }
  if (sink.puts_off()) {
    // Told first: what cannot be taken at all is told when the rest has been.
    wants_flush_ = true;
    answer.status = 503;
    answer.retry_after_seconds = 1;
    answer.text = "more samples of a GPU at once than fit between two flushes; try again";
  }
  return answer;
}

WriteAnswer Ingest::remote_write(wire::RemoteWriteVersion version, std::string_view compressed, units::Instant now) {
  const auto refuse = [&](int status, std::string text) {
    WriteAnswer answer;
    answer.status = status;
    answer.text = base::printable(text, kRefusalTextMax);
    return answer;
  };
  // Decompressed before the lock: it needs nothing of the fleet.
  base::SpareBuffers::Buffer buffer(messages_);
  std::string& message = buffer.text();
  if (const base::Status unpacked = wire::snappy_decompress(compressed, options_.decompressed_bytes_max, message);
      !unpacked.ok()) {
    const std::scoped_lock guard(fleet_mutex_);
    ++counters_.requests;
    ++counters_.requests_refused;
    return refuse(unpacked.error().code == base::ErrorCode::kLimit ? 413 : 400, unpacked.error().message);
  }
  WriteAnswer answer;
  store::LogPosition position;
  {
    const std::scoped_lock guard(fleet_mutex_);
    ++counters_.requests;
    if (!closed_for().empty()) {
      ++counters_.requests_unavailable;
      return refuse(503, closed_for());
    }
    const auto appended = log_->append({version == wire::RemoteWriteVersion::kV1 ? store::LogKind::kRemoteWrite1
                                                                                 : store::LogKind::kRemoteWrite2,
                                        now, compressed});
    if (!appended.ok()) {
      ++counters_.requests_unavailable;
      stop_accepting(appended.error());
      return refuse(503, why_not_);
    }
    why_not_.clear();
    position = *appended;
    answer = apply_remote_write(version, message, now, position.segment);
    if (answer.status >= 400) ++(answer.status >= 500 ? counters_.requests_unavailable : counters_.requests_refused);
  }
  if (const base::Status synced = log_->sync(position); !synced.ok()) {
    const std::scoped_lock guard(fleet_mutex_);
    ++counters_.requests_unavailable;
    return refuse(503, synced.error().message);
  }
  return answer;
}

// Body of a log record, before snappy: target, a line of labels (name=value, each ended by 0x1F), a line with the format, the text.
base::Status Ingest::scrape(const std::string& target, std::span<const wire::Label> labels, std::string_view text,
                            std::string_view content_type, units::Instant now) {
  std::string body = without_line_ends(target) + "\n";
  for (const wire::Label& label : labels) {
    body += without_line_ends(label.name) + "=" + without_line_ends(label.value) + '\x1f';
  }
  body += "\n" + std::string(wire::exposition_format(content_type, text) == wire::ExpositionFormat::kOpenMetrics ? "o" : "t") + "\n";
  std::string logged = body;
  logged_lines_->append_wanted(text, logged);
  body += text;
  const std::string compressed = wire::snappy_compress(logged);
  const std::scoped_lock guard(fleet_mutex_);
  if (!closed_for().empty()) return base::Error{base::ErrorCode::kUnavailable, closed_for()};
  const auto appended = log_->append({store::LogKind::kExposition, now, compressed});
  if (!appended.ok()) {
    stop_accepting(appended.error());
    return appended.error();
  }
  why_not_.clear();
  ++counters_.scrapes;
  apply_scrape(body, now, appended->segment);
  return {};
}

void Ingest::apply_scrape(std::string_view body, units::Instant now, std::uint32_t segment) {
  const std::size_t first = body.find('\n');
  const std::size_t second = first == std::string_view::npos ? first : body.find('\n', first + 1);
  if (second == std::string_view::npos || body.size() < second + 3) return;
  const std::string target_name(body.substr(0, first));
  std::vector<wire::Label> labels;
  for (std::string_view rest = body.substr(first + 1, second - first - 1); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\x1f'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos) labels.push_back({pair.substr(0, equals), pair.substr(equals + 1)});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::unique_ptr<Target>& target = targets_[target_name];
  const std::string_view own = body.substr(0, second);
  if (target == nullptr || target->sets.size() > kTargetLabelSetsMax || target->head != own) {
    target = std::make_unique<Target>();
    target->head = own;
    wire::ExpositionParser::Options options;
    options.format = body[second + 1] == 'o' ? wire::ExpositionFormat::kOpenMetrics
                                             : wire::ExpositionFormat::kPrometheusText;
    target->parser = wire::ExpositionParser(options);
  }
  target->scraped = now;
  ScrapeSink sink(*this, *target, target_name, labels, now, segment);
  target->parser.parse(body.substr(second + 3), sink);
}

// Of jobs, pods and targets that are over, so that weeks of them do not grow this process nor reach its limits.
void Ingest::forget_unused(units::Instant now) {
  const double since_seconds = (now - forgot_).value;
  if (since_seconds >= 0 && since_seconds < kForgetSeconds) return;
  forgot_ = now;
  std::vector<live::HolderSetId> restored;
  for (const auto& [key, closed] : restored_) restored.push_back(closed.holders);
  const live::LiveFleet::Forgotten gone = fleet_->forget_unused(restored);
  const auto is_gone = [&](live::LabelSetId set) { return gone.label_sets[set]; };
  names_->label_sets.erase_numbers(is_gone);
  std::erase_if(targets_, [&](const auto& of) { return std::abs((now - of.second->scraped).value) > kForgetSeconds; });
  for (auto& [name, target] : targets_) {
    for (std::optional<live::LabelSetId>& set : target->sets) {
      if (set && is_gone(*set)) set.reset();
    }
  }
  std::erase_if(latest_jobs_, [&](const auto& of) { return gone.holders[of.first]; });
  for (samples::HolderId id = 0; id < known_holders_.size(); ++id) {
    if (gone.holders[id]) known_holders_[id] = {};
  }
  owners_.forget_untold([&](std::string_view name_space, std::string_view pod) { return fleet_->holders().has(name_space, pod); });
}

}  // namespace flopsight::app
