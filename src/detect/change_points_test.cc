// The detector of regressions on the Turing Change Point Dataset (tests/fixtures/tcpd): series whose change points five people marked, scored as
// van den Burg and Williams do ("An evaluation of change point detection algorithms", arXiv 2003.06222): F1 with a margin of five points, and
// covering. It writes docs/change-points.md. Nothing of the detector was chosen on these series.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "base/file.h"
#include "base/median.h"
#include "base/text.h"
#include "detect/regression.h"
#include "detect/robust.h"

namespace flopsight::detect {
namespace {

using Points = std::set<std::size_t>;  // indices at which a new segment begins, from 0

struct Score {
  double f1_ratio = 0;
  double covering_ratio = 0;
};

// The points of `marked` that a point of `found` is near, each of these used once.
std::size_t matched(const Points& marked, Points found) {
  std::size_t count = 0;
  for (const std::size_t point : marked) {
    const auto distance = [&](std::size_t other) { return other > point ? other - point : point - other; };
    const auto nearest = std::min_element(found.begin(), found.end(), [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
    if (nearest == found.end() || distance(*nearest) > 5) continue;
    found.erase(nearest);
    ++count;
  }
  return count;
}

// Precision against what any annotator marked, recall the mean over annotators. The first point of a series counts as marked and as found.
double f1(const std::vector<Points>& annotators, Points found) {
  found.insert(0);
  Points any;
  double recall = 0;
  for (Points marked : annotators) {
    marked.insert(0);
    any.insert(marked.begin(), marked.end());
    recall += static_cast<double>(matched(marked, found)) / static_cast<double>(marked.size());
  }
  recall /= static_cast<double>(annotators.size());
  const double precision = static_cast<double>(matched(any, found)) / static_cast<double>(found.size());
  return 2 * precision * recall / (precision + recall);
}

std::vector<std::pair<double, double>> segments(Points starts, std::size_t length) {
  starts.insert(0);
  std::vector<std::pair<double, double>> out;
  for (auto at = starts.begin(); at != starts.end(); ++at) {
    const auto next = std::next(at);
    out.emplace_back(static_cast<double>(*at), static_cast<double>(next == starts.end() ? length : *next));
  }
  return out;
}

// How well the segments of an annotator are covered by those found: the best Jaccard index of each, weighted with its length; the mean over annotators.
double covering(const std::vector<Points>& annotators, const Points& found, std::size_t length) {
  const auto mine = segments(found, length);
  double sum = 0;
  for (const Points& marked : annotators) {
    for (const auto& [start, end] : segments(marked, length)) {
      double best = 0;
      for (const auto& [from, to] : mine) {
        const double common = std::min(end, to) - std::max(start, from);
        best = std::max(best, common / (std::max(end, to) - std::min(start, from)));
      }
      sum += (end - start) * best;
    }
  }
  return sum / static_cast<double>(length) / static_cast<double>(annotators.size());
}

struct Series {
  std::string name;
  std::vector<double> values;
  std::vector<Points> annotators;
  std::map<std::string, Score> published;
};

base::CsvTable table(const std::string& name) {
  return base::parse_csv(base::read_file(std::string(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/tcpd/") + name).value()).value();
}

std::vector<Series> all_series() {
  std::map<std::string, Series> by_name;
  for (const base::CsvRow& row : table("annotations.csv").rows) {
    Points marked;
    for (const std::string& word : base::split(row.fields.at(2), ' ')) {
      if (!word.empty()) marked.insert(static_cast<std::size_t>(base::parse_number(word).value()));
    }
    by_name[row.fields.at(0)].annotators.push_back(marked);
  }
  for (const base::CsvRow& row : table("published.csv").rows) {
    by_name.at(row.fields.at(0)).published[row.fields.at(1)] = {base::parse_number(row.fields.at(2)).value(), base::parse_number(row.fields.at(3)).value()};
  }
  std::vector<Series> out;
  for (auto& [name, series] : by_name) {
    series.name = name;
    for (const base::CsvRow& row : table(name + ".csv").rows) series.values.push_back(base::parse_number(row.fields.at(0)).value());
    out.push_back(std::move(series));
  }
  return out;
}

// Minutes whose OFU has these logarithms, from the logarithm of 0.3 on; the moments that are called, and with which minute.
struct Call {
  std::size_t moment = 0;
  std::size_t found = 0;
};

std::vector<Call> calls(const std::vector<double>& log_ratios) {
  constexpr std::int64_t kMinuteMilliseconds = 60'000;
  RegressionDetector detector;
  std::vector<Call> out;
  for (std::size_t i = 0; i < log_ratios.size(); ++i) {
    MinutePoint point;
    point.start = units::Instant{static_cast<std::int64_t>(i) * kMinuteMilliseconds};
    point.allocated_seconds = point.measured_seconds = 60;
    point.ofu_ratio = 0.3 * std::exp(log_ratios[i]);
    const bool was_open = detector.open().has_value();
    if (!detector.add(point) || was_open) continue;  // that an open one became deeper has no moment of its own
    out.push_back({static_cast<std::size_t>(detector.open()->first.unix_milliseconds / kMinuteMilliseconds), i});
  }
  return out;
}

// A series that is never 0 or less as it is: what the detector takes is ratios.
std::vector<double> logarithms(const std::vector<double>& values) {
  const double middle = *base::median(values);
  std::vector<double> out;
  for (const double value : values) {
    if (value <= 0) return {};
    out.push_back(std::log(value / middle));
  }
  return out;
}

// A series in units of its noise, which is made a share of the level: the differences of neighbours say how large it is, by their median
// absolute deviation, or by their root mean square where most are 0.
std::vector<double> scaled(const std::vector<double>& values, double noise_ratio) {
  std::vector<double> steps;
  double squares = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    steps.push_back(values[i] - values[i - 1]);
    squares += steps.back() * steps.back();
  }
  double step = robust_deviation(steps, 0);
  if (step == 0) step = std::sqrt(squares / static_cast<double>(steps.size()));
  const double middle = *base::median(values);
  std::vector<double> out;
  for (const double value : values) out.push_back(noise_ratio * (value - middle) * std::sqrt(2.0) / step);
  return out;
}

std::vector<double> reflected(std::vector<double> log_ratios) {
  for (double& value : log_ratios) value = -value;
  return log_ratios;
}

// Those after which the mean is lower than before, between the annotator's points on both sides.
Points drops(const Points& marked, const std::vector<double>& values) {
  Points out;
  const auto parts = segments(marked, values.size());
  const auto mean = [&](const std::pair<double, double>& part) {
    double sum = 0;
    for (double i = part.first; i < part.second; ++i) sum += values[static_cast<std::size_t>(i)];
    return sum / (part.second - part.first);
  };
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (mean(parts[i]) < mean(parts[i - 1])) out.insert(static_cast<std::size_t>(parts[i].first));
  }
  return out;
}

Points moments(const std::vector<Call>& calls) {
  Points out;
  for (const Call& call : calls) out.insert(call.moment);
  return out;
}

TEST(ChangePoints, the_scores_are_those_of_the_paper) {
  const std::vector<Points> three = {{}, {10}, {50}};
  EXPECT_NEAR(f1({{10, 20}, {11, 20}, {10}, {0, 5}}, {10, 20}), 1, 1e-12);
  EXPECT_NEAR(f1(three, {10}), 10.0 / 11, 1e-12);
  EXPECT_NEAR(covering({{10, 20}, {10}, {0, 5}}, {10, 20}, 45), 0.7962962962962963, 1e-12);
  EXPECT_NEAR(covering({{}, {10}, {40}}, {}, 45), 0.8189300411522634, 1e-12);
  // What the paper's tables say of a method that never finds anything, from the same annotations and lengths.
  for (const Series& each : all_series()) {
    const Score& zero = each.published.at("zero");
    EXPECT_NEAR(f1(each.annotators, {}), zero.f1_ratio, 1e-4) << each.name;
    EXPECT_NEAR(covering(each.annotators, {}, each.values.size()), zero.covering_ratio, 1e-4) << each.name;
  }
}

// What is called of one series, and how it scores.
struct Outcome {
  std::vector<Call> down, up;
  std::size_t marks = 0, marks_near = 0;  // of all annotators together; near: five points or less from a call
  std::size_t drops = 0, drops_near = 0;
  Score changes;      // downward and upward
  Score drops_score;  // downward alone
  Score no_drops;     // of a method that never calls a drop
};

std::size_t marks_near(const std::vector<Points>& annotators, const Points& found) {
  std::size_t count = 0;
  for (const Points& marked : annotators) count += matched(marked, found);
  return count;
}

std::size_t marks(const std::vector<Points>& annotators) {
  std::size_t count = 0;
  for (const Points& marked : annotators) count += marked.size();
  return count;
}

Score score(const std::vector<Points>& annotators, const Points& found, std::size_t length) {
  return {f1(annotators, found), covering(annotators, found, length)};
}

Outcome outcome(const Series& series, const std::vector<double>& log_ratios) {
  Outcome out;
  out.down = calls(log_ratios);
  out.up = calls(reflected(log_ratios));
  const std::size_t length = series.values.size();
  const Points down = moments(out.down);
  Points both = moments(out.up);
  both.insert(down.begin(), down.end());
  std::vector<Points> dropped;
  for (const Points& marked : series.annotators) dropped.push_back(drops(marked, series.values));
  out.marks = marks(series.annotators);
  out.marks_near = marks_near(series.annotators, both);
  out.drops = marks(dropped);
  out.drops_near = marks_near(dropped, down);
  out.changes = score(series.annotators, both, length);
  out.drops_score = score(dropped, down, length);
  out.no_drops = score(dropped, {}, length);
  return out;
}

constexpr double kNoiseRatio = 0.03;  // the upper end of what test_noise.h assumes of training jobs
const char* const kMethods[] = {"zero", "cpnp", "bocpd", "binseg", "pelt"};

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, " | %.3f", value);
  return text;
}

// One line of each method's and our own score; `pick` chooses F1 or covering.
template <typename Pick>
std::string methods_line(const Series& series, const Score& own, Pick pick) {
  std::string out;
  for (const char* method : kMethods) out += figure(pick(series.published.at(method)));
  return out + figure(pick(own));
}

struct Means {
  std::map<std::string, Score> by_method;  // ours is ""
  double no_drops_f1 = 0, drops_f1 = 0, no_drops_covering = 0, drops_covering = 0;
};

Means means(const std::vector<Series>& series, const std::vector<Outcome>& outcomes) {
  Means out;
  const auto n = static_cast<double>(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto add = [&](const std::string& method, const Score& score) {
      out.by_method[method].f1_ratio += score.f1_ratio / n;
      out.by_method[method].covering_ratio += score.covering_ratio / n;
    };
    for (const char* method : kMethods) add(method, series[i].published.at(method));
    add("", outcomes[i].changes);
    out.no_drops_f1 += outcomes[i].no_drops.f1_ratio / n;
    out.drops_f1 += outcomes[i].drops_score.f1_ratio / n;
    out.no_drops_covering += outcomes[i].no_drops.covering_ratio / n;
    out.drops_covering += outcomes[i].drops_score.covering_ratio / n;
  }
  return out;
}

std::vector<Outcome> outcomes(const std::vector<Series>& series, double noise_ratio) {
  std::vector<Outcome> out;
  for (const Series& each : series) out.push_back(outcome(each, scaled(each.values, noise_ratio)));
  return out;
}

std::string changes_table(const std::vector<Series>& series, const std::vector<Outcome>& results) {
  const Means mean = means(series, results);
  std::string out;
  for (const bool of_f1 : {true, false}) {
    const auto pick = [of_f1](const Score& score) { return of_f1 ? score.f1_ratio : score.covering_ratio; };
    out += std::string("\n| ") + (of_f1 ? "F1" : "covering") + " | points | says nothing | CPNP | BOCPD | BinSeg | PELT | Flopsight |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (std::size_t i = 0; i < series.size(); ++i) {
      out += "| " + series[i].name + " | " + std::to_string(series[i].values.size()) + methods_line(series[i], results[i].changes, pick) + " |\n";
    }
    out += "| **mean** |";
    for (const char* method : kMethods) out += figure(pick(mean.by_method.at(method)));
    out += figure(pick(mean.by_method.at(""))) + " |\n";
  }
  return out;
}

std::string list(const std::vector<Call>& found) {
  std::string out;
  for (const Call& call : found) out += (out.empty() ? "" : ", ") + std::to_string(call.moment) + " (with " + std::to_string(call.found) + ")";
  return out.empty() ? "–" : out;
}

std::string calls_table(const std::vector<Series>& series, const std::vector<Outcome>& results) {
  std::string out = "\n| series | marks | near a call | drops among them | near | drops called | rises called |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  std::size_t sums[4] = {};
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Outcome& each = results[i];
    const std::size_t counts[4] = {each.marks, each.marks_near, each.drops, each.drops_near};
    out += "| " + series[i].name;
    for (std::size_t k = 0; k < 4; ++k) {
      sums[k] += counts[k];
      out += " | " + std::to_string(counts[k]);
    }
    out += " | " + list(each.down) + " | " + list(each.up) + " |\n";
  }
  out += "| **all**";
  for (const std::size_t sum : sums) out += " | " + std::to_string(sum);
  return out + " | | |\n";
}

std::string noise_table(const std::vector<Series>& series) {
  std::string out = "\n| noise is made | F1 | covering | F1, drops alone | covering, drops alone |\n| --- | --- | --- | --- | --- |\n";
  for (const double noise_ratio : {0.01, 0.02, 0.03, 0.05, 0.1}) {
    const Means mean = means(series, outcomes(series, noise_ratio));
    out += "| " + std::to_string(static_cast<int>(std::lround(100 * noise_ratio))) + " %" + figure(mean.by_method.at("").f1_ratio) + figure(mean.by_method.at("").covering_ratio) +
           figure(mean.drops_f1) + figure(mean.drops_covering) + " |\n";
    if (noise_ratio == 0.1) out += "| says nothing" + figure(mean.by_method.at("zero").f1_ratio) + figure(mean.by_method.at("zero").covering_ratio) + figure(mean.no_drops_f1) + figure(mean.no_drops_covering) + " |\n";
  }
  return out;
}

std::string as_it_is_table(const std::vector<Series>& series) {
  std::string out = "\n| series | drops called | F1, drops alone | says nothing | rises called | F1, all changes | says nothing |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Series& each : series) {
    const std::vector<double> log_ratios = logarithms(each.values);
    if (log_ratios.empty()) continue;
    const Outcome result = outcome(each, log_ratios);
    out += "| " + each.name + " | " + list(result.down) + figure(result.drops_score.f1_ratio) + figure(result.no_drops.f1_ratio) + " | " + list(result.up) +
           figure(result.changes.f1_ratio) + figure(each.published.at("zero").f1_ratio) + " |\n";
  }
  return out;
}

