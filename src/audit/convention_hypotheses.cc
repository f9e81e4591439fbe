// Conventions of frameworks as hypotheses: what each leaves out and adds for this run, which adds up to its difference.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "audit/audit.h"
#include "audit/hypothesis.h"
#include "audit/mistakes.h"
#include "base/text.h"
#include "flops/conventions.h"

namespace flopsight::audit {
namespace {

using flops::Convention;
using flops::CountingRules;
using flops::Workload;

constexpr double kSmallestLog = 0.002;   // below it figures are printed alike
constexpr double kSameFigureLog = kDigitsLog;  // of two conventions that are one for this model
constexpr double kToldShare = 0.002;     // of the count: a smaller part is not told
constexpr std::size_t kIdsMax = 3;

// What a formula has beyond rules, by name.
struct Beyond {
  std::string_view convention;
  std::string_view id;
  std::string_view what;
};
constexpr Beyond kBeyond[] = {
    {"litgpt", "attention_counted_twice", "attention charged for frozen and for trained weights"},
    {"hfu_full_recompute", "recompute_counted", "recomputed activations counted: HFU reported as MFU"},
    {"levanter", "other_formula", "operations on the attention's mask counted"},
    {"gpt_neox", "other_formula", "the head charged at three quarters, a layer as that of a GPT"},
};
constexpr Beyond kAnyBeyond = {"", "other_formula", "norms, biases, positions and what else its formula differs in"};

const Beyond& beyond(const Convention& convention) {
  const auto* found = std::find_if(std::begin(kBeyond), std::end(kBeyond), [&](const Beyond& b) { return b.convention == convention.name; });
  return found == std::end(kBeyond) ? kAnyBeyond : *found;
}

struct Part {
  std::string_view id;
  std::string_view what;
  double flops = 0;  // of a token, that the convention adds; negative: that it leaves out
};

// The mistakes that are in the rules, without those that a larger one of them contains.
std::vector<const Mistake*> mistakes_in(const CountingRules& rules) {
  std::vector<const Mistake*> found;
  for (const Mistake& mistake : mistakes()) {
    if (makes(rules, mistake)) found.push_back(&mistake);
  }
  const std::vector<const Mistake*> all = found;
  std::erase_if(found, [&](const Mistake* mistake) {
    return std::any_of(all.begin(), all.end(), [&](const Mistake* other) {
      CountingRules alone, wider;
      mistake->set(alone);
      other->set(wider);
      return !(alone == wider) && makes(wider, *mistake);
    });
  });
  return found;
}

// A window is not ignored of a model that has none: of the variants of a mistake the first that makes the same figure.
const Mistake& plainest(const Mistake& mistake, const CountingRules& before, double figure, const flops::Model& model, const Workload& workload) {
  for (const Mistake& variant : mistakes()) {
    if (variant.id != mistake.id) continue;
    CountingRules rules = before;
    variant.set(rules);
    if (flops::train_cost(model, workload, rules).total() == figure) return variant;
  }
  return mistake;
}

// One after the other, so that they add up.
std::vector<Part> parts_of(const Convention& convention, double figure, const Run& run, double right) {
  std::vector<Part> parts;
  Workload workload = workload_of(run);
  double so_far = right;
  const auto step = [&](std::string_view id, std::string_view what, double now) {
    if (std::abs(now - so_far) >= kToldShare * right) parts.push_back({id, what, now - so_far});
    so_far = now;
  };
  if (flops::takes_for_one_document(convention, run.model, workload)) {
    workload.sequence.documents.clear();
    step("packing_ignored", "packed documents charged as one sequence", flops::train_cost(run.model, workload).total());
  }
  if (workload.prediction_steps > 0 && flops::convention_cost(convention, run.model, {workload.sequence, 0}).flops_train == figure) {
    workload.prediction_steps = 0;
    step("mtp_ignored", "multi-token prediction left out", flops::train_cost(run.model, workload).total());
  }
  CountingRules rules;
  for (const Mistake* mistake : mistakes_in(nearest_rules(convention, run.model))) {
    const CountingRules before = rules;
    mistake->set(rules);
    const double now = flops::train_cost(run.model, workload, rules).total();
    step(mistake->id, plainest(*mistake, before, now, run.model, workload).explanation, now);
  }
  const Beyond& rest = beyond(convention);
  step(rest.id, rest.what, figure);
  return parts;
}

// The largest parts, those first that go the way of the whole: leaving a part out raises no count.
std::vector<std::string> ids_of(std::vector<Part> parts, double difference, double right) {
  const auto with = [&](const Part& p) { return (p.flops > 0) == (difference > 0); };
  std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
    return with(a) != with(b) ? with(a) : std::abs(a.flops) > std::abs(b.flops);
  });
  std::vector<std::string> ids;
  for (const Part& part : parts) {
    const bool shows = std::abs(part.flops) >= kPairHalfLog * right;
    if ((shows || ids.empty()) && ids.size() < kIdsMax && std::find(ids.begin(), ids.end(), part.id) == ids.end()) ids.emplace_back(part.id);
  }
  if (ids.empty()) ids.emplace_back(kAnyBeyond.id);
  return ids;
}

std::string explain(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) {
    char signed_giga[32];
    std::snprintf(signed_giga, sizeof signed_giga, " (%+.2f GFLOP a token)", part.flops / 1e9);
    text += (text.empty() ? "" : "; ") + std::string(part.what) + signed_giga;
  }
  return text;
}

struct Figure {
  const Convention* convention = nullptr;
  double flops_per_token = 0;
  std::vector<std::string_view> names;  // of all that have it
};

std::vector<Figure> figures(const Run& run, double right) {
  std::vector<Figure> list;
  for (const Convention& convention : flops::conventions()) {
    if (convention.name.starts_with("audit_")) continue;
    const std::optional<double> figure = flops::convention_cost(convention, run.model, workload_of(run)).flops_train;
    if (!figure || !std::isfinite(*figure) || *figure <= 0 || std::abs(std::log(*figure / right)) < kSmallestLog) continue;
    const auto same = std::find_if(list.begin(), list.end(), [&](const Figure& f) { return std::abs(std::log(f.flops_per_token / *figure)) < kSameFigureLog; });
    if (same == list.end()) {
      list.push_back({&convention, *figure, {convention.name}});
    } else {
      same->names.push_back(convention.name);
    }
  }
  return list;
}

}  // namespace

std::string convention_names(const Hypothesis& hypothesis, std::size_t most) {
  const auto& names = hypothesis.conventions;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + std::string(names[i]);
  }
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

std::vector<Hypothesis> convention_hypotheses(const Run& run) {
  std::vector<Hypothesis> list;
  const double right = flops_per_token(run);
  if (!(right > 0)) return list;
  for (Figure& figure : figures(run, right)) {
    const std::vector<Part> parts = parts_of(*figure.convention, figure.flops_per_token, run, right);
    Hypothesis h;
    h.ids = ids_of(parts, figure.flops_per_token - right, right);
    h.id = base::joined(h.ids, "+");
    h.ratio = figure.flops_per_token / right;
    h.source = figure.convention->source;
    h.conventions = std::move(figure.names);
    h.explanation = "counted as " + convention_names(h, h.conventions.size()) + (h.conventions.size() == 1 ? " does: " : " do: ") + explain(parts);
    list.push_back(std::move(h));
  }
  return list;
}

}  // namespace flopsight::audit
