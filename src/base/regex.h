#pragma once
// Regular expressions from users, matched against text from anywhere: time is linear in the text
// whatever the expression, because RE2 does not backtrack. Syntax: RE2's (no look-around, no
// back-references); groups may be named (?P<name>…) or (?<name>…).
//
// Errors: kInvalid saying what is wrong with the expression; kLimit past 4,096 bytes or 8 MiB of
// program. Threads: any, once made.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::base {

class Regex {
 public:
  static constexpr std::size_t kExpressionBytesMax = 4'096;
  static constexpr std::size_t kGroupsMax = 32;

  static Result<Regex> parse(std::string_view expression);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  const std::string& expression() const;
  // Names by group, from 1; empty for a group without one. Index 0 is the whole match.
  const std::vector<std::string>& group_names() const;
  // The number of a named group.
  std::optional<std::size_t> group(std::string_view name) const;

  // Somewhere in the text.
  bool found_in(std::string_view text) const;
  // Fills groups (index 0 is the whole match; a group that took no part is nothing) with views into
  // the text.
  bool match(std::string_view text, std::vector<std::optional<std::string_view>>& groups) const;
  // All matches replaced; \1 to \9 are groups.
  std::string replaced(std::string_view text, std::string_view with) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled);
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace flopsight::base
