#include "findings/record.h"

#include <gtest/gtest.h>

#include <set>

namespace flopsight::findings {
namespace {

TEST(Record, an_id_is_of_one_occurrence_of_one_matter) {
  const units::Instant first{1'767'225'600'000};
  const std::string id = record_id("regression/job=train", first);
  EXPECT_EQ(id, "a75d4406a63a1866") << "others keep ids: they may not change with a compiler or a version";
  EXPECT_NE(id, record_id("regression/job=train2", first));
  EXPECT_NE(id, record_id("regression/job=train", units::Instant{first.unix_milliseconds + 60'000}));
}

TEST(Record, kinds_are_those_of_the_detectors_and_two_more) {
  std::set<std::string_view> names;
  for (const KindInfo& kind : kinds()) names.insert(kind.name);
  EXPECT_EQ(names.size(), detect::kFindingKindCount + 2);
  ASSERT_NE(find_kind("audit"), nullptr);
  EXPECT_TRUE(find_kind("counter_dead")->data_quality);
  EXPECT_FALSE(find_kind("waste")->data_quality);
  EXPECT_EQ(find_kind("Regression"), nullptr);
}

TEST(Record, names_of_states_and_severities_read_back) {
  for (const State state : {State::kOpen, State::kAcknowledged, State::kResolved}) EXPECT_EQ(parse_state(state_name(state)), state);
  EXPECT_EQ(parse_severity("critical"), detect::Severity::kCritical);
  EXPECT_EQ(parse_state("closed"), std::nullopt);
  EXPECT_EQ(parse_severity(""), std::nullopt);
}

}  // namespace
}  // namespace flopsight::findings
