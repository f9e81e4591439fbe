#include <algorithm>
#include <cmath>

#include "audit/auditor_internal.h"

namespace flopsight::audit {
namespace {

constexpr std::size_t kPairsKept = 4;
constexpr double kTieSigmas = 0.02;
constexpr double kPartSigmas = 0.25;    // a program that is wrong in one more part has to fit so much better

// Of two of one id the nearer; where both are as near, the one that says who counts so.
bool better(const Hypothesis& a, double a_sigmas, const Ranked& b) {
  const bool alike = std::abs(std::log(a.ratio / b.hypothesis.ratio)) < kDigitsLog;
  if (alike && a.conventions.empty() != b.hypothesis.conventions.empty()) return b.hypothesis.conventions.empty();
  return a_sigmas < b.distance_ratio;
}

std::vector<Ranked> within(const std::vector<Hypothesis>& list, double observed, double sigma, std::string_view evidence) {
  std::vector<Ranked> found;
  for (const Hypothesis& hypothesis : list) {
    const double sigmas = std::abs(std::log(observed / hypothesis.ratio)) / sigma;
    if (!(sigmas <= kKeptSigmas)) continue;
    const auto same = std::find_if(found.begin(), found.end(), [&](const Ranked& r) { return r.hypothesis.id == hypothesis.id; });
    if (same == found.end()) {
      found.push_back({hypothesis, observed, sigmas, evidence, std::nullopt});
    } else if (better(hypothesis, sigmas, *same)) {
      *same = {hypothesis, observed, sigmas, evidence, std::nullopt};
    }
  }
  // Those that are as near as the eye can see stay in the order of the list.
  const auto rounded = [](const Ranked& r) {
    const auto more = static_cast<double>(r.hypothesis.is_one() ? r.hypothesis.ids.size() - 1 : 0);
    return std::llround((r.distance_ratio + more * kPartSigmas) / kTieSigmas);
  };
  std::stable_sort(found.begin(), found.end(), [&](const Ranked& a, const Ranked& b) { return rounded(a) < rounded(b); });
  return found;
}

}  // namespace

void rank(std::vector<Ranked>& kept, const std::vector<Hypothesis>& singles, const std::vector<Hypothesis>& pairs, double observed, double sigma,
          std::string_view evidence) {
  std::vector<Ranked> found = within(singles, observed, sigma, evidence);
  kept.insert(kept.end(), found.begin(), found.end());
  const std::vector<Ranked> alone = found;
  found = within(pairs, observed, sigma, evidence);
  // What one mistake explains needs no second one.
  std::erase_if(found, [&](const Ranked& pair) {
    return std::any_of(alone.begin(), alone.end(), [&](const Ranked& single) {
      const auto& ids = pair.hypothesis.ids;
      if (std::is_permutation(ids.begin(), ids.end(), single.hypothesis.ids.begin(), single.hypothesis.ids.end())) return true;
      return std::find(ids.begin(), ids.end(), single.hypothesis.id) != ids.end();
    });
  });
  if (found.size() > kPairsKept) found.resize(kPairsKept);
  kept.insert(kept.end(), found.begin(), found.end());
}

void rank_figures(std::vector<Ranked>& kept, const std::vector<Hypothesis>& singles, const std::vector<Hypothesis>& pairs, double observed,
                  std::string_view evidence) {
  const std::size_t before = kept.size();
  const auto is_one = [](const Ranked& r) { return r.hypothesis.is_one(); };
  rank(kept, singles, pairs, observed, kLogSigma, evidence);
  if (std::any_of(kept.begin() + static_cast<std::ptrdiff_t>(before), kept.end(), is_one)) return;
  // A program's formula makes its figure or does not; what comes near to it is another one.
  std::vector<Hypothesis> mistakes = singles;
  std::erase_if(mistakes, [](const Hypothesis& h) { return !h.conventions.empty(); });
  // There are so many pairs that one of them comes near to any figure: those that only come near are the last resort.
  rank(kept, mistakes, {}, observed, kConventionSigma, evidence);
  if (kept.size() == before) rank(kept, {}, pairs, observed, kConventionSigma, evidence);
}

std::vector<Hypothesis> peak_pairs(const std::vector<Hypothesis>& peaks, const std::vector<Hypothesis>& flops) {
  std::vector<Hypothesis> list;
  const auto shows = [](const Hypothesis& h) { return std::abs(std::log(h.ratio)) >= kPairHalfLog; };
  for (const Hypothesis& a : flops) {
    for (const Hypothesis& b : peaks) {
      if (!shows(a) || !shows(b)) continue;
      list.push_back({a.id + "+" + b.id, {a.id, b.id}, a.cause, a.ratio * b.ratio, a.explanation + "; and " + b.explanation, a.source});
    }
  }
  return list;
}

}  // namespace flopsight::audit
