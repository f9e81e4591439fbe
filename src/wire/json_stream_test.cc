#include "wire/json_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace flopsight::wire {
namespace {

using base::json::Value;

struct Outcome {
  std::vector<std::string> entries;
  std::string rest;
  std::string mistake;
  bool list_seen = false;
};

Outcome read(std::string_view text, std::size_t piece, JsonStream::Options options = {"list", {}}) {
  Outcome out;
  JsonStream stream(options, [&](Value value) {
    out.entries.push_back(base::json::dump(value, 0));
    return base::Status();
  });
  for (std::size_t at = 0; at < text.size(); at += piece) {
    if (const auto status = stream.feed(text.substr(at, piece)); !status.ok()) {
      out.mistake = status.error().message;
      return out;
    }
  }
  const auto rest = stream.finish();
  out.mistake = rest.ok() ? "" : rest.error().message;
  out.rest = rest.ok() ? base::json::dump(*rest, 0) : "";
  out.list_seen = stream.list_seen();
  return out;
}

TEST(JsonStream, entries_and_the_rest_in_pieces_of_any_size) {
  const std::string text = R"({"a": [1, {"list": [9]}], "list": [ {"x": "}],\"{"}, 2 , [3, [4]], "s\\", null ], "b": {"list": 1}, "c": "\u00e9"})";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    const Outcome out = read(text, piece);
    ASSERT_EQ(out.mistake, "") << piece;
    EXPECT_EQ(out.entries, (std::vector<std::string>{R"({"x":"}],\"{"})", "2", "[3,[4]]", R"("s\\")", "null"})) << piece;
    EXPECT_EQ(out.rest, "{\"a\":[1,{\"list\":[9]}],\"list\":[],\"b\":{\"list\":1},\"c\":\"\u00e9\"}");
    EXPECT_TRUE(out.list_seen);
  }
}

TEST(JsonStream, a_bare_list_is_the_list) {
  const Outcome out = read(" [1, 2]\n", 1);
  EXPECT_EQ(out.mistake, "");
  EXPECT_EQ(out.entries.size(), 2u);
  EXPECT_EQ(out.rest, "[]");
}

TEST(JsonStream, an_empty_list_and_none_at_all) {
  EXPECT_TRUE(read(R"({"list": [ ]})", 3).entries.empty());
  EXPECT_TRUE(read(R"({"list": [ ]})", 3).list_seen);
  const Outcome none = read(R"({"lists": [1]})", 3);
  EXPECT_EQ(none.mistake, "");
  EXPECT_FALSE(none.list_seen);
  EXPECT_FALSE(read(R"({"list": {"list": [1]}})", 3).list_seen);
}

TEST(JsonStream, entries_that_are_not_wanted_are_not_parsed) {
  JsonStream::Options options{"list", {}};
  options.wanted = [](std::string_view text) { return text.find("yes") != std::string_view::npos; };
  for (std::size_t piece = 1; piece < 40; ++piece) {
    const Outcome out = read(R"({"list": [{"a": nonsense}, "yes1", {"b": [1, 2]}, "yes2", 5]})", piece, options);
    EXPECT_EQ(out.mistake, "");
    EXPECT_EQ(out.entries, (std::vector<std::string>{"\"yes1\"", "\"yes2\""}));
  }
}

TEST(JsonStream, more_than_a_batch_arrives_in_order) {
  std::string text = "[";
  for (int i = 0; i < 200'000; ++i) text += (i > 0 ? "," : "") + std::to_string(i);
  const Outcome out = read(text + "]", 4096);
  EXPECT_EQ(out.mistake, "");
  ASSERT_EQ(out.entries.size(), 200'000u);
  EXPECT_EQ(out.entries.back(), "199999");
}

TEST(JsonStream, what_is_wrong_is_said_with_its_place) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty, expected JSON"},
      {"  ", "empty, expected JSON"},
      {"\x1f\x8b", "JSON near byte 0: expected '{' or '['"},
      {"{} x", "text after the end"},
      {R"({"list": [1, 2)", "JSON ends at byte 14, inside the list list"},
      {R"({"list": [1], "a": "b)", "inside a string"},
      {R"({"list": [1])", "before the root is closed"},
      {R"({"list": [1,]})", "near byte 12: ']' where an entry was expected"},
      {R"({"list": [,1]})", "near byte 10: ',' where an entry was expected"},
      {R"({"list": [1}})", "'}' where ',' or ']' was expected"},
      {R"({"list": [{]]})", "entries of list from byte 10"},
      {R"({"list": [1 2]})", "entries of list from byte 10"},
      {R"({"list": [nano]})", "entries of list"},
      {"}", "more is closed than was opened"},
      {R"({"a": tru, "list": []})", "JSON outside of the list list"},
  };
  for (const auto& [text, said] : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}}) EXPECT_NE(read(text, piece).mistake.find(said), std::string::npos) << text << ": " << read(text, piece).mistake;
  }
}

TEST(JsonStream, limits_at_and_past_them) {
  JsonStream::Options options{"list", {}};
  options.entry_bytes_max = 10;
  options.rest_bytes_max = 13;
  EXPECT_EQ(read(R"({"list":["12345678"]})", 1, options).mistake, "");
  EXPECT_NE(read(R"({"list":["123456789"]})", 1, options).mistake.find("an entry of list over 10 bytes"), std::string::npos);
  EXPECT_EQ(read(R"({"list":[],1})", 1, options).mistake.find("over 13"), std::string::npos);
  EXPECT_NE(read(R"({"list":[], 1})", 1, options).mistake.find("over 13 bytes outside the list list"), std::string::npos);
}

TEST(JsonStream, an_error_of_the_receiver_ends_the_reading) {
  JsonStream stream({"list", {}}, [](Value) { return base::Status(base::Error{base::ErrorCode::kLimit, "enough"}); });
  const auto status = stream.feed("[1, 2]");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, base::ErrorCode::kLimit);
}

TEST(JsonStream, numbers_that_json_does_not_have_are_null_and_a_byte_order_mark_is_passed_over) {
  const std::string text = "\xEF\xBB\xBF{\"list\": [{\"a\": NaN, \"nan\": \"NaN \\\" inf\"}, [-Infinity, Infinity,inf,-nan, true], NaN], \"rest\": NaN}";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    const Outcome out = read(text, piece);
    ASSERT_EQ(out.mistake, "") << piece;
    ASSERT_EQ(out.entries.size(), 3u);
    EXPECT_EQ(out.entries[0], R"({"a":null,"nan":"NaN \" inf"})");
    EXPECT_EQ(out.entries[1], "[null,null,null,null,true]");
    EXPECT_EQ(out.entries[2], "null");
    EXPECT_NE(out.rest.find("\"rest\":null"), std::string::npos) << out.rest;
  }
  EXPECT_NE(read("{\"list\": [nano]}", 99).mistake, "") << "another word is none of them";
  EXPECT_NE(read("\xEF\xBB{\"list\": []}", 99).mistake, "") << "half a mark";
}

TEST(JsonStream, a_byte_that_is_not_utf8_is_named) {
  const std::string mistake = read("{\"list\": [{\"a\": \"b\xff\"}]}", 99).mistake;
  EXPECT_NE(mistake.find("a byte 0xff that is not UTF-8"), std::string::npos) << mistake;
  const std::string outside = read("{\"list\": [1], \"a\": \"\xfe\"}", 99).mistake;
  EXPECT_EQ(outside, "JSON outside of the list list: a byte 0xfe that is not UTF-8, expected text in UTF-8");
}

}  // namespace
}  // namespace flopsight::wire
