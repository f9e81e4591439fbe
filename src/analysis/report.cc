#include "analysis/report.h"

#include "analysis/gpu_rows.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analysis/tally_internal.h"
#include "rollups/screen.h"

namespace flopsight::analysis {
namespace {

using Key = std::vector<std::pair<std::string, std::optional<std::string>>>;

constexpr std::pair<GroupBy, std::string_view> kGroupBys[] = {
    {GroupBy::kJob, "job"},   {GroupBy::kUser, "user"}, {GroupBy::kTeam, "team"},
    {GroupBy::kNamespace, "namespace"}, {GroupBy::kHost, "host"}, {GroupBy::kGpu, "gpu"},
    {GroupBy::kModel, "model"}, {GroupBy::kFamily, "family"}};

std::optional<std::string> known(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

// The key of the group that a portion of a GPU falls into.
Key key_of(GroupBy by, const rollups::GpuTime& gpu, const samples::Holder* holder) {
  const samples::Holder nobody;
  const samples::Holder& h = holder != nullptr ? *holder : nobody;
  switch (by) {
    case GroupBy::kJob:
      return {{"job", known(h.job)}, {"namespace", known(h.name_space)}, {"user", known(h.user)},
              {"team", known(h.team)}};
    case GroupBy::kUser: return {{"user", known(h.user)}};
    case GroupBy::kTeam: return {{"team", known(h.team)}};
    case GroupBy::kNamespace: return {{"namespace", known(h.name_space)}};
    case GroupBy::kHost: return {{"host", known(gpu.gpu.host)}};
    case GroupBy::kGpu:
      return {{"gpu", known(gpu.gpu.uuid.empty() ? rollups::gpu_label(gpu.gpu) : gpu.gpu.uuid)},
              {"mig_instance", known(gpu.gpu.mig_instance)},
              {"host", known(gpu.gpu.host)},
              {"index", known(gpu.gpu.index)}};
    case GroupBy::kModel:
      return {{"model", gpu.device != nullptr ? known(gpu.device->model) : std::nullopt},
              {"model_raw", gpu.device != nullptr ? std::nullopt : known(gpu.gpu.model_raw)}};
    case GroupBy::kFamily: break;  // of all that a job had: Groups
  }
  return {};
}

const FamilyRule kNoRule;

// Groups by their keys. A fleet has tens of thousands of jobs, of which a few are shown: which, is known once all were seen, and only those are
// then added up in full and get a key. Not so of families: a job's is known only once all that it had was seen.
class Groups {
 public:
  Groups(const ReportOptions& options, const ReportBuilder::HolderOf& holder)
      : by_(options.by), top_(options.top), holder_(holder), families_(options.families != nullptr ? *options.families : kNoRule), numbers_(options.group_numbers != nullptr ? *options.group_numbers : own_numbers_) {}
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  void see_family(const rollups::GpuTime& gpu) {
    if (by_ == GroupBy::kFamily) families_.see(gpu, holder_);
  }

  // All, before the first add().
  void see(const rollups::GpuTime& gpu, const std::vector<const rollups::Portion*>& all) {
    if (!chooses()) return;
    for_places(gpu, all, [&](std::size_t place, const std::vector<const rollups::Portion*>& portions) {
      Place& one = places_[place];
      double measured_seconds = 0, delivered_seconds = 0;
      for (const rollups::Portion* portion : portions) {
        measured_seconds += portion->totals.measured_seconds;
        delivered_seconds += portion->totals.delivered_seconds;
      }
      one.measured_seconds += measured_seconds;
      one.delivered_seconds += delivered_seconds;
    });
  }

  void add(const rollups::GpuTime& gpu, const std::vector<const rollups::Portion*>& all, const ClockVariance& variance,
           const Prices& prices) {
    if (chooses() && !chosen_) choose();
    for_places(gpu, all, [&](std::size_t place, const std::vector<const rollups::Portion*>& portions) {
      Place& one = places_[place];
      if (chosen_ && !one.is_shown) return;
      if (one.tally == nullptr) one.tally = std::make_unique<Tally>();
      one.tally->add(gpu, portions, variance, prices, holder_);
    });
  }

  // By what was lost, then by key; at most `top`.
  std::vector<Group> sorted(bool has_times, std::uint64_t& omitted_count) const {
    std::vector<const Place*> order;
    for (const Place& one : places_) {
      if (one.tally != nullptr) order.push_back(&one);
    }
    std::sort(order.begin(), order.end(), [&](const Place* a, const Place* b) {
      return is_before(lost_seconds(a->tally->totals()), *a, lost_seconds(b->tally->totals()), *b);
    });
    if (top_ && order.size() > *top_) order.resize(*top_);
    omitted_count = places_.size() - order.size();
    std::vector<Group> out;
    out.reserve(order.size());
    for (const Place* one : order) {
      const Tally& tally = *one->tally;
      out.push_back({key(*one), tally.summary(has_times), tally.waterfall(), tally.absent_reason(), lost_seconds(tally.totals())});
    }
    return out;
  }

 private:
  struct Place {
    Key key;  // empty where the holder says it
    std::optional<samples::HolderId> holder;
    double measured_seconds = 0, delivered_seconds = 0;  // as seen
    bool is_shown = false;
    std::unique_ptr<Tally> tally;
  };

  static double lost_seconds(const rollups::Totals& totals) { return totals.measured_seconds - totals.delivered_seconds; }
  bool is_before(double a_lost_seconds, const Place& a, double b_lost_seconds, const Place& b) const {
    return a_lost_seconds != b_lost_seconds ? a_lost_seconds > b_lost_seconds : key(a) < key(b);
  }
  const samples::Holder* holder_of(const std::optional<samples::HolderId>& id) const { return id ? &holder_(*id) : nullptr; }
  Key key(const Place& one) const { return is_of_holders(by_) ? key_of(by_, {}, holder_of(one.holder)) : one.key; }

  bool chooses() const { return top_.has_value() && by_ != GroupBy::kFamily; }
  void choose() {
    chosen_ = true;
    std::vector<Place*> order;
    order.reserve(places_.size());
    for (Place& one : places_) order.push_back(&one);
    const std::size_t kept = std::min<std::size_t>(order.size(), *top_);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), [&](const Place* a, const Place* b) {
      return is_before(a->measured_seconds - a->delivered_seconds, *a, b->measured_seconds - b->delivered_seconds, *b);
    });
    for (std::size_t i = 0; i < kept; ++i) order[i]->is_shown = true;
  }

