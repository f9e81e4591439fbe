#include "script.h"

#include <gtest/gtest.h>

namespace flopsight::fake_nvml {
namespace {

Script parsed(std::string_view text) {
  auto script = Script::parse(text);
  EXPECT_TRUE(script.ok()) << (script.ok() ? "" : script.error().message);
  return script.ok() ? std::move(script).value() : Script();
}

TEST(Script, a_fact_holds_from_its_time_until_it_is_set_again) {
  const Script script = parsed("gpu 0  sm_clock_mhz = 100 # idle\nat 2.5\ngpu 0 sm_clock_mhz=1755\nat 9\ngpu 0 sm_clock_mhz = -\n");
  EXPECT_EQ(script.number("gpu 0 sm_clock_mhz", 0), 100);
  EXPECT_EQ(script.number("gpu 0 sm_clock_mhz", 2.4), 100);
  EXPECT_EQ(script.number("gpu 0 sm_clock_mhz", 2.5), 1755);
  EXPECT_EQ(script.number("gpu 0 sm_clock_mhz", 9), std::nullopt);
  EXPECT_EQ(script.number("gpu 1 sm_clock_mhz", 9), std::nullopt);
}

TEST(Script, a_mean_weighs_each_value_with_the_time_that_it_held) {
  const Script script = parsed("gpu 0 gpm 5 = 10\nat 1\ngpu 0 gpm 5 = 50\n");
  EXPECT_DOUBLE_EQ(script.mean("gpu 0 gpm 5", 0, 4).value(), (10 * 1 + 50 * 3) / 4.0);
  EXPECT_DOUBLE_EQ(script.mean("gpu 0 gpm 5", 3, 3).value(), 50);
  EXPECT_EQ(script.mean("gpu 0 gpm 6", 0, 4), std::nullopt);
}

TEST(Script, numbers_are_those_of_facts_that_were_set) {
  const Script script = parsed("gpu 10 name = a\ngpu 2 name = b\ngpu 2 mig = on\nat 5\ngpu 3 name = c\n");
  EXPECT_EQ(script.numbers_after("gpu", 0), (std::vector<unsigned>{2, 10}));
  EXPECT_EQ(script.numbers_after("gpu", 5), (std::vector<unsigned>{2, 3, 10}));
}

TEST(Script, each_setting_after_a_time_is_told_once) {
  const Script script = parsed("gpu 0 xid = 31\nat 3\ngpu 0 xid = 79\n");
  EXPECT_EQ(script.settings("gpu 0 xid", -1, 2).size(), 1U);
  EXPECT_EQ(script.settings("gpu 0 xid", 2, 3).front().second, "79");
  EXPECT_TRUE(script.settings("gpu 0 xid", 3, 99).empty());
}

TEST(Script, a_mistake_is_named_by_its_line) {
  EXPECT_EQ(Script::parse("at 1\nat 0\n").error().message, "line 2: expected \"at SECONDS\", not before the one above");
  EXPECT_EQ(Script::parse("\ngpu 0 name\n").error().message, "line 2: expected \"FACT = VALUE\" or \"at SECONDS\"");
}

}  // namespace
}  // namespace flopsight::fake_nvml