std::string page() {
  const std::vector<Series> series = all_series();
  const std::vector<Outcome> results = outcomes(series, kNoiseRatio);
  return
      "# The detector of regressions on a public benchmark\n\n"
      "Written by a test (`src/detect/change_points_test.cc`) from `tests/fixtures/tcpd`: 13 series of the Turing Change Point Dataset, in which five people each marked\n"
      "where something changed, scored as van den Burg and Williams do (arXiv 2003.06222): F1 with a margin of five points, and how well the segments are\n"
      "covered. The test says first that the scores of a method that finds nothing come out as in their tables, on every series. Chosen were, before anything\n"
      "was run, all series of one value a point with 150 points or more whose licence is MIT, CC0, CC BY or public domain. Nothing of the detector\n"
      "was chosen on them or changed after them.\n\n"
      "The detector looks for less than that: a job's OFU below the job's own last twelve hours, online, falls alone. So that it can be asked at all,\n"
      "a point is a minute; the value in units of the series' own noise, made 3 % of the level (the upper end of what the simulated jobs have), is the logarithm\n"
      "of OFU; and it runs twice, on the series and on its reflection, for rises. The other methods look at the whole series before they answer: CPNP\n"
      "(Haynes, Fearnhead, Eckley 2017), BOCPD (Adams, MacKay 2007), binary segmentation (Scott, Knott 1974), PELT (Killick, Fearnhead, Eckley 2012), with their\n"
      "default settings, in the figures of the authors (`published.csv`). Flopsight has seen only what came before.\n" +
      changes_table(series, results) +
      "\n## What was called\n\n"
      "Marks are those of all annotators together; a drop is a mark after which the mean is lower than before, between the same annotator's\n"
      "marks. A call is the moment that it names and, in brackets, the point with which it was made.\n" +
      calls_table(series, results) +
      "\n## How much hangs on the noise\n" + noise_table(series) +
      "\n## As it is used: the logarithm of the series itself\n\n"
      "Series with values of 0 or less have no logarithm and are left out.\n" +
      as_it_is_table(series);
}