  // `use` of each group that a GPU's portions fall into, with those of them that do.
  template <typename Use>
  void for_places(const rollups::GpuTime& gpu, const std::vector<const rollups::Portion*>& all, Use use) {
    if (all.size() == 1) {
      use(place_of(gpu, *all[0]), all);
      return;
    }
    std::map<std::size_t, std::vector<const rollups::Portion*>> mine;
    for (const rollups::Portion* portion : all) mine[place_of(gpu, *portion)].push_back(portion);
    for (const auto& [place, portions] : mine) use(place, portions);
  }

  std::size_t place_of(const rollups::GpuTime& gpu, const rollups::Portion& portion) {
    if (is_of_holders(by_)) {
      const std::uint32_t number = portion.holder ? numbers_.of(by_, *portion.holder, holder_(*portion.holder)) : GroupNumbers::kNobody;
      if (number >= place_of_number_.size()) place_of_number_.resize(number + std::size_t{1}, kNowhere);
      std::size_t& place = place_of_number_[number];
      if (place == kNowhere) {
        place = places_.size();
        places_.emplace_back().holder = portion.holder;
      }
      return place;
    }
    Key key = by_ != GroupBy::kFamily ? key_of(by_, gpu, nullptr)
                                      : Key{{"family", portion.holder ? known(families_.of(*portion.holder, holder_)) : std::nullopt}};
    text_.clear();
    for (const auto& [name, value] : key) text_.append(value ? *value : "") += '\0';  // no part that is present is empty
    const auto [at, is_new] = place_of_text_.try_emplace(text_, places_.size());
    if (is_new) places_.emplace_back().key = std::move(key);
    return at->second;
  }

  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  GroupBy by_;
  std::optional<std::uint64_t> top_;
  const ReportBuilder::HolderOf& holder_;
  FamilyIndex families_;
  GroupNumbers own_numbers_;
  GroupNumbers& numbers_;
  std::vector<std::size_t> place_of_number_;
  std::unordered_map<std::string, std::size_t> place_of_text_;  // of groups by GPUs
  std::deque<Place> places_;
  bool chosen_ = false;
  std::string text_;
};

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

std::string megahertz_text(double hertz) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f MHz", hertz / 1e6);
  return text;
}

