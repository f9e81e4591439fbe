#include "analysis/waste.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>

#include "analysis/waterfall.h"
#include "base/text.h"

namespace flopsight::analysis {
namespace {

using samples::HolderId;
using samples::Holder;

constexpr std::pair<WasteBy, std::string_view> kBys[] = {
    {WasteBy::kJob, "job"},   {WasteBy::kUser, "user"},     {WasteBy::kTeam, "team"}, {WasteBy::kNamespace, "namespace"},
    {WasteBy::kModel, "model"}, {WasteBy::kFamily, "family"}};

struct PartInfo {
  std::string_view name, meaning;
};
constexpr PartInfo kParts[kWastePartCount] = {
    {"delivered", "delivered"},
    {"clock_power_cap", "clock: power cap"},
    {"clock_thermal", "clock: heat"},
    {"clock_setting", "clock: setting"},
    {"clock_unexplained", "clock: unexplained"},
    {"clock_gain", "clock: gained above the reference"},
    {"memory_bound", "SMs busy, bound by memory"},
    {"other_kernels", "SMs busy without tensor work"},
    {"sm_busy_unsplit", "SMs busy without tensor work, not split"},
    {"stalled", "stalled or not running"},
    {"communication", "waiting on communication"},
    {"host", "waiting on host or input"},
    {"small_kernels", "kernels that fill only some SMs"},
    {"sm_idle_unsplit", "SMs idle, not split"},
    {"tensor_idle_unsplit", "tensor pipe idle, SM activity not known"},
    {"unmeasured", "unmeasured"},
};

// A run counts as the best of its family once it was seen for a quarter of an hour on each of its GPUs.
constexpr double kBestSecondsMin = 900;

WasteAmounts hours_of(const rollups::Totals& totals) {
  const Waterfall w = waterfall_of(totals);
  WasteAmounts out;
  const double hours = totals.allocated_seconds / 3600;
  const auto set = [&](WastePart part, double ratio) { out.parts[static_cast<std::size_t>(part)] = ratio * hours; };
  set(WastePart::kDelivered, w.ofu_ratio.value_or(0));
  if (w.clock) {
    set(WastePart::kClockPowerCap, w.clock->power_cap_ratio);
    set(WastePart::kClockThermal, w.clock->thermal_ratio);
    set(WastePart::kClockSetting, w.clock->setting_ratio);
    set(WastePart::kClockUnexplained, w.clock->unexplained_ratio);
    set(WastePart::kClockGain, w.clock->gain_ratio);
  }
  if (w.sm_busy) {
    set(WastePart::kMemoryBound, w.sm_busy->memory_bound_ratio);
    set(WastePart::kOtherKernels, w.sm_busy->other_kernels_ratio);
    set(WastePart::kSmBusyUnsplit, w.sm_busy->unsplit_ratio);
  }
  if (w.sm_idle) {
    set(WastePart::kStalled, w.sm_idle->stalled_ratio);
    set(WastePart::kCommunication, w.sm_idle->communication_ratio);
    set(WastePart::kHost, w.sm_idle->host_ratio);
    set(WastePart::kSmallKernels, w.sm_idle->small_kernels_ratio);
    set(WastePart::kSmIdleUnsplit, w.sm_idle->unsplit_ratio);
  }
  set(WastePart::kTensorIdleUnsplit, w.tensor_idle_unsplit_ratio.value_or(0));
  set(WastePart::kUnmeasured, totals.allocated_seconds > 0 ? w.unmeasured_ratio : 0);
  return out;
}

std::string ratio_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ratio);
  return text;
}

std::optional<std::string> text_or_none(const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }

constexpr std::size_t kUnpricedMax = 8;  // models that are named

// A row while it is added up.
struct Sum {
  WasteRow row;
  std::uint64_t holder_count = 0;
  std::optional<HolderId> last_holder;  // what one holder had follows each other
  std::set<std::string> references;     // two at most: more are not told apart
  bool price_unknown = false;
  std::set<std::string> unpriced_models;
  double measured_seconds = 0, delivered_seconds = 0;
};

