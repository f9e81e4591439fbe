#include "base/yaml.h"

#include <gtest/gtest.h>

namespace flopsight::base::yaml {
namespace {

TEST(Yaml, values_know_their_lines) {
  const auto value = parse("# comment\nlisten: 127.0.0.1:9890\nscrape:\n  targets:\n    - a:9400\n    - 'b'\nempty:\n");
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(value->find("listen")->text, "127.0.0.1:9890");
  EXPECT_EQ(value->find("listen")->line, 2);
  const Value* targets = value->find("scrape")->find("targets");
  ASSERT_EQ(targets->kind, Kind::kList);
  EXPECT_EQ(targets->items[1].text, "b");
  EXPECT_EQ(targets->items[1].line, 6);
  EXPECT_TRUE(targets->items[1].quoted);
  EXPECT_EQ(value->find("empty")->kind, Kind::kNull);
}

TEST(Yaml, json_is_yaml) {
  const auto value = parse(R"([{"targets": ["a:1"], "labels": {"cluster": "x"}}])");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->items[0].find("labels")->find("cluster")->text, "x");
}

TEST(Yaml, mistakes_name_line_and_column) {
  EXPECT_NE(parse("a: [1, 2\n").error().message.find("line"), std::string::npos);
  EXPECT_EQ(parse("a: 1\nb: 2\na: 3\n").error().message, "line 3, column 1: the key a stands there twice");
}

TEST(Yaml, a_second_document_is_refused_with_its_place) {
  EXPECT_EQ(parse("a: 1\n---\nb: 2\n").error().message, "line 3, column 1: a second document, expected one");
  EXPECT_TRUE(parse("a: 1\n---\n").ok()) << "nothing follows";
  EXPECT_TRUE(parse("---\na: 1\n...\n# said\n").ok());
  // Of these the library never has read everything; whatever it makes of them, it comes back.
  for (const std::string& text : {std::string("!!3j,"), std::string(",:\t,\0\0\0\6", 8)}) (void)parse(text);
  for (const char* text : {"---\na: 1\n", "a: 1\n...\n", "a: 1\n---\n"}) {
    const auto parsed = parse(text);
    ASSERT_TRUE(parsed.ok()) << text << parsed.error().message;
    EXPECT_EQ(parsed->find("a")->text, "1");
  }
  EXPECT_EQ(parse("")->kind, Kind::kNull);
}

TEST(Yaml, nesting_and_aliases_that_multiply_are_limited) {
  EXPECT_EQ(parse(std::string(101, '[') + std::string(101, ']')).error().code, ErrorCode::kLimit);
  EXPECT_TRUE(parse(std::string(100, '[') + std::string(100, ']')).ok());
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) bomb += (n == 0 ? "" : ",") + before;
    bomb += "]\n";
  }
  EXPECT_EQ(parse(bomb).error().code, ErrorCode::kLimit);
  // Deeper than the library itself goes.
  EXPECT_FALSE(parse(std::string(100'000, '[')).ok());
}

TEST(Yaml, a_mistake_is_one_printable_line_whatever_is_wrong) {
  for (const char* text : {"a: \"\\\n\"", "\"a\\nb\": 1\n\"a\\nb\": 2\n", "\"\\e[31m\": 1\n\"\\e[31m\": 2\n"}) {
    const auto parsed = parse(text);
    if (parsed.ok()) continue;
    EXPECT_EQ(parsed.error().message.find_first_of("\n\x1b"), std::string::npos) << parsed.error().message;
  }
  EXPECT_FALSE(parse("\"a\\nb\": 1\n\"a\\nb\": 2\n").ok());
}

}  // namespace
}  // namespace flopsight::base::yaml