// What a report says that it takes for granted, gathered from one GPU after another.
class Assumptions {
 public:
  void add(const rollups::GpuTime& gpu, const ReportBuilder::HolderOf& holder_of) {
    add_clock(gpu);
    mig_ = mig_ || !gpu.gpu.mig_instance.empty();
    shared_ = shared_ || gpu.holders_at_once_max > 1;
    counters_ = counters_ || gpu.from_cycle_counters;
    std::vector<std::string_view>& mine = mine_;
    mine.clear();
    bool is_told = false;
    for (const rollups::Portion& portion : gpu.portions) {
      if (!portion.holder) continue;
      const std::string& rule = holder_of(*portion.holder).rule;
      is_told = is_told || rule.empty();  // time that was only told of
      if (rule.empty()) continue;
      if (std::find(mine.begin(), mine.end(), rule) == mine.end()) mine.push_back(rule);
    }
    if (mine.empty()) mine.emplace_back(is_told ? "their scheduler alone" : "no job");
    for (const std::string_view rule : mine) {
      if (!gpu.is_many || !gpu.members.empty()) of(rules_, rule).add(gpu);
    }
    if (!gpu.gpu.driver_version.empty()) of(drivers_, gpu.gpu.driver_version).add(gpu);
    both_routes_count_ += gpu.both_routes_count;
    by_counter_ += gpu.counter_route_ratio_sum;
    by_gauge_ += gpu.gauge_route_ratio_sum;
  }

  std::vector<std::string> texts(bool has_times, const std::vector<std::string>& first) const {
    std::vector<std::string> out = first;
    // One line per model and reference clock.
    std::vector<std::string> clocks;
    for (const auto& line : clock_lines_) add_once(clocks, line);
    std::sort(clocks.begin(), clocks.end());
    out.insert(out.end(), clocks.begin(), clocks.end());
    std::string attributed = "GPUs attributed by:";
    for (const auto& [rule, gpus] : rules_) attributed += " " + rule + " " + std::to_string(gpus.count()) + ",";
    if (!rules_.empty()) out.push_back(attributed.substr(0, attributed.size() - 1));
    std::string driver_text = "driver versions:";
    for (const auto& [version, gpus] : drivers_) driver_text += " " + version + " on " + std::to_string(gpus.count()) + " GPUs,";
    if (!drivers_.empty()) out.push_back(driver_text.substr(0, driver_text.size() - 1));
    if (!has_times) {
      out.emplace_back("no times in the input: every ratio is of that instant, hours and dollars are unknown");
    } else {
      out.emplace_back("a sample holds until the next one; after more than 2.5 of its own steps it is a gap, "
                       "which is unmeasured");
    }
    if (mig_) out.emplace_back("a MIG instance of n slices counts as n/7 of a GPU (n/4 on A30 and GB202)");
    if (shared_) out.emplace_back("a GPU shared by n jobs was split into n equal parts; the band says how far "
                                  "that can be wrong");
    if (counters_) out.emplace_back("OFU from cycle counters where both ends of a step have them");
    out.emplace_back("OFU needs no number format; no FLOP rate is shown, as the format is not known");
    return out;
  }

  void compare_routes(samples::QualityLog& quality) const {
    if (both_routes_count_ == 0) return;
    const double n = static_cast<double>(both_routes_count_);
    char text[96];
    std::snprintf(text, sizeof text, "mean OFU %.4f from cycle counters, %.4f from activity times clock",
                  by_counter_ / n, by_gauge_ / n);
    quality.add("counter_route_difference", text, both_routes_count_);
  }

 private:
  // Distinct whole GPUs. There are few of these sets, and a GPU comes as often as it changed hands.
  class GpuSet {
   public:
    void add(const rollups::GpuTime& gpu) {
      if (!gpu.is_many) keys_.insert(counted_gpu_key(gpu.gpu));
      members_.add(gpu.members);
    }
    std::size_t count() const { return keys_.size() + members_.count(); }

   private:
    std::unordered_set<std::string> keys_;
    GpuNumbers members_;
  };
  using Sets = std::map<std::string, GpuSet, std::less<>>;
  static GpuSet& of(Sets& sets, std::string_view key) {
    auto at = sets.find(key);
    if (at == sets.end()) at = sets.emplace(std::string(key), GpuSet()).first;
    return at->second;
  }

