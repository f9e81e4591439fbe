#pragma once
// What somebody says of a finding: who and why, as the body of a request has it. Errors: kInvalid, "key: found …, expected …"; kLimit for a note
// that is too long. Threads: pure.

#include <string>
#include <string_view>

#include "base/result.h"

namespace flopsight::findings {

inline constexpr std::size_t kNoteBytesMax = 1'000;
inline constexpr std::size_t kAuthorBytesMax = 100;

inline constexpr std::string_view kNobodyKnown = "anonymous";

struct ToldAct {
  std::string author;  // counts only where the service does not know its users
  std::string note;
};

// {"note": "…", "author": "…"}; an empty body says neither.
base::Result<ToldAct> act_from_told(std::string_view text);

}  // namespace flopsight::findings
