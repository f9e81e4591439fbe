#include "wire/exposition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace flopsight::wire {
namespace {

using Options = ExpositionParser::Options;

std::string text_of(const ExpositionSample& sample) {
  std::string out(sample.metric);
  for (const Label& label : sample.labels->labels) {
    out.append("|").append(label.name).append("=").append(label.value);
  }
  char value[64];
  std::snprintf(value, sizeof value, " %.17g", sample.value);
  out += value;
  if (sample.timestamp_milliseconds) out += " @" + std::to_string(*sample.timestamp_milliseconds);
  return out;
}

// Writes down all it is told: samples as "metric|label=value 1 @2", the rest as "type …" and "1:2
// …".
struct Record : ExpositionSink {
  void sample(const ExpositionSample& sample) override {
    said.push_back(text_of(sample));
    ids.push_back(sample.labels->id);
  }
  void malformed(const ExpositionError& error) override {
    said.push_back(std::to_string(error.line) + ":" + std::to_string(error.column) + " " +
                   error.expected);
  }
  void type(std::string_view metric, std::string_view type) override {
    said.push_back("type " + std::string(metric) + " " + std::string(type));
  }
  std::vector<std::string> said;
  std::vector<std::uint32_t> ids;
};

std::vector<std::string> said(std::string_view text, Options options = {}) {
  ExpositionParser parser(options);
  Record record;
  parser.parse(text, record);
  return record.said;
}

using Said = std::vector<std::string>;
const Options kOpenMetrics{.format = ExpositionFormat::kOpenMetrics};

TEST(Exposition, a_sample_has_name_labels_in_order_value_and_timestamp) {
  EXPECT_EQ(said("m{b=\"1\",a=\"x y\"} 2.5 1395066363000\n"),
            Said{"m|b=1|a=x y 2.5 @1395066363000"});
  EXPECT_EQ(said("m 1\n:n_2:x 2\n"), (Said{"m 1", ":n_2:x 2"}));
  EXPECT_EQ(said("m 1 -5\nm 1 +5\n"), (Said{"m 1 @-5", "m 1 @5"}));
}

TEST(Exposition, the_last_line_needs_no_newline_and_an_empty_text_has_none) {
  EXPECT_EQ(said("m 1"), Said{"m 1"});
  EXPECT_EQ(said(""), Said{});
  ExpositionParser parser;
  Record record;
  EXPECT_EQ(parser.parse("", record).lines, 0U);
  EXPECT_EQ(parser.parse("a 1\n\n# x\nb 2", record).lines, 4U);
  EXPECT_EQ(parser.parse("a 1\n", record).lines, 1U);
}

TEST(Exposition, carriage_returns_tabs_repeated_blanks_and_trailing_commas_are_accepted) {
  EXPECT_EQ(said("m{a=\"1\"} 2\r\n\r\n# TYPE m gauge\r\n"), (Said{"m|a=1 2", "type m gauge"}));
  EXPECT_EQ(said(" \tm \t{ \ta\t=  \"1\" , b = \"2\",\t}\t 3\t \t4  \n"), Said{"m|a=1|b=2 3 @4"});
  EXPECT_EQ(said("m{a=\"1\",} 1\nm{} 2\nm{ } 3\nm{a=\"1\"}4\n"),
            (Said{"m|a=1 1", "m 2", "m 3", "m|a=1 4"}));
}

TEST(Exposition, escapes_are_resolved_and_unknown_ones_keep_their_backslash) {
  EXPECT_EQ(said(R"(m{a="\\ \" \n",b="\t\x\é",c="\\n"} 1)"),
            Said{"m|a=\\ \" \n|b=\\t\\x\\é|c=\\n 1"});
}

TEST(Exposition, braces_hashes_commas_and_blanks_inside_a_value_are_text) {
  const std::string line = R"(m{a="} # {x=\"1\"} 2",b="{,=#"} 5)";
  EXPECT_EQ(said(line + "\n" + line),
            (Said{"m|a=} # {x=\"1\"} 2|b={,=# 5", "m|a=} # {x=\"1\"} 2|b={,=# 5"}));
}