  void add_clock(const rollups::GpuTime& gpu) {
    const auto is_measured = [](const rollups::Portion& portion) { return portion.totals.measured_seconds > 0; };
    if (!gpu.reference || std::none_of(gpu.portions.begin(), gpu.portions.end(), is_measured)) return;
    const std::string& model = gpu.device != nullptr ? gpu.device->model : gpu.gpu.model_raw;
    if (!clocks_.emplace(model, gpu.reference->clock.value, gpu.reference->source).second) return;
    clock_lines_.push_back(clock_line(gpu, model));
  }
  static std::string clock_line(const rollups::GpuTime& gpu, const std::string& model) {
    const std::string line = model + ": reference clock " + megahertz_text(gpu.reference->clock.value);
    switch (gpu.reference->source) {
      case model::ReferenceSource::kOverride: return line + ", given by the user";
      case model::ReferenceSource::kCatalogTensorPeak:
        return line + ", at which its tensor peak is quoted (catalogue" +
               std::string(gpu.device->from_user ? " row of the user" : "") + ", confidence " +
               (gpu.device->confidence.empty() ? "not stated" : gpu.device->confidence) + ")";
      case model::ReferenceSource::kScrapedNvmlMax:
        return line + ", the maximum SM clock that was scraped; not verified to be the tensor peak's";
      case model::ReferenceSource::kCatalogNvmlMax:
        return line + ", the catalogue's maximum SM clock; not verified to be the tensor peak's";
    }
    return line;
  }

  bool mig_ = false, shared_ = false, counters_ = false;
  std::set<std::tuple<std::string, double, model::ReferenceSource>> clocks_;
  std::vector<std::string> clock_lines_;
  Sets rules_;
  Sets drivers_;
  std::vector<std::string_view> mine_;  // rules of the GPU at hand
  std::uint64_t both_routes_count_ = 0;
  double by_counter_ = 0, by_gauge_ = 0;
};

