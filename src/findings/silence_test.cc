#include "findings/silence.h"

#include <gtest/gtest.h>

#include "findings/act.h"
#include "findings/record_json.h"
#include "findings/test_records.h"

namespace flopsight::findings {
namespace {

using test::at;
using test::wall;

std::string mistake(const std::string& text) {
  const auto told = silence_from_told(text, "ada", wall(0));
  return told.ok() ? "" : told.error().message;
}

TEST(Silence, each_mistake_is_told_with_what_was_expected) {
  EXPECT_EQ(mistake(R"({"matchers": ["job=a"], "duration_seconds": 60, "comment": "x"})"), "");
  EXPECT_EQ(mistake("[]"), "expected an object with matchers, end or duration_seconds, comment");
  EXPECT_EQ(mistake(R"({"matchers": [], "duration_seconds": 60, "comment": "x"})"), "matchers: found array, expected a list such as [\"job=train*\"]");
  EXPECT_EQ(mistake(R"({"matchers": ["job"], "duration_seconds": 60, "comment": "x"})"),
            "matchers: found \"job\", expected name=pattern, such as job=train*");
  EXPECT_EQ(mistake(R"({"matchers": ["pod=a"], "duration_seconds": 60, "comment": "x"})"),
            "matchers: found \"pod\", expected id, kind, severity, job, namespace, user, team, host, gpu or model");
  EXPECT_EQ(mistake(R"({"matchers": ["kind=hangs"], "duration_seconds": 60, "comment": "x"})"),
            "matchers: found \"hangs\", expected a kind of finding (docs/findings.md has all)");
  EXPECT_EQ(mistake(R"({"matchers": ["job="], "duration_seconds": 60, "comment": "x"})"), "matchers: job has no pattern; '*' matches any");
  EXPECT_EQ(mistake(R"({"matchers": ["job=a"], "comment": "x"})"), "end: expected either end or duration_seconds");
  EXPECT_EQ(mistake(R"({"matchers": ["job=a"], "duration_seconds": -1, "comment": "x"})"), "duration_seconds: found -1, expected up to 366 days");
  EXPECT_EQ(mistake(R"({"matchers": ["job=a"], "duration_seconds": 1e300, "comment": "x"})"), "duration_seconds: found 1e+300, expected up to 366 days");
  EXPECT_EQ(mistake(R"({"matchers": ["job=a"], "end": "2020-01-01T00:00:00Z", "comment": "x"})"),
            "end: found 2020-01-01T00:00:00Z, expected a time after the start");
  EXPECT_EQ(mistake(R"({"matchers": ["job=a"], "duration_seconds": 60})"), "comment: missing, expected why");
  EXPECT_EQ(mistake(R"({"matchers": ["job=a"], "duration_seconds": 60, "comment": "x", "until": 1})"),
            "\"until\" is no key of a silence, expected matchers, start, end, duration_seconds, comment or author");
}

TEST(Silence, at_its_limits_it_is_taken_and_past_them_refused) {
  const auto with = [](std::size_t matchers, std::size_t pattern_bytes, std::size_t comment_bytes) {
    std::string text = R"({"duration_seconds": 60, "comment": ")" + std::string(comment_bytes, 'c') + R"(", "matchers": [)";
    for (std::size_t i = 0; i < matchers; ++i) text += (i > 0 ? ",\"job=" : "\"job=") + std::string(pattern_bytes, 'p') + "\"";
    return silence_from_told(text + "]}", "ada", wall(0));
  };
  EXPECT_TRUE(with(kMatchersMax, kPatternBytesMax, kCommentBytesMax).ok());
  EXPECT_EQ(with(kMatchersMax + 1, 1, 1).error().code, base::ErrorCode::kLimit);
  EXPECT_EQ(with(1, kPatternBytesMax + 1, 1).error().code, base::ErrorCode::kLimit);
  EXPECT_EQ(with(1, 1, kCommentBytesMax + 1).error().code, base::ErrorCode::kLimit);
}

TEST(Silence, all_matchers_have_to_match_and_a_property_that_is_not_there_matches_nothing) {
  Record record = test::sighting("hang", "train-1", 0, 5).record;
  record.holder.name_space = "ml";
  record.job = "train-1@ml";
  record.host = "n1";
  const auto silenced = [&](const std::string& matchers) {
    const auto told = silence_from_told("{\"matchers\": [" + matchers + R"(], "duration_seconds": 60, "comment": "x"})", "ada", wall(0));
    EXPECT_TRUE(told.ok()) << told.error().message;
    return told.ok() && matches(*told, record);
  };
  EXPECT_TRUE(silenced(R"("job=train-*")"));
  EXPECT_TRUE(silenced(R"("job=train-1")")) << "by its bare name";
  EXPECT_TRUE(silenced(R"("job=train-1@ml", "host=n*", "user=ada", "severity=critical", "namespace=ml")"));
  EXPECT_FALSE(silenced(R"("job=train-*", "host=n2")"));
  EXPECT_FALSE(silenced(R"("gpu=*")"));
  EXPECT_TRUE(silenced(R"({"name": "kind", "pattern": "h*"})"));
}

TEST(Record, what_is_written_as_json_reads_back) {
  Record record = test::sighting("regression", "train", 0, 5).record;
  record.id = record_id(record.key, record.first);
  record.opened = record.changed = wall(5);
  record.acknowledged = wall(6);
  record.acknowledged_by = "ada";
  record.state = State::kAcknowledged;
  record.evidence = {{"size_ratio", 0.4}};
  record.series_name = "ofu_ratio";
  record.series = {{at(0), 0.4}, {at(1), 0.16}};
  record.suspects = {{detect::SuspectKind::kClock, 0.9, "the clock fell"}, {detect::SuspectKind::kLabelChange, std::nullopt, "image"}};
  record.cost_usd = units::Usd(2);
  const auto again = record_from_json(record_json(record));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(base::json::dump(record_json(*again)), base::json::dump(record_json(record)));
  EXPECT_EQ(again->suspects.at(1).explained_ratio, std::nullopt);
  EXPECT_EQ(base::json::Value(record_json(record)).find("path")->as_string()->substr(0, 12), "/finding?id=");
}

TEST(Act, a_body_may_be_empty_or_say_who_and_why_within_limits) {
  EXPECT_TRUE(act_from_told(" \n").ok());
  EXPECT_EQ(act_from_told(R"({"note": "known", "author": "ada"})")->author, "ada");
  EXPECT_EQ(act_from_told(R"({"not": 1})").error().message, "\"not\" is no key here, expected note or author");
  EXPECT_TRUE(act_from_told("{\"note\": \"" + std::string(kNoteBytesMax, 'n') + "\"}").ok());
  EXPECT_EQ(act_from_told("{\"note\": \"" + std::string(kNoteBytesMax + 1, 'n') + "\"}").error().code, base::ErrorCode::kLimit);
}

}  // namespace
}  // namespace flopsight::findings