TEST(Exposition, values_are_nan_and_infinities_in_any_case_with_a_sign) {
  EXPECT_EQ(said("m NaN\nm nan\nm +Inf\nm -inf\nm INF\nm Infinity\nm -INFINITY\n"),
            (Said{"m nan", "m nan", "m inf", "m -inf", "m inf", "m inf", "m -inf"}));
  EXPECT_EQ(said("m -nan\n"), Said{"m nan"});
}

TEST(Exposition, values_that_are_no_number_are_malformed) {
  for (const char* value :
       {"0x1p3", "0x10", "1_000", "1e", "1e+", ".", "-", "+", "++1", "+-1", "--1", "1,5",
        "NaN(0x7ff0000000000002)", "infinit", "na", "1.2.3", "1e400", "-1e400", "\"1\""}) {
    EXPECT_EQ(said(std::string("m ") + value), Said{"1:3 a number"}) << value;
  }
  EXPECT_EQ(said("m 1e-400\nm -1e-400\nm 1. \nm .5\nm 1E3\n"),
            (Said{"m 0", "m -0", "m 1", "m 0.5", "m 1000"}));
}

TEST(Exposition, quoted_names_are_accepted_for_metrics_and_labels) {
  EXPECT_EQ(said(R"({"my.metric",a="1"} 2)"), Said{"my.metric|a=1 2"});
  EXPECT_EQ(said(R"({ "µ \"q\"" , "a.b" = "1" , } 2)"), Said{"µ \"q\"|a.b=1 2"});
  EXPECT_EQ(said(R"({a="1","m"} 2)"), Said{"m|a=1 2"});
  EXPECT_EQ(said("{\"m\"} 2\nm{\"a b\"=\"1\"} 3\n# TYPE \"my.metric\" gauge"),
            (Said{"m 2", "m|a b=1 3", "type my.metric gauge"}));
}

TEST(Exposition, a_metric_name_must_stand_once) {
  const std::string twice = R"(m{"n",a="1"} 2)";
  const std::string quoted = R"({"n",a="1"} 2)";
  EXPECT_EQ(said(twice), Said{"1:6 '=' after the label name"});
  // … also when the block has been seen in the other place before.
  EXPECT_EQ(said(quoted + "\n" + twice + "\n" + quoted),
            (Said{"n|a=1 2", "2:6 '=' after the label name", "n|a=1 2"}));
  EXPECT_EQ(said("{a=\"1\"} 2\nm{a=\"1\"} 2\n{a=\"1\"} 2\n{} 2\n{\"\"} 2\n"),
            (Said{"1:1 a metric name", "m|a=1 2", "3:1 a metric name", "4:1 a metric name",
                  "5:2 a metric name"}));
  EXPECT_EQ(said(R"({"m","n"} 2)"), Said{"1:9 '=' after the label name"});
}