std::vector<std::pair<std::string, double>> absent_ratios(const rollups::Totals& totals) {
  std::vector<std::pair<std::string, double>> out;
  for (std::size_t i = 0; i < samples::kAbsentReasonCount; ++i) {
    if (totals.absent_seconds[i] > 1e-9 * totals.allocated_seconds) {
      out.emplace_back(samples::absent_reason_name(static_cast<samples::AbsentReason>(i)),
                       totals.absent_seconds[i] / totals.allocated_seconds);
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace

void Summary::set_tile_overhead(double overhead_ratio, const std::string& source, bool is_measured) {
  tile_overhead_ratio = overhead_ratio;
  tile_overhead_source = source;
  if (!error || !ofu_ratio) return;
  error = model::with_tile(*error, *ofu_ratio, overhead_ratio, is_measured ? model::ErrorBasis::kMeasured : model::ErrorBasis::kAssumed);
}

std::optional<GroupBy> parse_group_by(std::string_view text) {
  for (const auto& [by, name] : kGroupBys) {
    if (name == text) return by;
  }
  return std::nullopt;
}

std::string_view group_by_name(GroupBy by) {
  for (const auto& [value, name] : kGroupBys) {
    if (value == by) return name;
  }
  return "";
}

std::vector<std::string> group_key_names(GroupBy by) {
  if (by == GroupBy::kFamily) return {"family"};
  std::vector<std::string> names;
  for (const auto& part : key_of(by, {}, nullptr)) names.push_back(part.first);
  return names;
}

struct ReportBuilder::State {
  State(HolderOf holder_in, const ReportOptions& options_in, samples::QualityLog& quality_in)
      : holder(std::move(holder_in)), options(options_in), quality(quality_in), groups(options, holder) {}

  void gather(const rollups::GpuTime& gpu) {
    portions.clear();
    for (const rollups::Portion& portion : gpu.portions) portions.push_back(&portion);
  }

  void sum(const rollups::GpuTime& gpu) {
    gather(gpu);
    all.add(gpu, portions, variance, options.prices, holder);
    groups.add(gpu, portions, variance, options.prices);
    if (!options.prices.empty() && !options.prices.by_team() &&
        !options.prices.of(gpu.device != nullptr ? gpu.device->model : "", gpu.gpu.model_raw)) {
      quality.add("price_unknown", gpu.device != nullptr        ? gpu.device->model
                                   : !gpu.gpu.model_raw.empty() ? gpu.gpu.model_raw
                                                                : "no model name: " + rollups::gpu_label(gpu.gpu));
    }
  }

  HolderOf holder;
  const ReportOptions& options;
  samples::QualityLog& quality;
  ClockVariance variance;
  Tally all;
  Groups groups;
  Assumptions assumptions;
  std::vector<GpuRow> rows;
  std::vector<const rollups::Portion*> portions;  // of the GPU at hand
};

ReportBuilder::ReportBuilder(HolderOf holder, const ReportOptions& options, samples::QualityLog& quality)
    : state_(std::make_unique<State>(std::move(holder), options, quality)) {}
ReportBuilder::~ReportBuilder() = default;

void ReportBuilder::see(const rollups::GpuTime& gpu) {
  state_->variance.see(gpu);
  state_->groups.see_family(gpu);
  see_rest(gpu);
}

void ReportBuilder::see_rest(const rollups::GpuTime& rest) {
  state_->gather(rest);
  state_->groups.see(rest, state_->portions);
}

void ReportBuilder::add(const rollups::GpuTime& gpu) {
  state_->sum(gpu);
  state_->assumptions.add(gpu, state_->holder);
  if (!gpu.is_many) state_->rows.push_back(gpu_row(gpu, state_->holder));
}

void ReportBuilder::add_rest(const rollups::GpuTime& rest) { state_->sum(rest); }

Report ReportBuilder::finish(bool has_times, const std::optional<units::Window>& window) {
  State& s = *state_;
  Report report;
  if (has_times) report.window = window;
  report.source = s.options.source;
  if (s.quality.count("simulated") > 0) report.source = "SIMULATED fleet, " + report.source;
  report.by = s.options.by;
  report.fleet = s.all.summary(has_times);
  report.fleet_waterfall = s.all.waterfall();
  report.fleet_absent_ratios = absent_ratios(s.all.totals());
  if (s.all.band_from_limits()) s.quality.add("band_from_clock_limits", "fleet");
  report.groups = s.groups.sorted(has_times, report.groups_omitted_count);
  report.gpus = std::move(s.rows);
  s.assumptions.compare_routes(s.quality);
  report.quality = s.quality.entries();
  report.assumptions = s.assumptions.texts(has_times, s.options.assumptions);
  if (report.by == GroupBy::kFamily) report.assumptions.emplace_back("jobs are of one family whose names differ in numbers, dates and hashes only, and whose user, GPU models and number of GPUs are the same");
  if (report.fleet.ofu_ratio) report.assumptions.emplace_back(cause_rules(report.fleet_waterfall));
  return report;
}

Report build_report(const rollups::Fleet& fleet, const jobs::HolderTable& holders,
                    samples::QualityLog quality, const ReportOptions& options) {
  ReportBuilder builder([&](samples::HolderId id) -> const samples::Holder& { return holders.at(id); }, options, quality);
  for (const rollups::GpuTime& gpu : fleet.gpus) builder.see(gpu);
  for (const rollups::GpuTime& rest : fleet.rests) builder.see_rest(rest);
  for (const rollups::GpuTime& gpu : fleet.gpus) builder.add(gpu);
  for (const rollups::GpuTime& rest : fleet.rests) builder.add_rest(rest);
  return builder.finish(fleet.has_times, fleet.window);
}

void add_told_gpus(Report& report, std::span<const ToldGpus> told) {
  const auto first_keys = [&](const Key& key) {
    // A job's user and team may be known to one of who tell of it, and not to the other.
    const std::size_t count = std::min<std::size_t>(key.size(), report.by == GroupBy::kJob ? 2 : 1);
    return Key(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(count));
  };
  if (!is_of_holders(report.by)) return;
  std::map<Key, std::uint64_t> most;
  for (const ToldGpus& one : told) {
    std::uint64_t& count = most[first_keys(key_of(report.by, {}, &one.holder))];
    count = std::max(count, one.gpu_count);
  }
  for (Group& group : report.groups) {
    const auto at = most.find(first_keys(group.key));
    if (at == most.end() || !group.key.front().second || at->second <= group.summary.gpu_count) continue;
    group.gpu_count_told = at->second;
    group.summary.gpu_count = at->second;
  }
  for (const auto& [key, count] : most) {
    if (count <= report.fleet.gpu_count) continue;
    report.fleet_gpu_count_told = count;
    report.fleet.gpu_count = count;
  }
}

std::pair<std::string, std::string> job_of(const Group& group) {
  std::pair<std::string, std::string> job;
  for (const auto& [name, value] : group.key) {
    if (name == "job") job.first = value.value_or("");
    if (name == "namespace") job.second = value.value_or("");
  }
  return job;
}

}  // namespace flopsight::analysis
