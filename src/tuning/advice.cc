#include "tuning/advice.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "tuning/advice_internal.h"

namespace flopsight::tuning {
namespace {

// A contradiction is certain only beyond what shares of time are uncertain by.
constexpr double kMarginRatio = 1.2;
// The least that a tensor kernel keeps the tensor pipe busy: what attention kernels on Hopper reach.
constexpr double kTensorBusyLeast = 0.35;

std::optional<std::string> contradiction(const Measured& m, const Advice& advice) {
  if (!advice.gain_ratio || *advice.gain_ratio <= 0) return std::nullopt;
  const double saved = 1 - 1 / (1 + *advice.gain_ratio);
  std::optional<double> most;
  std::string seen;
  switch (advice.saves) {
    case Saves::kCompute:
      if (m.tensor_active_ratio) {
        most = *m.tensor_active_ratio / kTensorBusyLeast;
        seen = "tensor pipes are active " + percent_text(*m.tensor_active_ratio) + " of the time";
      }
      break;
    case Saves::kMemory:
      if (m.tensor_idle_sm_busy_ratio) {
        most = *m.tensor_idle_sm_busy_ratio;
        seen = "SMs are busy without tensor pipes " + percent_text(*m.tensor_idle_sm_busy_ratio) + " of the time";
      }
      break;
    case Saves::kIdle:
      if (m.sm_idle_ratio) {
        most = *m.sm_idle_ratio;
        seen = "SMs are idle " + percent_text(*m.sm_idle_ratio) + " of the time";
      }
      break;
    case Saves::kOther: break;
  }
  if (!most || saved <= *most * kMarginRatio) return std::nullopt;
  return "the counters contradict it: it would save " + percent_text(saved) + " of the time, but " + seen;
}

}  // namespace

std::string_view confidence_name(Confidence confidence) {
  constexpr std::array<std::string_view, 3> kNames = {"low", "medium", "high"};
  return kNames[static_cast<std::size_t>(confidence)];
}

std::string number_text(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string percent_text(double ratio) { return number_text(100 * ratio, "%.1f %%"); }

void advise(const Rules& rules, Advice advice, double gain_ratio) {
  if (!rules.fits()) {
    advice.tokens_per_second.reset();
    rules.out.advice.push_back(std::move(advice));
    return;
  }
  advice.gain_ratio = gain_ratio;
  if (!advice.tokens_per_second) {
    const double now = rules.one.calibration ? rules.one.calibration->seconds(rules.one.step) : rules.one.step.step_seconds();
    advice.tokens_per_second = rules.one.step.tokens_per_second * rules.one.step.step_seconds() / now * (1 + gain_ratio);
  }
  rules.out.advice.push_back(std::move(advice));
}

bool Rules::fits(const TrainSettings& settings) const {
  const Memory memory = train_memory(steps.model(), settings, steps.rates().device());
  return memory.fits().value_or(true) || (fits() && memory.total_bytes() <= one.memory.total_bytes());
}

bool propose(const Rules& rules, const Change& change) {
  const auto step = rules.steps.predict(change.settings);
  if (!step.ok()) return false;
  const bool fits = rules.fits(change.settings);
  const double predicted = step->tokens_per_second / rules.one.step.tokens_per_second;
  double gain = predicted - 1, rate = step->tokens_per_second, seconds = step->step_seconds();
  if (const auto& calibration = rules.one.calibration) {
    const double before = calibration->seconds(rules.one.step);
    seconds = calibration->seconds(*step);
    // Tokens of a step may differ: another global batch.
    const double tokens = predicted * step->step_seconds() / rules.one.step.step_seconds();
    gain = tokens * before / seconds - 1;
    rate = step->tokens_per_second * step->step_seconds() / seconds;
  }
  const bool helps = fits && !rules.fits();
  if ((!fits && !(change.even_if_too_large && !rules.fits())) || (gain < kGainLeastRatio && !helps)) return false;
  Advice advice;
  advice.id = change.id;
  advice.change = change.what;
  if (fits) {
    advice.tokens_per_second = rate;
    advice.step_seconds = seconds;
  }
  advice.confidence = change.confidence;
  const std::string also = change.why.empty() ? std::string() : "; " + change.why;
  advice.why = helps ? "as it is, it does not fit into memory; with this it does" + also : !fits ? "as it is, it does not fit into memory, and with this alone it still does not" + also : change.why;
  advice.goes_first = change.goes_first;
  advice.price = change.price;
  advice.source = change.source;
  advice.saves = helps ? Saves::kOther : change.saves;
  advice.makes_it_fit = helps;
  if (helps) {
    rules.out.advice.push_back(std::move(advice));
  } else {
    advise(rules, std::move(advice), gain);
  }
  return true;
}

Findings advise_training(StepModel& steps, const TrainCase& one) {
  Findings out;
  const Rules rules{steps, one, out};
  using Rule = void (*)(const Rules&);
  constexpr std::array<Rule, 21> kRules = {
      advise_debug_flags, advise_micro_batch, advise_recompute, advise_precision, advise_fused_kernels, advise_attention, advise_optimizer,
      advise_overlap, advise_dispatch, advise_sequence_parallel, advise_alignment, advise_accumulation, advise_layout, advise_placement, advise_algorithm,
      advise_compression, advise_packing, advise_checkpoints, advise_power, advise_input, advise_fit};
  for (const Rule rule : kRules) rule(rules);
  if (one.measured) contradict(*one.measured, out);
  finish(one.usd_per_gpu_hour, one.settings.gpus, out);
  return out;
}

void contradict(const Measured& measured, Findings& findings) {
  std::vector<Advice> kept;
  for (Advice& advice : findings.advice) {
    if (auto why = contradiction(measured, advice)) {
      findings.rejected.push_back({advice.id, advice.change, std::move(*why)});
    } else {
      kept.push_back(std::move(advice));
    }
  }
  findings.advice = std::move(kept);
}

void finish(const std::optional<double>& usd_per_gpu_hour, std::uint64_t gpus, Findings& findings) {
  for (Advice& advice : findings.advice) {
    if (usd_per_gpu_hour && advice.gain_ratio) advice.usd_saved_per_day = *usd_per_gpu_hour * static_cast<double>(gpus) * 24 * (1 - 1 / (1 + *advice.gain_ratio));
  }
  std::stable_sort(findings.advice.begin(), findings.advice.end(), [](const Advice& a, const Advice& b) {
    if (a.goes_first != b.goes_first) return a.goes_first;
    if (a.gain_ratio.has_value() != b.gain_ratio.has_value()) return !a.gain_ratio.has_value();
    if (!a.gain_ratio) return a.tokens_per_second.value_or(0) > b.tokens_per_second.value_or(0);
    return a.gain_ratio.value_or(0) > b.gain_ratio.value_or(0);
  });
}

}  // namespace flopsight::tuning