TEST(Exposition, a_malformed_line_tells_where_and_what_and_the_others_are_used) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"1m 1", "1:1 a metric name"},
      {"  -m 1", "1:3 a metric name"},
      {"m-n 1", "1:2 '{' or a blank after the metric name"},
      {"m", "1:2 a value"},
      {"m ", "1:3 a value"},
      {"m{a=\"1\"}", "1:9 a value"},
      {"m{a=\"1\"} # {} 1", "1:10 a number"},
      {"m x", "1:3 a number"},
      {"m 1 x", "1:5 a timestamp in whole milliseconds"},
      {"m 1 1.5", "1:5 a timestamp in whole milliseconds"},
      {"m 1 9223372036854775808", "1:5 a timestamp in whole milliseconds"},
      {"m 1 2 3", "1:7 the end of the line"},
      {"m{", "1:3 a label name"},
      {"m{1a=\"1\"} 1", "1:3 a label name"},
      {"m{,} 1", "1:3 a label name"},
      {"m{a:b=\"1\"} 1", "1:4 '=' after the label name"},
      {"m{a} 1", "1:4 '=' after the label name"},
      {"m{a=1} 1", "1:5 '\"' before the label value"},
      {"m{a=\"1} 1", "1:10 a closing '\"'"},
      {"m{a=\"1\\\"} 1", "1:12 a closing '\"'"},
      {"m{a=\"1\\", "1:8 a closing '\"'"},
      {"m{a=\"1\" b=\"2\"} 1", "1:9 ',' or '}'"},
      {"m{a=\"1\"", "1:8 ',' or '}'"},
      {"m{a=\"1\",,b=\"2\"} 1", "1:9 a label name"},
      {"m{\"\"=\"1\"} 1", "1:3 a label name"},
      {"m{a=\"1\",b=\"2\",a=\"3\"} 1", "1:15 a label name that this line does not have yet"},
      {"m{a=\"x\xff\"} 1", "1:7 valid UTF-8"},
      {"m 1 # x", "1:7 '{' of an exemplar"},
      {"m 1 # {a=\"1\"}", "1:14 a value"},
      {"m 1 # {a=\"1\"} x", "1:15 a number"},
      {"m 1 # {a=\"1\"} 1 x", "1:17 a timestamp in seconds"},
      {"m 1 # {a=\"1\"} 1 2 3", "1:19 the end of the line"},
      {"m 1 # {\"n\"} 1", "1:11 '=' after the label name"},
      {"# TYPE", "1:7 a metric name"},
      {"# TYPE m", "1:9 a blank after the metric name"},
      {"# TYPE m ", "1:10 a metric type"},
      {"# TYPE m Gauge", "1:10 a metric type"},
      {"# TYPE m gauge x", "1:16 the end of the line"},
      {"# TYPE \"\" gauge", "1:8 a metric name"},
  };
  for (const auto& [line, expected] : cases) {
    EXPECT_EQ(said(std::string(line) + "\nok 1\n"), (Said{expected, "ok 1"})) << line;
    EXPECT_EQ(said(std::string(line) + "\r\nok 1"), (Said{expected, "ok 1"})) << line;
  }
}

TEST(Exposition, label_values_must_be_utf8_by_the_letter) {
  for (const char* good : {"é", "\u20ac", "\U0001F600", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(said(std::string("m{a=\"") + good + "\"} 1"),
              Said{std::string("m|a=") + good + " 1"});
  }
  // A lone continuation, overlong forms, a surrogate, above U+10FFFF, and sequences cut short.
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3",
                          "\xe2\x82", "\xf0\x9f\x98", "\xe2\x28\xa1"}) {
    EXPECT_EQ(said(std::string("m{a=\"") + bad + "\"} 1"), Said{"1:6 valid UTF-8"});
  }
}

TEST(Exposition, comments_help_and_unit_lines_say_nothing) {
  EXPECT_EQ(said("# a comment\n#\n#TYPE m gauge\n# HELP m in % \xff\n# HELP\n# UNIT m bytes\n# "
                 "TYPES m x\nm 1\n"),
            Said{"m 1"});
}

TEST(Exposition, types_of_both_formats_are_told) {
  EXPECT_EQ(said("# TYPE m counter\n#\tTYPE  n\tuntyped \n# TYPE o stateset\n"),
            (Said{"type m counter", "type n untyped", "type o stateset"}));
}

TEST(Exposition, exemplars_are_checked_and_dropped) {
  EXPECT_EQ(said("m{a=\"1\"} 5 # {id=\"x} # {\"} 0.5 1.5\nm 5 100 # {} 1\nm{a=\"1\"} 6 # { "
                 "id=\"2\", } 1\n"),
            (Said{"m|a=1 5", "m 5 @100", "m|a=1 6"}));
}

