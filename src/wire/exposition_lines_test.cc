#include "wire/exposition_lines.h"

#include <gtest/gtest.h>

namespace flopsight::wire {
namespace {

std::string clocks_of(std::string_view text) {
  std::string out;
  append_lines_of(text, [](std::string_view metric) { return metric == "clock"; }, out);
  return out;
}

TEST(ExpositionLines, of_a_metric_as_they_are) {
  EXPECT_EQ(clocks_of("# TYPE clock gauge\nclock{gpu=\"0\"} 1500 17\nload 1\n  clock 3\r\n\nclocks 4\nclock\t5"), "clock{gpu=\"0\"} 1500 17\n  clock 3\r\nclock\t5\n");
  EXPECT_EQ(clocks_of(""), "");
}

TEST(ExpositionLines, names_between_braces_and_the_end_are_for_the_parser) {
  EXPECT_EQ(clocks_of("{\"load\"} 1\n# EOF\n"), "{\"load\"} 1\n# EOF\n");
  EXPECT_EQ(clocks_of("#  EOF\nclock 1\n"), "#  EOF\nclock 1\n") << "the parser takes it for the end, and what is behind it for nothing";
}

}  // namespace
}  // namespace flopsight::wire
