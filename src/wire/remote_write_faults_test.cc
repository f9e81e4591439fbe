#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/remote_write.h"
#include "wire/test_remote_write.h"

namespace flopsight::wire {
namespace {

using base::ErrorCode;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::pair<std::string, std::string>> rejections_of(RemoteWriteVersion version,
                                                               const std::string& message,
                                                               RemoteWriteLimits limits = {}) {
  Decoded decoded = decode(version, message, limits);
  EXPECT_TRUE(decoded.status.ok());
  EXPECT_EQ(decoded.totals.series_rejected, decoded.rejections.size());
  return decoded.rejections;
}

void expect_error(RemoteWriteVersion version, const std::string& message,
                  const std::string& expected, ErrorCode code = ErrorCode::kInvalid,
                  RemoteWriteLimits limits = {}) {
  const Decoded decoded = decode(version, message, limits);
  ASSERT_FALSE(decoded.status.ok()) << expected;
  EXPECT_EQ(decoded.status.error().code, code);
  EXPECT_EQ(decoded.status.error().message, expected);
}

TEST(RemoteWriteRules, a_series_that_breaks_one_is_told_and_the_others_go_on) {
  const Decoded decoded =
      decode(kV1, up("") + series_v1(label("gpu", "0") + sample(1, 1) + sample(2, 2)) + up(""));
  EXPECT_TRUE(decoded.status.ok());
  EXPECT_EQ(decoded.seen.size(), 2U);
  EXPECT_THAT(decoded.rejections, ElementsAre(Pair("{gpu=\"0\"}", "no metric name")));
  EXPECT_EQ(decoded.totals.samples_rejected, 2U);
  EXPECT_EQ(decoded.totals.samples, 2U);
}

TEST(RemoteWriteRules, hold_for_labels_of_1_0) {
  const auto reason = [](const std::string& labels) {
    const auto rejections = rejections_of(kV1, series_v1(labels));
    return rejections.empty() ? "" : rejections[0].second;
  };
  const std::string name = label("__name__", "up");
  EXPECT_EQ(reason(""), "no metric name");
  EXPECT_EQ(reason(label("__name__", "")), "an empty metric name");
  EXPECT_EQ(reason(label("__name__", "\xff")), "a metric name that is not UTF-8");
  EXPECT_EQ(reason(name + label("", "x")), "an empty label name");
  EXPECT_EQ(reason(name + label("a", "1") + label("a", "2")), "a repeated label name");
  EXPECT_EQ(reason(name + label("a", "1") + label("b", "") + label("a", "2")),
            "a repeated label name");
  EXPECT_EQ(reason(name + label("__name__", "up")), "a repeated label name");
  EXPECT_EQ(reason(name + bytes_field(1, bytes_field(2, "x") + bytes_field(1, "__name__"))),
            "a repeated label name");
  EXPECT_EQ(reason(name + label("a\xc0\x80", "")), "a label name that is not UTF-8");
  EXPECT_EQ(reason(name + label("a", "\xed\xa0\x80")), "a label value that is not UTF-8");
  EXPECT_EQ(reason(name + label("b", "zwölf 🌍") + label("a", "")), "");
}

TEST(RemoteWriteRules, hold_for_labels_of_2_0) {
  const auto reason = [](const std::vector<std::uint32_t>& numbers) {
    const auto rejections = rejections_of(
        kV2, symbols({"", "__name__", "up", "gpu", "\xff", "__name__"}) + series_v2(refs(numbers)));
    return rejections.empty() ? "" : rejections[0].second;
  };
  EXPECT_EQ(reason({}), "no metric name");
  EXPECT_EQ(reason({3, 2}), "no metric name");
  EXPECT_EQ(reason({1}), "no metric name");
  EXPECT_EQ(reason({1, 0}), "an empty metric name");
  EXPECT_EQ(reason({1, 2, 3}), "an odd number of label references");
  EXPECT_EQ(reason({1, 2, 0, 2}), "an empty label name");
  EXPECT_EQ(reason({1, 2, 3, 2, 3, 0}), "a repeated label name");
  EXPECT_EQ(reason({1, 2, 5, 2}), "a repeated label name");
  EXPECT_EQ(reason({1, 2, 3, 4}), "a label value that is not UTF-8");
  EXPECT_EQ(reason({5, 2, 3, 0}), "");
}

TEST(RemoteWriteRules, a_series_of_wrong_labels_is_rejected_each_time) {
  const std::string bad = up(label("", "x"));
  EXPECT_EQ(rejections_of(kV1, bad + bad + bad).size(), 3U);
  const std::string series = series_v2(refs({1, 2, 0, 2}));
  EXPECT_EQ(rejections_of(kV2, symbols({"", "__name__", "up"}) + series + series).size(), 2U);
}

TEST(RemoteWriteRules, lengths_at_the_limit_pass_and_one_more_is_rejected) {
  const RemoteWriteLimits limits{
      .labels_per_series_max = 3, .label_name_bytes_max = 10, .label_value_bytes_max = 5};
  const std::string a = label("a", "1");
  const std::string b = label("b", "1");
  const std::string good = up(label("0123456789", "12345"));
  EXPECT_THAT(rejections_of(kV1, up(a + b) + good, limits), IsEmpty());
  EXPECT_THAT(
      rejections_of(kV1,
                    up(a + b + label("c", "")) + up(label("01234567890", "")) +
                        up(label("a", "123456")) + series_v1(label("__name__", "abcdef")),
                    limits),
      ElementsAre(Pair("{__name__=\"up\", a=\"1\", b=\"1\", c=\"\"}", "more than 3 labels"),
                  Pair("{__name__=\"up\", 01234567890=\"\"}", "a label name of over 10 bytes"),
                  Pair("{__name__=\"up\", a=\"123456\"}", "a label value of over 5 bytes"),
                  Pair("{__name__=\"abcdef\"}", "a metric name of over 5 bytes")));
  EXPECT_THAT(rejections_of(kV2,
                            symbols({"", "__name__", "up", "a", "b", "c"}) +
                                series_v2(refs({1, 2, 3, 0, 4, 0, 5, 0})),
                            limits),
              ElementsAre(Pair(testing::_, "more than 3 labels")));
}

TEST(RemoteWriteRules, a_rejected_series_is_shown_printable_and_short) {
  const auto rejections = rejections_of(
      kV1, series_v1(label("a\x1b[2J", "b\nc") + label("long", std::string(900, 'x'))));
  ASSERT_EQ(rejections.size(), 1U);
  EXPECT_TRUE(rejections[0].first.starts_with("{a?[2J=\"b?c\", long=\"xxx")) << rejections[0].first;
  EXPECT_EQ(rejections[0].first.size(), 203U);  // and the three dots
}

TEST(RemoteWriteBroken, a_message_says_at_which_byte_and_what_came_before_is_handed_over) {
  const std::string good = up("");
  const std::string at = "at byte " + std::to_string(good.size());
  const Decoded decoded = decode(kV1, good +
                                          "\x0a\x05"
                                          "abc");
  EXPECT_EQ(decoded.seen.size(), 1U);
  EXPECT_EQ(decoded.totals.samples, 1U);
  ASSERT_FALSE(decoded.status.ok());
  EXPECT_EQ(decoded.status.error().message,
            "at byte " + std::to_string(good.size() + 1) + ": a length of 5, past the end");

  expect_error(kV1, good + "\x03", at + ": no field number");
  expect_error(kV1, good + "\x4b",
               "at byte " + std::to_string(good.size() + 1) + ": the unknown wire type 3");
  expect_error(kV1, good + "\x80", at + ": a number that does not end");
  expect_error(kV1, good + std::string(11, '\xff'), at + ": a number that does not end");
  expect_error(kV1, good + "\x49\x01",
               "at byte " + std::to_string(good.size() + 1) + ": 8 bytes, past the end");
  expect_error(kV1, "\x0d\x01\x01\x01\x01", "at byte 1: field 1 with wire type 5");
  // 2^32 + 1 is no 1.
  expect_error(kV1,
               "\x0a\x81\x80\x80\x80\x10"
               "a",
               "at byte 1: a length of 4294967297, past the end");
}

TEST(RemoteWriteBroken, a_series_says_at_which_byte) {
  expect_error(kV1, series_v1(label("__name__", "up") + "\x12\x09"),
               "at byte 19: a length of 9, past the end");
  expect_error(kV1,
               series_v1(label("__name__", "up") + bytes_field(2,
                                                               "\x09"
                                                               "abc")),
               "at byte 21: 8 bytes, past the end");
  expect_error(kV1,
               series_v1(label("__name__", "up") + bytes_field(1,
                                                               "\x0a\x05"
                                                               "a")),
               "at byte 21: a length of 5, past the end");
  expect_error(kV1, series_v1(varint_field(2, 1)), "at byte 3: field 2 with wire type 0");
  // Labels that had to be copied together: the byte is the one where the series starts.
  expect_error(kV1,
               series_v1(label("__name__", "up") + sample(1, 1) +
                         bytes_field(1,
                                     "\x0a\x05"
                                     "a")),
               "at byte 2: a length of 5, past the end");
}

TEST(RemoteWriteBroken, a_reference_without_a_symbol_is_no_message) {
  const std::string texts = symbols({"", "__name__", "up"});  // 2 + 10 + 4 bytes
  expect_error(kV2, texts + series_v2(refs({1, 2, 3, 0})), "at byte 22: symbol 3 of 3");
  expect_error(kV2, texts + series_v2(refs({1, 4294967295})), "at byte 21: symbol 4294967295 of 3");
  expect_error(kV2, series_v2(refs({0, 0})), "at byte 4: symbol 0 of 0");
  expect_error(kV2, texts + series_v2(bytes_field(1, "\x01\x82")),
               "at byte 20: a number that does not end");
}

TEST(RemoteWriteBroken, the_first_symbol_is_empty) {
  expect_error(kV2, symbols({"up"}), "at byte 0: a first symbol that is not empty");
}

TEST(RemoteWriteBroken, the_other_version_is_told_and_not_taken_for_an_empty_message) {
  expect_error(kV2, up(""), "at byte 0: a field of version 1.0 in a message of version 2.0");
  expect_error(kV1, symbols({"", "a"}),
               "at byte 0: a field of version 2.0 in a message of version 1.0");
}

TEST(RemoteWriteBroken, a_message_cut_short_anywhere_is_no_message_or_a_shorter_one) {
  const std::string v1 = up(label("gpu", "0")) + up(label("gpu", "1"));
  const std::string v2 = symbols({"", "__name__", "up", "gpu", "0"}) +
                         series_v2(refs({1, 2, 3, 4}) + sample(1, 1)) +
                         series_v2(refs({1, 2}) + sample(1, 1));
  for (const auto& [version, message] : {std::pair(kV1, v1), std::pair(kV2, v2)}) {
    std::size_t whole = 0;
    for (std::size_t size = 0; size < message.size(); ++size) {
      const Decoded decoded = decode(version, message.substr(0, size));
      EXPECT_LE(decoded.seen.size(), 1U);
      if (decoded.status.ok()) ++whole;
    }
    EXPECT_LE(whole, 7U);  // between fields
  }
}

TEST(RemoteWriteLimits, series_samples_and_symbols_past_them_stop_the_message) {
  const std::string one = up("");
  RemoteWriteLimits limits{.series_max = 2};
  EXPECT_TRUE(decode(kV1, one + one, limits).status.ok());
  const Decoded decoded = decode(kV1, one + one + one, limits);
  EXPECT_EQ(decoded.seen.size(), 2U);
  expect_error(kV1, one + one + one,
               "at byte " + std::to_string(2 * one.size() + 2) + ": more than 2 series",
               ErrorCode::kLimit, limits);

  limits = {.samples_max = 1};
  EXPECT_TRUE(decode(kV1, one, limits).status.ok());
  EXPECT_EQ(decode(kV1, one + one, limits).status.error().code, ErrorCode::kLimit);

  limits = {.symbols_max = 3};
  EXPECT_TRUE(decode(kV2, symbols({"", "a", "b"}), limits).status.ok());
  expect_error(kV2, symbols({"", "a", "b", "c"}), "at byte 8: more than 3 symbols",
               ErrorCode::kLimit, limits);
}

TEST(RemoteWriteLimits, are_counted_anew_for_each_message) {
  RemoteWriteDecoder decoder(7, {.series_max = 1});
  Transcript sink;
  RemoteWriteTotals totals;
  EXPECT_TRUE(decoder.decode(kV1, up(""), sink, totals).ok());
  EXPECT_TRUE(decoder.decode(kV1, up(""), sink, totals).ok());
  EXPECT_EQ(totals.series, 2U);
}

}  // namespace
}  // namespace flopsight::wire
