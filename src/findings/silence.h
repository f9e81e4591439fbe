#pragma once
// A silence: findings that match it are kept and shown but not delivered, from a moment to another. It has an end, an author and a comment, so that
// nobody has to guess later why nothing was said.
//
// A matcher compares one property of a finding with a pattern, in which '*' stands for any text; a property that a finding does not have (a GPU of a
// job's regression) matches nothing. All matchers of a silence have to match.
// Errors: kInvalid, "key: found …, expected …"; kLimit past the limits below. Threads: values, pure functions.

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "findings/record.h"

namespace flopsight::findings {

inline constexpr std::size_t kMatchersMax = 10;       // of a silence
inline constexpr std::size_t kPatternBytesMax = 300;
inline constexpr std::size_t kCommentBytesMax = 1'000;
inline constexpr double kSilenceDaysMax = 366;

struct Matcher {
  std::string name;  // id, kind, severity, job, namespace, user, team, host, gpu or model
  std::string pattern;
};

struct Silence {
  std::string id;  // 16 hexadecimal digits
  std::vector<Matcher> matchers;
  units::Instant start;
  units::Instant end;
  std::string author;
  std::string comment;
  units::Instant created;

  bool holds(units::Instant now) const { return now >= start && now < end; }
};

bool matches(const Silence& silence, const Record& record);

// "job=train*": name and pattern. Errors: kInvalid.
base::Result<Matcher> parse_matcher(std::string_view text);

// {"matchers": ["kind=hang", …] or [{"name", "pattern"}, …], "start": T, "end": T or "duration_seconds": N, "comment": "…",
// "author": "…"}; `start` is now where it is not told. The author told counts only where `author` is empty. The id is made of all of it.
base::Result<Silence> silence_from_told(std::string_view text, std::string_view author, units::Instant now);

base::json::Object silence_json(const Silence& silence);
base::Result<Silence> silence_from_json(const base::json::Value& value);

}  // namespace flopsight::findings
