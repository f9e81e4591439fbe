#include "analysis/families.h"

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

}  // namespace flopsight::analysis
