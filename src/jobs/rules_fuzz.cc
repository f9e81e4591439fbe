// Up to the first line feed: a rules file. After it: labels, one "name=value" a line, to which the rules that
// were read (or the built-in ones) are applied.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "jobs/label_rules.h"

namespace {

using flopsight::jobs::LabelRules;
using flopsight::jobs::LabelView;

std::vector<LabelView> labels_of(std::string_view text) {
  std::vector<LabelView> labels;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      labels.push_back({line.substr(0, equals), line.substr(equals + 1)});
    }
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  }
  return labels;
}

void check_rules(const LabelRules& rules, const std::vector<LabelView>& labels) {
  const auto facts = rules.apply(labels);
  // A job comes with the rule that named it; without a job there is no holder at all.
  FLOPSIGHT_CHECK(facts.holder.job.empty() == facts.holder.rule.empty());
  if (facts.holder.unallocated()) {
    FLOPSIGHT_CHECK(facts.holder.name_space.empty() && facts.holder.container.empty());
    FLOPSIGHT_CHECK(facts.holder.user.empty() && facts.holder.team.empty());
  }
  // Values come from the labels, without white space around them.
  for (const std::string* field : {&facts.gpu.uuid, &facts.gpu.mig_instance, &facts.gpu.model_raw,
                                   &facts.holder.user, &facts.holder.team}) {
    FLOPSIGHT_CHECK(flopsight::base::trim(*field) == *field);
  }
  const auto slices = facts.gpu.mig_slices();
  FLOPSIGHT_CHECK(!slices || (*slices >= 1 && *slices <= 8));
  for (const LabelView& label : labels) {
    (void)rules.ignores(label.name, label.value);
    FLOPSIGHT_CHECK(flopsight::jobs::same_host(label.name, label.value) ==
                    flopsight::jobs::same_host(label.value, label.name));
    FLOPSIGHT_CHECK(flopsight::jobs::glob_matches("*", label.value));
    (void)flopsight::jobs::glob_matches(label.name, label.value);
  }
  FLOPSIGHT_CHECK(rules.bridge_intervals() >= 0 && std::isfinite(rules.bridge_intervals()));
  FLOPSIGHT_CHECK(!rules.markdown().empty());
  for (const std::string& name : rules.label_names()) (void)name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view file = text.substr(0, text.find('\n'));
  const std::vector<LabelView> labels =
      labels_of(file.size() < text.size() ? text.substr(file.size() + 1) : std::string_view());
  const auto rules = LabelRules::parse(file);
  if (!rules.ok()) {
    FLOPSIGHT_CHECK(!rules.error().message.empty());
    FLOPSIGHT_CHECK(rules.error().message.find('\n') == std::string::npos);
  }
  check_rules(rules.ok() ? *rules : LabelRules::builtin(), labels);
  return 0;
}