TEST(Exposition, open_metrics_timestamps_are_seconds_rounded_to_milliseconds) {
  EXPECT_EQ(said("m 1 1726839813.016397\nm 1 1.5e3\nm 1 -0.0006\n# EOF\n", kOpenMetrics),
            (Said{"m 1 @1726839813016", "m 1 @1500000", "m 1 @-1"}));
  for (const char* bad : {"NaN", "Inf", "9223372036854775.808", "x"}) {
    EXPECT_EQ(said(std::string("m 1 ") + bad + "\n# EOF", kOpenMetrics),
              Said{"1:5 a timestamp in seconds"});
  }
  // Just below the end of 64 bits, where doubles are 1024 apart.
  EXPECT_EQ(said("m 1 9223372036854774\n# EOF", kOpenMetrics), Said{"m 1 @9223372036854773760"});
}

TEST(Exposition, open_metrics_ends_with_eof_and_nothing_follows) {
  EXPECT_EQ(said("m 1\n", kOpenMetrics), (Said{"m 1", "2:1 '# EOF' at the end"}));
  EXPECT_EQ(said("", kOpenMetrics), Said{"1:1 '# EOF' at the end"});
  EXPECT_EQ(said("m 1\n# EOF", kOpenMetrics), Said{"m 1"});
  EXPECT_EQ(said("m 1\n# EOF\n\n", kOpenMetrics), Said{"m 1"});
  EXPECT_EQ(said("m 1\n# EOF\nm 2\nm 3\n", kOpenMetrics),
            (Said{"m 1", "3:1 nothing after '# EOF'"}));
}

TEST(Exposition, in_the_text_format_eof_is_only_noted) {
  ExpositionParser parser;
  Record record;
  EXPECT_TRUE(parser.parse("# EOF\nm 2\n", record).saw_eof_marker);
  EXPECT_FALSE(parser.parse("m 2\n# EOF x\n", record).saw_eof_marker);
  EXPECT_EQ(record.said, (Said{"m 2", "m 2"}));
}

TEST(Exposition, a_line_of_exactly_the_limit_is_used_and_one_byte_more_is_not) {
  const Options options{.line_bytes_max = 8};
  EXPECT_EQ(
      said("m 123456\r\nm 1234567\r\nm 1\n# 345678\n# 3456789\n", options),
      (Said{"m 123456", "2:9 at most 8 bytes in a line", "m 1", "5:9 at most 8 bytes in a line"}));
}

TEST(Exposition, labels_are_used_up_to_the_limit_and_the_line_skipped_past_it) {
  const Options options{.labels_per_sample_max = 2};
  EXPECT_EQ(said("m{a=\"1\",b=\"2\"} 1\nm{a=\"1\",b=\"2\",c=\"3\"} 1\nm{a=\"1\"} 1\n", options),
            (Said{"m|a=1|b=2 1", "2:15 at most 2 labels", "m|a=1 1"}));
}

TEST(Exposition, a_label_value_is_used_up_to_the_limit_counted_without_escapes) {
  const Options options{.label_value_bytes_max = 3};
  EXPECT_EQ(said("m{a=\"123\"} 1\nm{a=\"1234\"} 1\nm{a=\"\\n\\n\\n\"} 1\n", options),
            (Said{"m|a=123 1", "2:5 at most 3 bytes in a label value", "m|a=\n\n\n 1"}));
}

TEST(Exposition, label_sets_are_numbered_by_first_sight_across_texts_until_cleared) {
  ExpositionParser parser;
  Record record;
  parser.parse("m 0\nm{a=\"1\"} 0\nm{a=\"2\"} 0\nn{a=\"1\"} 0\n", record);
  parser.parse("m{a=\"2\"} 0\nm{a=\"3\"} 0\nm{} 0\n", record);
  EXPECT_EQ(record.ids, (std::vector<std::uint32_t>{0, 1, 2, 1, 2, 3, 0}));
  parser.clear();
  record.ids.clear();
  parser.parse("m{a=\"3\"} 0\n", record);
  EXPECT_EQ(record.ids, std::vector<std::uint32_t>{1});
}

