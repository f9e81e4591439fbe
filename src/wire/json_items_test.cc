#include "wire/json_items.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace flopsight::wire {
namespace {

constexpr std::string_view kLists[] = {"jobs"};
constexpr std::string_view kSkip[] = {"steps"};

struct Seen {
  std::vector<std::string> entries;
  std::vector<std::string> members;
  base::Status status;
};

Seen read(std::string_view json) {
  Seen seen;
  seen.status = read_json_items(
      json, {kLists, kSkip},
      [&](std::string_view, base::json::Value entry) {
        seen.entries.push_back(base::json::dump(entry, 0));
        return base::Status();
      },
      [&](std::string_view key, base::json::Value value) {
        seen.members.push_back(std::string(key) + "=" + base::json::dump(value, 0));
      });
  return seen;
}

TEST(JsonItems, entries_come_one_by_one_and_what_is_skipped_does_not) {
  const Seen seen = read(
      R"({"jobs": [{"id": 1, "steps": [{"x": 1}], "t": {"set": true}}, null, "a\"b"], "meta": {"v": "25.05"}})");
  ASSERT_TRUE(seen.status.ok()) << seen.status.error().message;
  EXPECT_EQ(seen.entries,
            (std::vector<std::string>{R"({"id":1,"t":{"set":true}})", "null", R"("a\"b")"}));
  EXPECT_EQ(seen.members, (std::vector<std::string>{"jobs=[]", R"(meta={"v":"25.05"})"}));
}

TEST(JsonItems, an_integer_that_a_double_would_round_keeps_its_digits) {
  const Seen seen =
      read(R"({"jobs": [9007199254740991, 9007199254740993, 18446744073709551615, -1.5]})");
  ASSERT_TRUE(seen.status.ok()) << seen.status.error().message;
  EXPECT_EQ(seen.entries, (std::vector<std::string>{"9007199254740991", "\"9007199254740993\"",
                                                    "\"18446744073709551615\"", "-1.5"}));
}

TEST(JsonItems, a_number_beyond_a_double_keeps_its_digits_and_costs_no_other_entry) {
  const Seen seen = read(R"({"jobs": [1e999, {"a": -1.5E+400, "b": 2}, [1e999, 3], 4], "big": 1e999, "next": 5})");
  ASSERT_TRUE(seen.status.ok()) << seen.status.error().message;
  EXPECT_EQ(seen.entries, (std::vector<std::string>{"\"1e999\"", R"({"a":"-1.5E+400","b":2})", R"(["1e999",3])", "4"}));
  EXPECT_EQ(seen.members, (std::vector<std::string>{"jobs=[]", "big=\"1e999\"", "next=5"}));
}

TEST(JsonItems, broken_text_is_an_error) {
  for (const char* text : {"", "[1]", "{", R"({"jobs": [{"id": 1})", R"({"jobs": [{"id" 1}]})",
                           R"({"jobs": [nul]})", R"({"jobs": [1e]})", R"({"jobs": [1e999x]})", R"({"jobs": [-]})", R"({"jobs": [01]})", R"({"jobs": [1.]})", R"({"jobs": []} x)", "{\"jobs\": [\"\xff\"]}"}) {
    const Seen seen = read(text);
    ASSERT_FALSE(seen.status.ok()) << text;
    EXPECT_TRUE(seen.status.error().message.starts_with("JSON ")) << seen.status.error().message;
  }
}

TEST(JsonItems, nesting_ends_at_its_limit) {
  const auto nested = [](std::size_t depth) {
    return R"({"jobs": [)" + std::string(depth, '[') + std::string(depth, ']') + "]}";
  };
  EXPECT_TRUE(read(nested(65)).status.ok());
  EXPECT_EQ(read(nested(66)).status.error().code, base::ErrorCode::kLimit);
}

TEST(JsonItems, an_error_of_the_caller_ends_the_reading) {
  int calls = 0;
  const base::Status status =
      read_json_items(R"({"jobs": [1, 2, 3]})", {kLists, kSkip},
                      [&](std::string_view, base::json::Value) -> base::Status {
                        if (++calls == 2) return base::Error{base::ErrorCode::kLimit, "enough"};
                        return {};
                      },
                      [](std::string_view, base::json::Value) {});
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(status.error().message, "enough");
}

}  // namespace
}  // namespace flopsight::wire