// The best run of each family, and how many it has.
struct Family {
  std::size_t runs = 0;
  double best_ofu_ratio = 0;
  std::string best_job;
};

}  // namespace

std::optional<WasteBy> parse_waste_by(std::string_view text) {
  for (const auto& [by, name] : kBys) {
    if (name == text) return by;
  }
  return std::nullopt;
}

std::string_view waste_by_name(WasteBy by) {
  for (const auto& [value, name] : kBys) {
    if (value == by) return name;
  }
  return "";
}

std::string_view waste_part_name(WastePart part) { return kParts[static_cast<std::size_t>(part)].name; }
std::string_view waste_part_meaning(WastePart part) { return kParts[static_cast<std::size_t>(part)].meaning; }

double WasteAmounts::allocated() const {
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

double WasteAmounts::lost() const { return allocated() - of(WastePart::kDelivered) - of(WastePart::kUnmeasured); }

void WasteAmounts::add(const WasteAmounts& other, double weight) {
  for (std::size_t i = 0; i < kWastePartCount; ++i) parts[i] += weight * other.parts[i];
}

base::Result<ModelTable> parse_targets(std::string_view text) {
  return ModelTable::parse(text, {"attainable_ofu_ratio", 0, 1, "an attainable OFU as a ratio, 0 to 1"});
}

void WasteBuilder::add(const rollups::GpuTime& gpu) {
  const std::string& model = gpu.device != nullptr ? gpu.device->model : gpu.gpu.model_raw;
  for (const rollups::Portion& portion : gpu.portions) {
    const std::int64_t holder = portion.holder ? std::int64_t{*portion.holder} : -1;
    // Mostly in this order already, a job after another.
    HeldOfModel& held = held_.try_emplace(held_.end(), {holder, model})->second;
    if (held.gpu_count == 0) {
      held.holder = portion.holder;
      held.model = gpu.device != nullptr ? gpu.device->model : std::string();
      held.model_raw = gpu.gpu.model_raw;
    }
    held.totals.merge(portion.totals);
    held.gpu_count += gpu.is_many ? gpu.members.size() : 1;
  }
}

namespace {

using RowKey = std::vector<std::pair<std::string, std::optional<std::string>>>;

// What is known of each holder over all models, for its family.
struct Run {
  FamilyFacts facts;
  std::string family;
  double measured_seconds = 0, delivered_seconds = 0;
};

struct Reference {
  double ratio = 0;
  const Family* family = nullptr;  // null: a target

  std::string said() const {
    return family == nullptr ? "target " + ratio_text(ratio) : "best of its family: " + ratio_text(ratio) + ", " + family->best_job;
  }
};

class Accounting {
 public:
  Accounting(const WasteHeld& held, const WasteBuilder::HolderOf& holder, const WasteOptions& options)
      : held_(held), holder_(holder), options_(options) {}

  WasteAccount run(const std::optional<units::Window>& window) {
    find_runs();
    auto run = runs_.begin();
    for (const auto& [key, held] : held_) {
      while (run->first != key.first) ++run;
      add(run->second, key.second, held);
    }
    WasteAccount account;
    account.by = options_.by;
    account.window = window;
    account.source = options_.source;
    for (auto& [name, sum] : rows_) {
      finish(sum);
      account.rows.push_back(std::move(sum.row));
    }
    finish(total_);
    account.total = std::move(total_.row);
    std::stable_sort(account.rows.begin(), account.rows.end(), [](const WasteRow& a, const WasteRow& b) {
      return std::pair(order_of(a), a.gpu_hours.lost()) > std::pair(order_of(b), b.gpu_hours.lost());
    });
    if (options_.top && account.rows.size() > *options_.top) {
      account.rows_omitted_count = account.rows.size() - *options_.top;
      account.rows.resize(*options_.top);
    }
    say(account.assumptions);
    return account;
  }

 private:
  void find_runs() {
    for (const auto& [key, held] : held_) {
      if (runs_.empty() || runs_.back().first != key.first) runs_.push_back({key.first, {}});
      Run& run = runs_.back().second;
      run.measured_seconds += held.totals.measured_seconds;
      run.delivered_seconds += held.totals.delivered_seconds;
      run.facts.gpu_count += held.gpu_count;
      run.facts.models.push_back(key.second);
    }
    if (options_.families == nullptr) return;
    for (auto& [key, run] : runs_) {
      if (key < 0) continue;
      const Holder& holder = holder_(static_cast<HolderId>(key));
      run.facts.name = holder.job;
      run.facts.user = holder.user;
      run.family = options_.families->family_of(run.facts);
      if (!run.family.empty()) see_run(families_[run.family], run, holder.job);
    }
  }

  static void see_run(Family& family, const Run& run, const std::string& job) {
    ++family.runs;
    if (run.measured_seconds < kBestSecondsMin * static_cast<double>(run.facts.gpu_count)) return;
    const double ofu_ratio = run.delivered_seconds / run.measured_seconds;
    if (ofu_ratio <= family.best_ofu_ratio) return;
    family.best_ofu_ratio = ofu_ratio;
    family.best_job = job;
  }

  RowKey key_of(const Holder& holder, const std::string& model, const std::string& family) const {
    switch (options_.by) {
      case WasteBy::kJob: return {{"job", text_or_none(holder.job)}, {"namespace", text_or_none(holder.name_space)}};
      case WasteBy::kUser: return {{"user", text_or_none(holder.user)}};
      case WasteBy::kTeam: return {{"team", text_or_none(holder.team)}};
      case WasteBy::kNamespace: return {{"namespace", text_or_none(holder.name_space)}};
      case WasteBy::kModel: return {{"model", text_or_none(model)}};
      case WasteBy::kFamily: return {{"family", text_or_none(family)}};
    }
    return {};
  }

  std::optional<Reference> reference_of(const HeldOfModel& held, const Holder& holder, const std::string& family) const {
    if (const auto target = options_.targets.of(held.model, held.model_raw, holder.team)) {
      return Reference{*target, nullptr};
    }
    const auto at = families_.find(family);
    if (family.empty() || at == families_.end() || at->second.runs < 2 || at->second.best_ofu_ratio <= 0) return std::nullopt;
    return Reference{at->second.best_ofu_ratio, &at->second};
  }

  void add(const Run& run, const std::string& model, const HeldOfModel& held) {
    static const Holder kNobody;
    const Holder& holder = held.holder ? holder_(*held.holder) : kNobody;
    const std::string& family = run.family;
    RowKey name = key_of(holder, model, family);
    Sum& sum = rows_[name];
    if (sum.row.key.empty()) sum.row.key = std::move(name);
    if (options_.by == WasteBy::kJob) sum.row.user = holder.user;
    const WasteAmounts hours = hours_of(held.totals);
    const auto price = options_.prices.of(held.model, held.model_raw, holder.team);
    if (price) say_price(model, *price, holder.team, options_.prices.of(held.model, held.model_raw));
    const auto reference = reference_of(held, holder, family);
    for (Sum* into : {&sum, &total_}) {
      into->row.gpu_hours.add(hours, 1);
      if (!into->row.usd) into->row.usd = WasteAmounts{};
      if (price) into->row.usd->add(hours, price->value);
      if (!price && held.totals.allocated_seconds > 0) {
        into->price_unknown = true;
        if (into->unpriced_models.size() < kUnpricedMax) into->unpriced_models.insert(model.empty() ? held.model_raw : model);
      }
      if (held.holder && into->last_holder != held.holder) ++into->holder_count;
      if (held.holder) into->last_holder = held.holder;
      into->measured_seconds += held.totals.measured_seconds;
      into->delivered_seconds += held.totals.delivered_seconds;
      if (reference && held.totals.measured_seconds > 0) add_attainable(*into, *reference, held.totals, price);
    }
  }

  static void add_attainable(Sum& sum, const Reference& reference, const rollups::Totals& totals,
                             const std::optional<units::UsdPerGpuHour>& price) {
    if (!sum.row.attainable) sum.row.attainable = Attainable{0, 0.0, 0, ""};
    Attainable& attainable = *sum.row.attainable;
    const double lost_hours = std::max(0.0, reference.ratio * totals.measured_seconds - totals.delivered_seconds) / 3600;
    attainable.gpu_hours_lost += lost_hours;
    attainable.gpu_hours_measured += totals.measured_seconds / 3600;
    if (price) *attainable.usd_lost += lost_hours * price->value;
    if (sum.references.size() < 2) sum.references.insert(reference.said());
  }

  static std::string unpriced_text(const Sum& sum) {
    std::string out;
    for (const std::string& model : sum.unpriced_models) out += (out.empty() ? "" : ", ") + (model.empty() ? std::string("GPUs that name no model") : base::printable(model, 80));
    return sum.unpriced_models.size() == kUnpricedMax ? out + " and perhaps others" : out;
  }

  static void finish(Sum& sum) {
    WasteRow& row = sum.row;
    row.job_count = sum.holder_count;
    if (sum.price_unknown) {
      row.usd.reset();
      row.usd_absent_reason = "no price for " + unpriced_text(sum);
    }
    if (sum.measured_seconds > 0) row.ofu_ratio = sum.delivered_seconds / sum.measured_seconds;
    if (!row.attainable) {
      row.attainable_absent_reason = sum.measured_seconds > 0 ? "no target, and no other run of its family" : "nothing was measured";
      return;
    }
    if (sum.price_unknown) row.attainable->usd_lost.reset();
    row.attainable->reference = sum.references.size() == 1 ? *sum.references.begin() : "targets and bests of families";
  }

  static double order_of(const WasteRow& row) {
    if (!row.attainable) return -1;
    return row.attainable->usd_lost.value_or(row.attainable->gpu_hours_lost);
  }

  void say_price(const std::string& model, units::UsdPerGpuHour price, const std::string& team,
                 const std::optional<units::UsdPerGpuHour>& of_anybody) {
    const bool own = !of_anybody || of_anybody->value != price.value;
    const std::tuple<std::string_view, std::string_view, double> said{model, own ? std::string_view(team) : std::string_view(), price.value};
    if (said == last_price_) return;
    last_price_ = said;  // of what is held, which outlives this
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", price.value);
    price_lines_.insert("price of " + model + (own ? " for team " + team : "") + ": " + text + " US dollars per GPU-hour");
  }

  void say(std::vector<std::string>& lines) const {
    constexpr std::size_t kPriceLinesMax = 20;
    lines = options_.assumptions;
    lines.emplace_back("lost is against the tensor peak, which no program reaches: it is not what could be saved");
    lines.emplace_back(options_.targets.empty()
                           ? "attainable: the best run of a job's family in the window, seen for 15 minutes, where it has another run; no target is set"
                           : "attainable: the target that is set for the GPU model; without one, the best run of a job's family in the window");
    std::size_t said = 0;
    for (const std::string& line : price_lines_) {
      if (said++ < kPriceLinesMax) lines.push_back(line);
    }
    if (price_lines_.empty()) lines.emplace_back("no prices: no dollars");
    rollups::Totals all;
    for (const auto& [key, held] : held_) all.merge(held.totals);
    lines.emplace_back(cause_rules(waterfall_of(all)));
  }

  const WasteHeld& held_;
  const WasteBuilder::HolderOf& holder_;
  const WasteOptions& options_;
  std::vector<std::pair<std::int64_t, Run>> runs_;  // as held_, by holder
  std::map<std::string, Family> families_;
  std::map<RowKey, Sum> rows_;
  Sum total_;
  std::set<std::string> price_lines_;
  std::tuple<std::string_view, std::string_view, double> last_price_;
};

}  // namespace

WasteAccount WasteBuilder::finish(const std::optional<units::Window>& window) const {
  return Accounting(held_, holder_, options_).run(window);
}

}  // namespace flopsight::analysis
