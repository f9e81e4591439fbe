#include "wire/remote_write_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "wire/snappy.h"

namespace flopsight::wire {
namespace {

// What a decoder sees, as text.
class Lines : public RemoteWriteSink {
 public:
  bool wants(std::string_view) override { return true; }
  void series(RemoteWriteSeries& series) override {
    text += std::string(series.metric()) + "{";
    for (const Label& label : series.labels()) text += std::string(label.name) + "=" + std::string(label.value) + ",";
    text += "}";
    for (const RemoteWriteSample& sample : series.samples()) {
      text += " " + std::to_string(std::bit_cast<std::uint64_t>(sample.value)) + "@" +
              std::to_string(sample.timestamp_milliseconds);
    }
    text += "\n";
  }
  void rejected(std::string_view series, std::string_view reason) override {
    text += "rejected " + std::string(series) + " " + std::string(reason) + "\n";
  }
  std::string text;
};

std::string decoded(RemoteWriteVersion version, std::string_view message) {
  RemoteWriteDecoder decoder(1);
  Lines lines;
  RemoteWriteTotals totals;
  const auto status = decoder.decode(version, message, lines, totals);
  return lines.text + (status.ok() ? "" : status.error().message);
}

struct Case {
  std::vector<std::vector<Label>> label_sets;
  std::vector<std::string_view> metrics;
};

std::string by_template(RemoteWriteVersion version, const Case& in, double value, std::int64_t time) {
  RemoteWriteTemplate message(version);
  for (const auto& labels : in.label_sets) message.add(labels, in.metrics);
  message.finish();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < message.series(); ++i) {
      message.set(i, value + static_cast<double>(i), time + round);
    }
  }
  std::string raw;
  EXPECT_TRUE(snappy_decompress(message.compressed(), 1 << 28, raw).ok());
  return decoded(version, raw);
}

std::string by_encoder(RemoteWriteVersion version, const Case& in, double value, std::int64_t time) {
  std::vector<RemoteWriteSeriesOut> all;
  for (const auto& labels : in.label_sets) {
    for (const std::string_view metric : in.metrics) {
      RemoteWriteSeriesOut one;
      one.labels = labels;
      one.labels.push_back({"__name__", metric});
      std::sort(one.labels.begin(), one.labels.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
      one.samples.push_back({time + 1, value + static_cast<double>(all.size())});
      all.push_back(std::move(one));
    }
  }
  return decoded(version, encode_remote_write(version, all));
}

class RemoteWriteTemplateVersions : public testing::TestWithParam<RemoteWriteVersion> {};

TEST_P(RemoteWriteTemplateVersions, says_what_the_encoder_says) {
  const std::string long_value(300, 'x');
  std::vector<Case> cases = {
      {{}, {"m"}},
      {{{}}, {"m"}},
      {{{{"a", "1"}}}, {"m", "n"}},
      {{{{"A", "1"}, {"z", "2"}}, {{"A", "1"}, {"z", "3"}}}, {"m", "a_longer_name"}},
      {{{{"A", long_value}, {"long", long_value}}}, {"m", "n", "o"}},
  };
  // Farther apart than a copy reaches.
  const std::string huge(70'000, 'h');
  cases.push_back({{{{"A", huge}, {"b", "1"}}, {{"A", huge}, {"b", "1"}}}, {"m", "n"}});
  for (const Case& in : cases) {
    for (const double value : {0.0, -1.5, 1e300}) {
      EXPECT_EQ(by_template(GetParam(), in, value, 1'767'225'600'000), by_encoder(GetParam(), in, value, 1'767'225'600'000));
    }
  }
}

TEST_P(RemoteWriteTemplateVersions, many_gpus_are_small) {
  std::vector<std::string> texts;
  for (int i = 0; i < 40'000; ++i) texts.push_back("value-of-some-length-" + std::to_string(i % 200));
  Case in;
  for (std::size_t gpu = 0; gpu < 200; ++gpu) {
    std::vector<Label> labels;
    static const std::vector<std::string> kNames = [] {
      std::vector<std::string> names;
      for (int i = 0; i < 20; ++i) names.push_back(std::string(1, static_cast<char>('A' + i)) + "_label");
      return names;
    }();
    for (std::size_t i = 0; i < 20; ++i) labels.push_back({kNames[i], texts[i < 3 ? gpu : i]});
    in.label_sets.push_back(labels);
  }
  static const std::vector<std::string> kMetrics = [] {
    std::vector<std::string> names;
    for (int i = 0; i < 28; ++i) names.push_back("DCGM_FI_PROF_SOMETHING_" + std::to_string(i));
    return names;
  }();
  in.metrics.assign(kMetrics.begin(), kMetrics.end());
  EXPECT_EQ(by_template(GetParam(), in, 1, 1'767'225'600'000), by_encoder(GetParam(), in, 1, 1'767'225'600'000));
  RemoteWriteTemplate message(GetParam());
  for (const auto& labels : in.label_sets) message.add(labels, in.metrics);
  message.finish();
  EXPECT_LT(message.compressed().size(), message.series() * 80);
}

TEST_P(RemoteWriteTemplateVersions, a_stale_marker_keeps_its_bits) {
  RemoteWriteTemplate message(GetParam());
  const std::string_view metric = "m";
  message.add({}, {&metric, 1});
  message.finish();
  // No arithmetic on it: that would quiet a signalling NaN.
  message.set(0, std::bit_cast<double>(0x7ff0000000000002ULL), 1'767'225'600'000);
  std::string raw;
  ASSERT_TRUE(snappy_decompress(message.compressed(), 1 << 20, raw).ok());
  EXPECT_EQ(decoded(GetParam(), raw), "m{} 9218868437227405314@1767225600000\n");
}

INSTANTIATE_TEST_SUITE_P(Both, RemoteWriteTemplateVersions, testing::Values(RemoteWriteVersion::kV1, RemoteWriteVersion::kV2));

}  // namespace
}  // namespace flopsight::wire
