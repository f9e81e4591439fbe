#include "findingdesk/findings_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.h"

namespace flopsight::app {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FindingsCsv, names_are_no_formulas_and_what_is_simulated_or_unknown_says_so) {
  findings::Record record;
  record.id = "00000000000000aa";
  record.kind = "regression";
  record.holder.job = "=cmd|' /C calc'!A0";
  record.job = record.holder.job;
  record.holder.user = "eve, \"the\x1b[31m user\"";
  record.text = "OFU fell";
  record.simulated = true;
  const std::string csv = findings_csv({&record, 1});
  EXPECT_THAT(csv, Not(HasSubstr("\x1b")));
  const auto table = base::parse_csv(csv);
  ASSERT_TRUE(table.ok()) << table.error().message;
  ASSERT_EQ(table->rows.size(), 1U);
  const auto cell = [&](std::string_view column) { return table->rows[0].fields.at(static_cast<std::size_t>(table->column(column))); };
  EXPECT_EQ(cell("job"), "'=cmd|' /C calc'!A0");
  EXPECT_THAT(cell("user"), HasSubstr("eve, \"the"));
  EXPECT_EQ(cell("simulated"), "true");
  EXPECT_EQ(cell("cost_gpu_hours"), "");  // not known, which is not 0
  EXPECT_EQ(cell("text"), "OFU fell");
}

}  // namespace
}  // namespace flopsight::app
