// How many steps of multi-token prediction are trained, where nobody said. Training may leave the modules out or run some of them;
// the claimed FLOPs of a token tell, unless a known mistake without them makes the same figure.
#include <algorithm>
#include <cmath>

#include "audit/auditor_internal.h"

namespace flopsight::audit {
namespace {

constexpr std::uint64_t kStepsTried = 4;  // of a model that has more of them; all are tried besides
constexpr double kAlikeLog = 0.002;       // two readings that figures of a log do not tell apart
constexpr double kExactLog = kKeptSigmas * kLogSigma;

std::string steps_text(std::uint64_t steps) { return std::to_string(steps) + " step" + (steps == 1 ? "" : "s") + " of multi-token prediction"; }

// Never more than the model can have.
std::vector<std::uint64_t> steps_to_try(std::uint64_t most) {
  std::vector<std::uint64_t> list;
  for (std::uint64_t steps = 0; steps <= std::min(most, kStepsTried); ++steps) list.push_back(steps);
  if (most > kStepsTried) list.push_back(most);
  return list;
}

double nearest_mistake_log(const StepsReading& reading) {
  double nearest = HUGE_VAL;
  for (const Ranked& r : reading.mistakes) nearest = std::min(nearest, std::abs(std::log(r.observed_ratio / r.hypothesis.ratio)));
  return nearest;
}

struct Chosen {
  const StepsReading* reading = nullptr;
  const StepsReading* also_right = nullptr;  // fits as well
};

// What fits exactly before what comes near, and of either the fewest steps: nobody trains modules by default. A known mistake without steps that
// fits as well as steps do, or nearly to its digits where they only come near, leaves it open.
Chosen choose(const std::vector<StepsReading>& readings) {
  const auto first = [&](auto is) -> const StepsReading* {
    const auto found = std::find_if(readings.begin(), readings.end(), is);
    return found == readings.end() ? nullptr : &*found;
  };
  const StepsReading& without = readings.front();
  if (const StepsReading* right = first([](const StepsReading& r) { return r.exactly_right(); })) {
    const bool rival = without.exactly_a_mistake() && nearest_mistake_log(without) <= *right->right_log + kAlikeLog;
    return rival ? Chosen{&without, right} : Chosen{right, nullptr};
  }
  if (nearest_mistake_log(without) <= kDigitsLog) return {&without, nullptr};
  if (const StepsReading* near = first([](const StepsReading& r) { return r.right_log.has_value(); })) {
    return without.exactly_a_mistake() ? Chosen{&without, near} : Chosen{near, nullptr};
  }
  if (const StepsReading* mistake = first([](const StepsReading& r) { return r.exactly_a_mistake(); })) return {mistake, nullptr};
  const auto nearer = [](const StepsReading& a, const StepsReading& b) { return nearest_mistake_log(a) < nearest_mistake_log(b); };
  return {&*std::min_element(readings.begin(), readings.end(), nearer), nullptr};
}

}  // namespace

bool StepsReading::exactly_right() const { return right_log && *right_log <= kExactLog; }
bool StepsReading::exactly_a_mistake() const { return nearest_mistake_log(*this) <= kExactLog; }

StepsReading Auditor::read_with_steps(std::uint64_t steps, double claimed_flops_per_token, std::optional<double> reference_peak) {
  run.prediction_steps = steps;
  StepsReading reading{steps, audit::flops_per_token(run), std::nullopt, {}};
  const double ratio = claimed_flops_per_token / reading.flops_per_token;
  if (std::abs(std::log(ratio)) > kLogAgrees) {
    if (reference_peak) {
      explain_mfu(ratio, *reference_peak, reading.mistakes);
    } else {
      explain_flops(ratio, reading.mistakes);
    }
    std::erase_if(reading.mistakes, [](const Ranked& r) { return !r.hypothesis.is_one(); });
    return reading;
  }
  // Frameworks leave out a router or count s/2 keys: their figure is right as well.
  reading.right_log = std::abs(std::log(ratio));
  std::vector<Hypothesis> near = flops_hypotheses(run);
  const std::vector<Hypothesis> conventions = convention_hypotheses(run);
  near.insert(near.end(), conventions.begin(), conventions.end());
  for (const Hypothesis& h : near) {
    if (std::abs(std::log(h.ratio)) <= kLogAgrees) reading.right_log = std::min(*reading.right_log, std::abs(std::log(ratio / h.ratio)));
  }
  return reading;
}

std::vector<StepsReading> Auditor::readings_of_steps() {
  std::vector<StepsReading> readings;
  if (!run.sequence_tokens || !claim.tokens_per_second_per_gpu || *claim.tokens_per_second_per_gpu <= 0) return readings;
  const std::vector<std::uint64_t> list = steps_to_try(run.model.prediction_steps_max);
  if (out.flops_per_token_claimed) {
    for (const std::uint64_t steps : list) readings.push_back(read_with_steps(steps, *out.flops_per_token_claimed, std::nullopt));
    return readings;
  }
  if (claim.mfu_ratio.value_or(0) <= 0) return readings;
  for (const double reference : possible_references()) {
    readings.clear();
    const double claimed = *claim.mfu_ratio * reference / *claim.tokens_per_second_per_gpu;
    for (const std::uint64_t steps : list) readings.push_back(read_with_steps(steps, claimed, reference));
    if (std::any_of(readings.begin(), readings.end(), [](const StepsReading& r) { return r.right_log.has_value(); })) break;
  }
  return readings;
}

void Auditor::choose_prediction_steps() {
  if (run.prediction_steps || run.model.prediction_steps == 0) return;
  const std::vector<StepsReading> readings = readings_of_steps();
  Chosen chosen;
  if (!readings.empty()) chosen = choose(readings);
  run.prediction_steps = chosen.reading != nullptr ? chosen.reading->steps : 0;
  if (chosen.also_right != nullptr) right_with_steps = chosen.also_right->steps;
  // Told beside the mistakes that explain the rest with the chosen number: their ratios to its count.
  for (const StepsReading& reading : readings) {
    if (chosen.reading->right_log || &reading == chosen.reading) continue;
    if (reading.right_log && &reading != chosen.also_right) {
      out.notes.push_back("with " + steps_text(reading.steps) + " trained the claim would be right within 3 %, if not to its digits; --mtp says so");
    }
    for (Ranked ranked : reading.mistakes) {
      const double scale = reading.flops_per_token / chosen.reading->flops_per_token;
      ranked.hypothesis.ratio *= scale;
      ranked.observed_ratio *= scale;
      ranked.hypothesis.explanation += " (with " + steps_text(reading.steps) + ")";
      other_steps.push_back(std::move(ranked));
    }
  }
  if (right_with_steps) {
    out.assumptions.push_back("multi-token prediction: with " + steps_text(*right_with_steps) + " the claim is right, with " + std::to_string(*run.prediction_steps) +
                              " a known mistake makes the same figure; --mtp says which");
  } else if (*run.prediction_steps > 0) {
    out.assumptions.push_back(steps_text(*run.prediction_steps) + (*run.prediction_steps > 1 ? " are" : " is") + " trained: the claim fits that best; --mtp says otherwise");
  } else {
    out.assumptions.emplace_back("multi-token prediction is not trained; --mtp says otherwise");
  }
}

}  // namespace flopsight::audit
