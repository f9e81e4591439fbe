#include "wire/remote_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "wire/test_remote_write.h"

namespace flopsight::wire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(RemoteWrite, a_series_of_1_0_comes_with_its_name_labels_and_samples) {
  const Decoded decoded =
      decode(kV1, series_v1(label("Hostname", "n1") + label("__name__", "DCGM_FI_DEV_GPU_UTIL") +
                            label("gpu", "0") + label("pod", "") + sample(97, 1'700'000'000'000) +
                            sample(98.5, 1'700'000'015'000)));
  ASSERT_TRUE(decoded.status.ok());
  ASSERT_EQ(decoded.seen.size(), 1U);
  const Seen& one = decoded.seen[0];
  EXPECT_EQ(one.metric, "DCGM_FI_DEV_GPU_UTIL");
  EXPECT_THAT(one.labels, ElementsAre(Pair("Hostname", "n1"), Pair("gpu", "0"), Pair("pod", "")));
  ASSERT_EQ(one.samples.size(), 2U);
  EXPECT_EQ(one.samples[0].value, 97);
  EXPECT_EQ(one.samples[0].timestamp_milliseconds, 1'700'000'000'000);
  EXPECT_EQ(one.samples[1].value, 98.5);
  EXPECT_EQ(decoded.totals.series, 1U);
  EXPECT_EQ(decoded.totals.samples, 2U);
}

TEST(RemoteWrite, a_series_of_2_0_comes_with_its_name_labels_and_samples) {
  const Decoded decoded =
      decode(kV2, symbols({"", "__name__", "up", "gpu", "0", "Hostname", "n1"}) +
                      series_v2(refs({5, 6, 1, 2, 3, 4}) + sample(1, -5)));
  ASSERT_TRUE(decoded.status.ok());
  ASSERT_EQ(decoded.seen.size(), 1U);
  EXPECT_EQ(decoded.seen[0].metric, "up");
  EXPECT_THAT(decoded.seen[0].labels, ElementsAre(Pair("Hostname", "n1"), Pair("gpu", "0")));
  ASSERT_EQ(decoded.seen[0].samples.size(), 1U);
  EXPECT_EQ(decoded.seen[0].samples[0].timestamp_milliseconds, -5);
}

TEST(RemoteWrite, an_empty_message_is_an_empty_message) {
  for (const auto version : {kV1, kV2}) {
    const Decoded decoded = decode(version, "");
    EXPECT_TRUE(decoded.status.ok());
    EXPECT_THAT(decoded.seen, IsEmpty());
  }
}

TEST(RemoteWrite, a_value_keeps_its_bits_and_what_is_left_out_is_zero) {
  const auto stale = std::bit_cast<double>(std::uint64_t{0x7ff0000000000002});
  const Decoded decoded =
      decode(kV1, up("", stale) + series_v1(label("__name__", "zero") + bytes_field(2, "")) +
                      up("", -0.0) + up("", std::numeric_limits<double>::infinity()));
  ASSERT_EQ(decoded.seen.size(), 4U);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(decoded.seen[0].samples[0].value), 0x7ff0000000000002U);
  EXPECT_EQ(decoded.seen[1].samples[0].value, 0);
  EXPECT_EQ(decoded.seen[1].samples[0].timestamp_milliseconds, 0);
  EXPECT_TRUE(std::signbit(decoded.seen[2].samples[0].value));
  EXPECT_TRUE(std::isinf(decoded.seen[3].samples[0].value));
}

TEST(RemoteWrite, an_unwanted_series_is_counted_and_its_labels_are_not_looked_at) {
  const std::string broken_label = bytes_field(1,
                                               "\x0a\x05"
                                               "ab");
  const Decoded decoded = decode(kV1, series_v1(label("__name__", "unwanted") + broken_label +
                                                label("", "") + sample(1, 1) + sample(2, 2)));
  EXPECT_TRUE(decoded.status.ok());
  EXPECT_EQ(decoded.totals.series_unwanted, 1U);
  EXPECT_EQ(decoded.totals.samples_unwanted, 2U);
  EXPECT_EQ(decoded.totals.series, 0U);
}

