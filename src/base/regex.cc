#include "base/regex.h"

#include <re2/re2.h>

#include <map>

#include "base/text.h"

namespace flopsight::base {
namespace {

constexpr std::int64_t kProgramBytesMax = 8 << 20;

// Python's and Perl's other spelling of a named group, which this version of RE2 does not know.
std::string with_python_groups(std::string_view expression) {
  std::string out;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    out += expression[i];
    if (expression[i] == '\\' && i + 1 < expression.size()) {
      out += expression[++i];
    } else if (expression.substr(i).starts_with("(?<") && i + 3 < expression.size() &&
               expression[i + 3] != '=' && expression[i + 3] != '!') {
      out += "?P<";
      i += 2;
    }
  }
  return out;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct Regex::Compiled {
  Compiled(std::string written, const RE2::Options& options)
      : expression(std::move(written)), re(with_python_groups(expression), options) {}

  std::string expression;
  RE2 re;
  std::vector<std::string> names;
};

Regex::Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::parse(std::string_view expression) {
  const std::string shown = "regular expression \"" + printable(expression, 80) + "\"";
  if (expression.size() > kExpressionBytesMax) {
    return Error{ErrorCode::kLimit,
                 shown + ": longer than " + std::to_string(kExpressionBytesMax) + " bytes"};
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kProgramBytesMax);
  auto compiled = std::make_shared<Compiled>(std::string(expression), options);
  if (!compiled->re.ok()) {
    const bool too_large = compiled->re.error_code() == RE2::ErrorPatternTooLarge;
    return Error{too_large ? ErrorCode::kLimit : ErrorCode::kInvalid,
                 shown + ": " + printable(compiled->re.error(), 120)};
  }
  const auto groups = static_cast<std::size_t>(compiled->re.NumberOfCapturingGroups());
  if (groups > kGroupsMax) {
    return Error{ErrorCode::kLimit,
                 shown + ": more than " + std::to_string(kGroupsMax) + " groups"};
  }
  compiled->names.resize(groups + 1);
  for (const auto& [number, name] : compiled->re.CapturingGroupNames()) {
    compiled->names[static_cast<std::size_t>(number)] = name;
  }
  return Regex(std::move(compiled));
}

const std::string& Regex::expression() const { return compiled_->expression; }
const std::vector<std::string>& Regex::group_names() const { return compiled_->names; }

std::optional<std::size_t> Regex::group(std::string_view name) const {
  for (std::size_t i = 1; i < compiled_->names.size(); ++i) {
    if (compiled_->names[i] == name) return i;
  }
  return std::nullopt;
}

bool Regex::found_in(std::string_view text) const {
  return RE2::PartialMatch(piece(text), compiled_->re);
}

bool Regex::match(std::string_view text,
                  std::vector<std::optional<std::string_view>>& groups) const {
  re2::StringPiece found[kGroupsMax + 1];
  const std::size_t count = compiled_->names.size();
  if (!compiled_->re.Match(piece(text), 0, text.size(), RE2::UNANCHORED, found,
                           static_cast<int>(count)))
    return false;
  groups.assign(count, std::nullopt);
  for (std::size_t i = 0; i < count; ++i) {
    if (found[i].data() != nullptr) groups[i] = std::string_view(found[i].data(), found[i].size());
  }
  return true;
}

std::string Regex::replaced(std::string_view text, std::string_view with) const {
  std::string out(text);
  RE2::GlobalReplace(&out, compiled_->re, piece(with));
  return out;
}

}  // namespace flopsight::base
