#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include <unistd.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/spare_buffers.h"
#include "base/text.h"

namespace flopsight::base {
namespace {

TEST(SpareBuffers, as_many_are_kept_as_were_in_use_at_once_and_no_large_one) {
  SpareBuffers spare(2, 1000);
  {
    SpareBuffers::Buffer one(spare), two(spare), three(spare), large(spare);
    for (SpareBuffers::Buffer* buffer : {&one, &two, &three}) buffer->text().assign(500, 'x');
    large.text().assign(5'000, 'x');
    EXPECT_EQ(spare.spare_count(), 0U);
  }
  EXPECT_EQ(spare.spare_count(), 2U);
  SpareBuffers::Buffer again(spare);
  EXPECT_GE(again.text().capacity(), 500U);
}

TEST(Json, a_document_reads_and_prints_back_with_its_order) {
  const std::string text = R"({"b":[1,2.5,null,true],"a":{"x":"é\n"},"c":[],"d":{}})";
  const auto value = json::parse(text);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(json::dump(*value, 0), R"({"b":[1,2.5,null,true],"a":{"x":"é\n"},"c":[],"d":{}})");
}

TEST(Json, an_error_names_line_and_column) {
  const auto value = json::parse("{\n  \"a\": 1,\n  oops\n}");
  ASSERT_FALSE(value.ok());
  EXPECT_TRUE(value.error().message.starts_with("line 3, column 3")) << value.error().message;
}

TEST(Json, nesting_is_limited_at_200_levels) {
  EXPECT_TRUE(json::parse(std::string(200, '[') + std::string(200, ']')).ok());
  const auto deep = json::parse(std::string(201, '[') + std::string(201, ']'));
  ASSERT_FALSE(deep.ok());
  EXPECT_EQ(deep.error().code, ErrorCode::kLimit);
}

TEST(Json, of_keys_that_come_twice_the_last_holds_at_any_number_of_them) {
  for (const int keys : {1, 31, 32, 33, 100}) {
    std::string text = "{";
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < keys; ++i) text += "\"k" + std::to_string(i) + "\":" + std::to_string(100 * round + i) + ",";
    }
    text.back() = '}';
    const auto value = json::parse(text);
    ASSERT_TRUE(value.ok());
    ASSERT_EQ(value->as_object()->size(), static_cast<std::size_t>(keys));
    for (int i = 0; i < keys; ++i) EXPECT_EQ(*value->find("k" + std::to_string(i))->as_number(), 100 + i);
  }
}

TEST(Json, numbers_print_shortest_and_integers_without_fraction) {
  EXPECT_EQ(json::number_text(1.83e9), "1830000000");
  EXPECT_EQ(json::number_text(0.1), "0.1");
  EXPECT_EQ(json::number_text(-0.5), "-0.5");
}

TEST(Csv, a_cell_is_no_formula_and_drives_no_terminal) {
  EXPECT_EQ(csv_cell("train-1"), "train-1");
  EXPECT_EQ(csv_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
  for (const char* formula : {"=1+1", "+1", "-1", "@SUM(A1)"}) EXPECT_EQ(csv_cell(formula), "'" + std::string(formula));
  EXPECT_EQ(csv_cell("=A1,2"), "\"'=A1,2\"");
  EXPECT_EQ(csv_cell("a\x1b[31mb"), "a?[31mb");
  EXPECT_EQ(csv_cell(""), "");
}

TEST(Csv, quotes_comments_and_crlf_are_read) {
  const auto table = parse_csv("# note\na,b\r\n\"x,\"\"y\",2\r\n\n3,4");
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0].fields[0], "x,\"y");
  EXPECT_EQ(table->rows[0].fields[1], "2");
  EXPECT_EQ(table->rows[1].line, 5U);
}

TEST(Csv, a_row_of_another_width_is_an_error_with_its_line) {
  const auto table = parse_csv("a,b\n1,2\n3\n");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().message, "line 3: 1 fields, expected 2 as in the header");
}

TEST(Csv, an_unclosed_quote_is_an_error_with_its_line) {
  const auto table = parse_csv("a\n\"x\n");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().message, "line 2: a quoted field is not closed");
}

TEST(File, a_missing_file_and_a_folder_are_named) {
  EXPECT_EQ(read_file("/nonexistent/x").error().code, ErrorCode::kNotFound);
  EXPECT_NE(read_file("/").error().message.find("is a directory"), std::string::npos);
}

TEST(File, a_mark_of_utf8_is_no_part_of_the_text_and_utf16_is_said) {
  const std::string path = testing::TempDir() + "flopsight-marks-" + std::to_string(::getpid());
  const auto read = [&](std::string_view bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return read_file(path);
  };
  EXPECT_EQ(*read("\xEF\xBB\xBF{}"), "{}");
  EXPECT_EQ(*read("\xEF\xBB"), "\xEF\xBB");
  for (const std::string_view bytes : {"\xFF\xFE{", "\xFE\xFF{"}) {
    EXPECT_EQ(read(bytes).error().message, path + ": UTF-16, expected UTF-8: iconv -f UTF-16 -t UTF-8");
  }
  std::remove(path.c_str());
}

TEST(Text, printable_keeps_one_line_and_whole_characters) {
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a?b?[31m");
  EXPECT_EQ(printable("abé", 3), "ab...");
  EXPECT_EQ(printable("a\xC2\x9B" "31mb\xE2\x80\xAE" "c\xE2\x81\xA6"), "a?31mb?c?");
  EXPECT_EQ(printable("\xE2\x82\xAC"), "\xE2\x82\xAC");
}

TEST(Text, a_number_is_finite) {
  EXPECT_EQ(parse_number("1.5"), 1.5);
  for (const char* text : {"nan", "inf", "-inf", "1e999", "", " 1", "1x"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace flopsight::base