TEST(Exposition, label_sets_past_the_limit_are_right_but_not_kept) {
  ExpositionParser parser({.label_sets_max = 1});
  Record record;
  for (int i = 0; i < 2; ++i)
    parser.parse("m{a=\"1\"} 1\nm{a=\"\\\\2\"} 2\nm{a=\"3\"} 3\nm 4\n", record);
  const Said once = {"m|a=1 1", "m|a=\\2 2", "m|a=3 3", "m 4"};
  Said twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(record.said, twice);
  constexpr std::uint32_t none = LabelSet::kNotKept;
  EXPECT_EQ(record.ids, (std::vector<std::uint32_t>{1, none, none, 0, 1, none, none, 0}));
}

TEST(Exposition, kept_labels_outlive_the_text_they_came_from) {
  struct Keep : ExpositionSink {
    void sample(const ExpositionSample& sample) override { sets.push_back(sample.labels); }
    void malformed(const ExpositionError&) override { FAIL(); }
    std::vector<const LabelSet*> sets;
  } keep;
  ExpositionParser parser;
  for (int i = 0; i < 300; ++i) {
    std::string text =
        "m{plain=\"" + std::to_string(i) + "\",escaped=\"\\\\" + std::to_string(i) + "\"} 1";
    parser.parse(text, keep);
    text.assign(text.size(), 'x');
  }
  ExpositionParser moved = std::move(parser);
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(keep.sets[i]->labels[0].value, std::to_string(i));
    EXPECT_EQ(keep.sets[i]->labels[1].value, "\\" + std::to_string(i));
  }
}

TEST(ExpositionFormat, the_content_type_decides_and_without_one_the_end_of_the_text) {
  using enum ExpositionFormat;
  EXPECT_EQ(exposition_format("application/openmetrics-text; version=1.0.0; charset=utf-8", ""),
            kOpenMetrics);
  EXPECT_EQ(exposition_format(" Application/OpenMetrics-Text ;version=1.0.0", "m 1\n"),
            kOpenMetrics);
  EXPECT_EQ(exposition_format("text/plain; version=0.0.4", "m 1\n# EOF\n"), kPrometheusText);
  EXPECT_EQ(exposition_format("", "m 1\n# EOF\n"), kOpenMetrics);
  EXPECT_EQ(exposition_format("", "# EOF"), kOpenMetrics);
  EXPECT_EQ(exposition_format("", "m 1\n# EOF\nm 2"), kPrometheusText);
  EXPECT_EQ(exposition_format("", "m{a=\"# EOF"), kPrometheusText);
  EXPECT_EQ(exposition_format("", ""), kPrometheusText);
}

// The parser remembers blocks; a parser that may keep none must say the same of any text.
TEST(Exposition, remembering_blocks_changes_nothing_on_mutated_texts) {
  const std::string seed =
      "# TYPE m gauge\nm{a=\"1\",b=\"}\"} 1.5\nm{a=\"2\",b=\"}\"} 2\nm{a=\"1\",b=\"}\"} 3 # "
      "{t=\"}\"} 1\n"
      "{\"n\",a=\"1\"} 4\n{\"n\",a=\"2\"} 5\nn{a=\"\\\"}\"} 6\nn{a=\"\\\"}\"} "
      "7\nm{a=\"1\",b=\"}\"} 1 9\nk 1\n";
  const std::string bytes = "\"\\{}#=, \n\rm1";
  std::mt19937 random(20240607);
  ExpositionParser warm({.label_sets_max = 40});
  std::size_t malformed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seed;
    for (std::uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = bytes[random() % bytes.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 3);
          break;
        case 2:
          text.insert(at, 1, bytes[random() % bytes.size()]);
          break;
        default:
          text.insert(at, seed.substr(random() % seed.size(), random() % 30));
      }
    }
    Record fast;
    Record slow;
    malformed += warm.parse(text, fast).malformed;
    ExpositionParser({.label_sets_max = 0}).parse(text, slow);
    ASSERT_EQ(fast.said, slow.said) << text;
    if (round % 100 == 99) warm.clear();
  }
  EXPECT_GT(malformed, 20'000U);  // the mutations do reach the error paths
}

}  // namespace
}  // namespace flopsight::wire
