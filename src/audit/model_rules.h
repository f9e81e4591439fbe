#pragma once
// Which models jobs train, by the names of the jobs: a YAML file of a site, so that nobody has to tell the model of each job.
//
//   models:
//     - {match: "llama3-8b-*", config: configs/llama3-8b.json, seq_len: 8192, precision: bf16, recompute: none}
//
// `match` is a glob over the whole name (`*` stands for any text); `config` is a config.json, relative to the file; the rest are the keys of
// audit/told_model.h. The first rule that matches is the job's. Errors: kInvalid with the line, kLimit past kModelRulesMax. Threads: pure.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace flopsight::audit {

inline constexpr std::size_t kModelRulesMax = 1'000;

struct ModelRule {
  std::string match;
  std::string config_path;
  base::json::Object settings;  // keys of a told model, but for config
  int line = 1;
};

base::Result<std::vector<ModelRule>> parse_model_rules(std::string_view yaml);

// The rule's model as it would be told, with the text of its config.json: checked by parse_told_model. Errors: of that, and kInvalid for a
// text that is no JSON.
base::Result<std::string> told_by_rule(const ModelRule& rule, std::string_view config_json);

}  // namespace flopsight::audit
