#include "analysis/families.h"

#include "analysis/tally_internal.h"
#include "base/check.h"

namespace flopsight::analysis {
namespace {

constexpr std::size_t kIgnoreMax = 32;

// Hashes of seven and more hexadecimal digits with a digit among them (a word such as "defaced" has
// none), then dates, times and numbers with what joins their parts. "llama3-8b" loses its numbers
// as well: sizes and versions are told apart by the words around them, and the family by user,
// model and count besides.
const std::vector<std::string>& builtin_expressions() {
  static const std::vector<std::string> kExpressions = {
      R"(\b[0-9a-f]*[0-9][0-9a-f]*[a-f][0-9a-f]*[0-9a-f]{4,}\b)",
      R"(\b\d{4}[-_.]?\d{2}[-_.]?\d{2}(?:[-_.T]?\d{2}[-_.:]?\d{2}(?:[-_.:]?\d{2})?)?Z?\b)",
      R"((?:[-_.]|\b)(?:run|try|attempt|seed|v|r|resume|restart|part|step)[-_.]?\d+)",
      R"((?:[-_.:#]|^)\d+\b)",
  };
  return kExpressions;
}

}  // namespace

FamilyRule FamilyRule::builtin() {
  auto rule = parse(builtin_expressions());
  FLOPSIGHT_CHECK(rule.ok());
  return std::move(rule).value();
}

base::Result<FamilyRule> FamilyRule::parse(const std::vector<std::string>& ignore) {
  if (ignore.size() > kIgnoreMax) {
    return base::Error{base::ErrorCode::kLimit,
                       "more than " + std::to_string(kIgnoreMax) + " expressions"};
  }
  FamilyRule rule;
  for (const std::string& expression : ignore) {
    FLOPSIGHT_ASSIGN_OR_RETURN(base::Regex regex, base::Regex::parse(expression));
    rule.ignore_.push_back(std::move(regex));
  }
  return rule;
}

std::vector<std::string> FamilyRule::ignored() const {
  std::vector<std::string> out;
  for (const base::Regex& regex : ignore_) out.push_back(regex.expression());
  return out;
}

std::string FamilyRule::family_of(const FamilyFacts& facts) const {
  if (facts.name.empty()) return {};
  std::string name = facts.name;
  for (const base::Regex& regex : ignore_) name = regex.replaced(name, "#");
  std::string family = name + " | " + (facts.user.empty() ? "?" : facts.user) + " | ";
  for (std::size_t i = 0; i < facts.models.size(); ++i)
    family += (i > 0 ? "+" : "") + facts.models[i];
  if (facts.models.empty()) family += "?";
  return family + " | " + std::to_string(facts.gpu_count) +
         (facts.gpu_count == 1 ? " GPU" : " GPUs");
}

void FamilyIndex::see(const rollups::GpuTime& gpu, const HolderOf& holder_of) {
  for (const rollups::Portion& portion : gpu.portions) {
    if (!portion.holder) continue;
    const samples::Holder& holder = holder_of(*portion.holder);
    Job& job = jobs_[{holder.job, holder.name_space}];
    const std::string& model = gpu.device != nullptr ? gpu.device->model : gpu.gpu.model_raw;
    if (!model.empty()) job.models.insert(model);
    if (gpu.is_many) {
      job.members.insert(gpu.members.begin(), gpu.members.end());
    } else {
      job.gpus.insert(counted_gpu_key(gpu.gpu));
    }
  }
}

const std::string& FamilyIndex::of(samples::HolderId id, const HolderOf& holder_of) {
  const auto [at, is_new] = families_.try_emplace(id);
  if (!is_new) return at->second;
  const samples::Holder& holder = holder_of(id);
  FamilyFacts facts;
  facts.name = holder.job;
  facts.user = holder.user;
  if (const auto job = jobs_.find({holder.job, holder.name_space}); job != jobs_.end()) {
    facts.models.assign(job->second.models.begin(), job->second.models.end());
    facts.gpu_count = job->second.gpus.size() + job->second.members.size();
  }
  return at->second = rule_.family_of(facts);
}

}  // namespace flopsight::analysis