TEST(RemoteWrite, what_is_not_used_is_counted) {
  const Decoded v1 = decode(kV1, bytes_field(3, "\x08\x01") + varint_field(2, 1) +
                                     series_v1(label("__name__", "up") + bytes_field(3, "e") +
                                               bytes_field(4, "hh") + bytes_field(4, "h")) +
                                     bytes_field(1000, "mimir"));
  ASSERT_TRUE(v1.status.ok());
  EXPECT_EQ(v1.totals.metadata, 1U);
  EXPECT_EQ(v1.totals.histograms, 2U);
  EXPECT_EQ(v1.totals.exemplars, 1U);
  ASSERT_EQ(v1.seen.size(), 1U);
  EXPECT_EQ(v1.seen[0].histograms, 2U);
  EXPECT_EQ(v1.seen[0].exemplars, 1U);

  const Decoded v2 = decode(
      kV2, symbols({"", "__name__", "up"}) +
               series_v2(refs({1, 2}) + bytes_field(3, "h") + bytes_field(4, "e") +
                         bytes_field(4, "e") + bytes_field(5, "\x08\x01") + varint_field(6, 9)));
  ASSERT_TRUE(v2.status.ok());
  EXPECT_EQ(v2.totals.metadata, 1U);
  EXPECT_EQ(v2.totals.histograms, 1U);
  EXPECT_EQ(v2.totals.exemplars, 2U);
}

TEST(RemoteWrite, a_series_without_samples_is_handed_over_and_counted) {
  const Decoded decoded = decode(kV1, series_v1(label("__name__", "up")));
  ASSERT_EQ(decoded.seen.size(), 1U);
  EXPECT_THAT(decoded.seen[0].samples, IsEmpty());
  EXPECT_EQ(decoded.totals.series, 1U);
}

TEST(RemoteWriteKey, is_the_same_for_all_metrics_with_the_same_labels_and_no_others) {
  const std::string gpu = label("gpu", "0");
  const auto keys = [&](RemoteWriteVersion version, const std::string& message) {
    std::vector<LabelsKey> out;
    for (const Seen& one : decode(version, message).seen) out.push_back(one.key);
    return out;
  };
  const auto v1 = keys(kV1, series_v1(label("__name__", "a") + gpu) +
                                series_v1(label("__name__", "another") + gpu) +
                                series_v1(gpu + label("__name__", "a")) +
                                series_v1(label("__name__", "a") + label("gpu", "1")) +
                                series_v1(label("__name__", "a") + label("gp", "u0")) +
                                series_v1(label("__name__", "a")));
  ASSERT_EQ(v1.size(), 6U);
  EXPECT_EQ(v1[0], v1[1]);
  EXPECT_EQ(v1[0], v1[2]);
  EXPECT_NE(v1[0], v1[3]);
  EXPECT_NE(v1[0], v1[4]);
  EXPECT_NE(v1[0], v1[5]);

  const auto v2 = keys(kV2, symbols({"", "__name__", "a", "gpu", "0", "1", "another"}) +
                                series_v2(refs({1, 2, 3, 4})) + series_v2(refs({1, 6, 3, 4})) +
                                series_v2(refs({3, 4, 1, 2})) + series_v2(refs({1, 2, 3, 5})));
  ASSERT_EQ(v2.size(), 4U);
  EXPECT_EQ(v2[0], v2[1]);
  EXPECT_EQ(v2[0], v2[2]);
  EXPECT_NE(v2[0], v2[3]);
}

TEST(RemoteWriteKey, does_not_depend_on_the_symbols_around_it_nor_on_what_was_read_before) {
  RemoteWriteDecoder decoder(7);
  Transcript sink;
  RemoteWriteTotals totals;
  const auto read = [&](const std::string& message) {
    EXPECT_TRUE(decoder.decode(kV2, message, sink, totals).ok());
    return sink.seen.back();
  };
  const Seen first =
      read(symbols({"", "__name__", "a", "gpu", "0"}) + series_v2(refs({1, 2, 3, 4})));
  // The same references mean other labels now.
  const Seen other =
      read(symbols({"", "__name__", "a", "gpu", "1"}) + series_v2(refs({1, 2, 3, 4})));
  const Seen moved =
      read(symbols({"", "0", "gpu", "x", "__name__", "b"}) + series_v2(refs({2, 1, 4, 5})));
  EXPECT_EQ(first.key, moved.key);
  EXPECT_EQ(first.labels, moved.labels);
  EXPECT_NE(first.key, other.key);
  EXPECT_THAT(other.labels, ElementsAre(Pair("gpu", "1")));
}

TEST(RemoteWriteKey, depends_on_the_seed_only) {
  for (const auto& [version, message] :
       {std::pair(kV1, up(label("gpu", "0"))),
        std::pair(kV2,
                  symbols({"", "__name__", "up", "gpu", "0"}) + series_v2(refs({1, 2, 3, 4})))}) {
    const LabelsKey key = decode(version, message, {}, 1).seen[0].key;
    EXPECT_EQ(key, decode(version, message, {}, 1).seen[0].key);
    EXPECT_NE(key, decode(version, message, {}, 2).seen[0].key);
  }
}