TEST(ChangePoints, the_scores_on_public_series_are_those_that_are_written_down) {
  const std::vector<Series> series = all_series();
  ASSERT_EQ(series.size(), 13u);
  const Means mean = means(series, outcomes(series, kNoiseRatio));
  const Score& own = mean.by_method.at("");
  RecordProperty("mean_f1_ratio", std::to_string(own.f1_ratio));
  RecordProperty("mean_covering_ratio", std::to_string(own.covering_ratio));
  EXPECT_NEAR(own.f1_ratio, 0.677, 0.005);
  EXPECT_NEAR(own.covering_ratio, 0.673, 0.005);
  EXPECT_NEAR(mean.drops_f1, 0.855, 0.005);
}

TEST(ChangePoints, a_series_without_changes_calls_nothing) {
  for (const Series& each : all_series()) {
    if (marks(each.annotators) > 0) continue;
    const Outcome result = outcome(each, scaled(each.values, kNoiseRatio));
    EXPECT_TRUE(result.down.empty() && result.up.empty()) << each.name;
  }
}

TEST(ChangePoints, the_page_is_not_stale) {
  const std::string path = FLOPSIGHT_SOURCE_DIR "/docs/change-points.md";
  if (std::getenv("FLOPSIGHT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << page();
  EXPECT_EQ(base::read_file(path).value(), page());
}

}  // namespace
}  // namespace flopsight::detect