TEST(RemoteWrite, labels_may_stand_anywhere_in_a_series) {
  const Decoded decoded = decode(
      kV1, series_v1(sample(1, 1) + label("gpu", "0") + sample(2, 2) + label("__name__", "up") +
                     bytes_field(3, "") + label("z", "26") + sample(3, 3)) +
               up(label("gpu", "0") + label("z", "26")));
  ASSERT_TRUE(decoded.status.ok());
  ASSERT_EQ(decoded.seen.size(), 2U);
  EXPECT_EQ(decoded.seen[0].metric, "up");
  EXPECT_THAT(decoded.seen[0].labels, ElementsAre(Pair("gpu", "0"), Pair("z", "26")));
  EXPECT_EQ(decoded.seen[0].samples.size(), 3U);
  EXPECT_EQ(decoded.seen[0].key, decoded.seen[1].key);
}

// What was read lately is taken as a whole: it must not matter in which order series come, nor what stands in between.
TEST(RemoteWrite, series_are_read_the_same_alone_and_among_others_that_are_like_them) {
  const std::string gpu_0 = label("Hostname", "n1") + label("UUID", "GPU-0"), gpu_1 = label("Hostname", "n1") + label("UUID", "GPU-1");
  const std::string pod = label("pod", "train"), shorter = label("pod", "trai"), more = label("zone", "a");
  const auto name = [](const std::string& text) { return label("__name__", text); };
  const std::string odd_name = bytes_field(1, bytes_field(2, "up") + bytes_field(1, "__name__"));
  const std::string at = sample(1, 1'000);
  const std::vector<std::string> kinds = {
      gpu_0 + name("up") + pod + at,        gpu_0 + name("down") + pod + at,          gpu_1 + name("up") + pod + at,
      gpu_1 + name("up") + shorter + at,    gpu_0 + name("up") + pod + more + at,     gpu_0 + name("up") + pod + at + more,
      gpu_0 + name("up") + at + pod,        gpu_0 + pod + name("up") + at,            gpu_0 + odd_name + pod + at,
      name("up") + gpu_0 + pod + at,        gpu_0 + name("up") + name("x") + pod + at, gpu_0 + name("") + pod + at,
      gpu_0 + pod + at,                     gpu_0 + name("up") + pod,                  gpu_0 + name("up") + pod + at + at,
      gpu_0 + name(std::string(200, 'u')) + pod + at,
  };
  const auto read = [](RemoteWriteDecoder& decoder, const std::string& series) {
    Transcript recorder;
    RemoteWriteTotals totals;
    EXPECT_TRUE(decoder.decode(kV1, series_v1(series), recorder, totals).ok());
    std::string text = std::to_string(totals.series_rejected) + " ";
    for (const Seen& seen : recorder.seen) {
      text += seen.metric + " " + std::to_string(seen.key.low) + " " + std::to_string(seen.samples.size());
      for (const auto& [key, value] : seen.labels) text += " " + key + "=" + value;
    }
    return text;
  };
  std::vector<std::string> alone;
  for (const std::string& series : kinds) {
    RemoteWriteDecoder decoder(1);
    alone.push_back(read(decoder, series));
  }
  RemoteWriteDecoder decoder(1);
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t kind = random() % kinds.size();
    for (auto times = 1 + random() % 3; times > 0; --times) ASSERT_EQ(read(decoder, kinds[kind]), alone[kind]) << kind;
  }
}

TEST(RemoteWrite, symbols_may_come_last_and_references_in_pieces_packed_or_not) {
  const std::string texts = symbols({"", "__name__", "up", "gpu", "0"});
  const Decoded decoded = decode(kV2, series_v2(refs({1}) + sample(1, 1) + varint_field(1, 2) +
                                                refs({}) + varint_field(1, 3) + refs({4})) +
                                          series_v2(refs({1, 2, 3, 4})) + texts);
  ASSERT_TRUE(decoded.status.ok());
  ASSERT_EQ(decoded.seen.size(), 2U);
  EXPECT_EQ(decoded.seen[0].metric, "up");
  EXPECT_THAT(decoded.seen[0].labels, ElementsAre(Pair("gpu", "0")));
  EXPECT_EQ(decoded.seen[0].key, decoded.seen[1].key);
}

TEST(RemoteWrite, a_label_is_read_by_the_rules_of_protobuf_however_it_is_spelled) {
  const std::string value_first = bytes_field(2, "up") + bytes_field(1, "__name__");
  const std::string twice = bytes_field(1, "__name__") + bytes_field(2, "no") +
                            bytes_field(1, "gpu") + bytes_field(2, "0");
  const std::string long_length = std::string("\x0a\x88\x80\x00", 4) + "__name__" + "\x12\x02up";
  const std::string extra = bytes_field(1, "__name__") + bytes_field(2, "up") + varint_field(9, 1);
  for (const std::string& name : {value_first, long_length, extra}) {
    const Decoded decoded =
        decode(kV1, series_v1(bytes_field(1, twice) + bytes_field(1, name) + sample(1, 1)));
    ASSERT_TRUE(decoded.status.ok());
    ASSERT_EQ(decoded.seen.size(), 1U);
    EXPECT_EQ(decoded.seen[0].metric, "up");
    EXPECT_THAT(decoded.seen[0].labels, ElementsAre(Pair("gpu", "0")));
    EXPECT_EQ(decoded.seen[0].samples.size(), 1U);
  }
}

TEST(RemoteWriteEncode, what_is_written_is_read_as_it_was) {
  const double nan = std::bit_cast<double>(std::uint64_t{0x7ff0000000000002});
  const std::vector<RemoteWriteSeriesOut> written = {
      {{{"Hostname", "n1"}, {"__name__", "a"}, {"gpu", "0"}}, {{1, 0.5}, {-2, nan}}},
      {{{"__name__", "b"}, {"pod", ""}}, {}},
      {{{"__name__", "a"}, {"long", std::string_view("\xc3\xb6\0x", 4)}},
       {{std::numeric_limits<std::int64_t>::min(), -0.0}}}};
  for (const auto version : {kV1, kV2}) {
    const Decoded decoded = decode(version, encode_remote_write(version, written));
    ASSERT_TRUE(decoded.status.ok());
    ASSERT_EQ(decoded.seen.size(), written.size());
    for (std::size_t i = 0; i < written.size(); ++i) {
      std::vector<std::pair<std::string, std::string>> labels;
      for (const Label& l : written[i].labels) {
        if (l.name == "__name__") {
          EXPECT_EQ(decoded.seen[i].metric, l.value);
        } else {
          labels.emplace_back(l.name, l.value);
        }
      }
      EXPECT_EQ(decoded.seen[i].labels, labels);
      ASSERT_EQ(decoded.seen[i].samples.size(), written[i].samples.size());
      for (std::size_t k = 0; k < written[i].samples.size(); ++k) {
        EXPECT_EQ(decoded.seen[i].samples[k].timestamp_milliseconds,
                  written[i].samples[k].timestamp_milliseconds);
        EXPECT_EQ(std::bit_cast<std::uint64_t>(decoded.seen[i].samples[k].value),
                  std::bit_cast<std::uint64_t>(written[i].samples[k].value));
      }
    }
  }
  EXPECT_EQ(encode_remote_write(kV1, {}), "");
}

TEST(RemoteWriteEncode, the_bytes_are_those_of_the_protocol) {
  const std::vector<RemoteWriteSeriesOut> written = {
      {{{"__name__", "up"}, {"gpu", "0"}}, {{1'000, 1.0}}}};
  EXPECT_EQ(encode_remote_write(kV1, written), up(label("gpu", "0")));
  EXPECT_EQ(encode_remote_write(kV2, written),
            symbols({"", "__name__", "up", "gpu", "0"}) +
                series_v2(refs({1, 2, 3, 4}) + sample(1, 1'000)));
}

TEST(RemoteWriteContentType, says_the_version) {
  const auto version = [](std::string_view text) { return remote_write_version(text); };
  EXPECT_EQ(version("application/x-protobuf"), kV1);
  EXPECT_EQ(version("application/x-protobuf;proto=prometheus.WriteRequest"), kV1);
  EXPECT_EQ(version("application/x-protobuf;proto=io.prometheus.write.v2.Request"), kV2);
  EXPECT_EQ(version("Application/X-Protobuf ; Proto = \"io.prometheus.write.v2.Request\""), kV2);
  EXPECT_EQ(version("application/x-protobuf; charset=utf-8"), kV1);
  EXPECT_EQ(version("application/x-protobuf;proto=io.prometheus.write.v3.Request"), std::nullopt);
  EXPECT_EQ(version("application/x-protobuf;proto="), std::nullopt);
  EXPECT_EQ(version("application/x-protobuf;proto"), std::nullopt);
  EXPECT_EQ(version("application/json"), std::nullopt);
  EXPECT_EQ(version(""), std::nullopt);
}

}  // namespace
}  // namespace flopsight::wire
