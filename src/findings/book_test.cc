#include "findings/book.h"

#include <gtest/gtest.h>

#include "findings/test_records.h"

namespace flopsight::findings {
namespace {

using test::at;
using test::sighting;
using test::wall;

class BookTest : public testing::Test {
 protected:
  // A minute in which these show.
  std::vector<Transition> round(int minute, const std::vector<Sighting>& seen) { return book_.round(seen, at(minute), wall(minute)); }
  std::vector<Transition> quiet(int from, int to) {
    std::vector<Transition> out;
    for (int minute = from; minute < to; ++minute) {
      for (Transition& transition : round(minute, {})) out.push_back(std::move(transition));
    }
    return out;
  }
  const Record& only() { return book_.records().begin()->second; }
  std::string open_one(std::string_view kind = "hang") { return round(5, {sighting(kind, "a", 0, 5)}).at(0).record.id; }

  Book book_;
};

TEST_F(BookTest, what_shows_is_opened_once_and_its_figures_go_on) {
  auto opened = round(5, {sighting("regression", "a", 0, 5, 1)});
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_EQ(opened[0].change, Change::kOpened);
  EXPECT_EQ(opened[0].record.opened, wall(5));
  EXPECT_EQ(opened[0].record.first, at(0));
  EXPECT_TRUE(round(6, {sighting("regression", "a", 0, 6, 1.5)}).empty());
  EXPECT_EQ(only().id, opened[0].record.id);
  EXPECT_EQ(only().last, at(6));
  EXPECT_DOUBLE_EQ(only().cost->value, 1.5);
  EXPECT_DOUBLE_EQ(only().cost_usd->value, 3);
  EXPECT_EQ(book_.open_count(), 1u);
}

TEST_F(BookTest, it_is_resolved_when_it_has_not_shown_for_the_quiet_time_of_its_kind_and_no_minute_sooner) {
  open_one("hang");
  EXPECT_TRUE(quiet(6, 10).empty());
  const auto gone = round(10, {});
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].change, Change::kResolved);
  EXPECT_EQ(gone[0].record.resolved, wall(10));
  EXPECT_EQ(gone[0].record.last, at(5));
  EXPECT_TRUE(gone[0].record.resolved_by.empty());
  EXPECT_EQ(book_.open_count(), 0u);
}

TEST_F(BookTest, a_detector_that_only_remembers_does_not_keep_it_open_or_open_it_again) {
  open_one();
  const std::vector<Sighting> remembered = {sighting("hang", "a", 0, 5)};
  for (int minute = 6; minute < 10; ++minute) EXPECT_TRUE(round(minute, remembered).empty());
  EXPECT_EQ(round(10, remembered).at(0).change, Change::kResolved);
  for (int minute = 11; minute < 200; ++minute) EXPECT_TRUE(round(minute, remembered).empty()) << minute;
}

TEST_F(BookTest, what_comes_back_soon_is_the_same_record_and_what_comes_back_later_another) {
  const std::string id = open_one();
  quiet(6, 20);
  const auto back = round(60, {sighting("hang", "a", 56, 60)});
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].change, Change::kReopened);
  EXPECT_EQ(back[0].record.id, id);
  EXPECT_EQ(back[0].record.first, at(0));
  EXPECT_EQ(back[0].record.flap_count, 1u);
  EXPECT_FALSE(back[0].record.resolved.has_value());
  quiet(61, 80);
  const auto later = round(60 + 125, {sighting("hang", "a", 180, 185)});
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].change, Change::kOpened);
  EXPECT_NE(later[0].record.id, id);
  EXPECT_EQ(later[0].record.key, back[0].record.key);
  EXPECT_EQ(later[0].record.flap_count, 0u);
}

TEST_F(BookTest, a_matter_that_comes_and_goes_for_a_day_is_told_a_few_times_and_not_each_time) {
  // Shows for three minutes of every ten.
  std::size_t told = 0;
  for (int minute = 0; minute < 24 * 60; ++minute) {
    const int phase = minute % 10;
    std::vector<Sighting> seen;
    if (phase < 3) seen.push_back(sighting("hang", "a", minute - phase, minute));
    told += round(minute, seen).size();
  }
  EXPECT_LE(told, 4u) << "opened, gone, back; then the quiet time is ten minutes, longer than it is ever away";
  EXPECT_EQ(book_.records().size(), 1u);
  EXPECT_TRUE(only().is_open());
}

TEST_F(BookTest, the_quiet_time_doubles_up_to_eight_times) {
  const std::string id = open_one();
  int minute = 6;
  for (const int quiet_minutes : {5, 10, 20, 40, 40}) {
    EXPECT_TRUE(quiet(minute, minute + quiet_minutes - 1).empty()) << quiet_minutes;
    EXPECT_EQ(round(minute + quiet_minutes - 1, {}).size(), 1u) << quiet_minutes;
    minute += quiet_minutes + 1;
    EXPECT_EQ(round(minute - 1, {sighting("hang", "a", minute - 1, minute - 1)}).at(0).record.id, id);
  }
}

TEST_F(BookTest, acknowledged_it_stays_so_until_it_is_gone_or_taken_back) {
  const std::string id = open_one();
  const auto known = book_.acknowledge(id, "ada", "the vendor comes", wall(6));
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(known->change, Change::kAcknowledged);
  round(6, {sighting("hang", "a", 0, 6)});
  EXPECT_EQ(only().state, State::kAcknowledged);
  EXPECT_EQ(only().acknowledged_by, "ada");
  EXPECT_EQ(only().note, "the vendor comes");
  // It comes back as what is known.
  quiet(7, 20);
  const auto back = round(20, {sighting("hang", "a", 18, 20)});
  EXPECT_EQ(back.at(0).record.state, State::kAcknowledged);
  ASSERT_TRUE(book_.unacknowledge(id, wall(21)).ok());
  EXPECT_EQ(only().state, State::kOpen);
  EXPECT_TRUE(only().acknowledged_by.empty());
  EXPECT_EQ(book_.unacknowledge(id, wall(21)).error().message, "the finding is not acknowledged");
  EXPECT_EQ(book_.acknowledge("0000000000000000", "ada", "", wall(21)).error().code, base::ErrorCode::kNotFound);
}

TEST_F(BookTest, what_somebody_resolved_stays_resolved_while_it_goes_on_showing) {
  const std::string id = open_one();
  ASSERT_TRUE(book_.resolve(id, "ada", "a test", wall(6)).ok());
  EXPECT_EQ(book_.resolve(id, "ada", "", wall(6)).error().message, "the finding is resolved");
  for (int minute = 6; minute < 300; ++minute) EXPECT_TRUE(round(minute, {sighting("hang", "a", 0, minute)}).empty()) << minute;
  EXPECT_EQ(only().state, State::kResolved);
  EXPECT_EQ(only().resolved_by, "ada");
  // It went, and came again: somebody has to look at it again.
  quiet(300, 320);
  const auto again = round(320, {sighting("hang", "a", 318, 320)});
  EXPECT_EQ(again.at(0).change, Change::kOpened);
  EXPECT_NE(again.at(0).record.id, id);
}

TEST_F(BookTest, a_silence_marks_what_matches_while_it_holds) {
  auto silence = silence_from_told(R"({"matchers": ["job=a*", "kind=hang"], "duration_seconds": 600, "comment": "a test"})", "ada", wall(5));
  ASSERT_TRUE(silence.ok()) << silence.error().message;
  ASSERT_TRUE(book_.add_silence(*silence, wall(5)).ok());
  const auto opened = round(5, {sighting("hang", "a1", 0, 5), sighting("hang", "b", 0, 5), sighting("stall", "a1", 0, 5)});
  ASSERT_EQ(opened.size(), 3u);
  for (const Transition& transition : opened) EXPECT_EQ(transition.record.silenced, transition.record.key == "hang/job=a1") << transition.record.key;
  round(14, {sighting("hang", "a1", 0, 14)});
  EXPECT_TRUE(book_.records().at("hang/job=a1").silenced);
  round(15, {sighting("hang", "a1", 0, 15)});
  EXPECT_FALSE(book_.records().at("hang/job=a1").silenced) << "its end is not in it";
  EXPECT_TRUE(book_.silences().empty());
}

TEST_F(BookTest, findings_about_the_measurement_never_cost_anything) {
  round(5, {sighting("counter_dead", "a", 0, 5, 100), sighting("profiler_pause", "a", 0, 5, 100), sighting("unseen", "a", 0, 5, 100)});
  for (const auto& [key, record] : book_.records()) {
    EXPECT_TRUE(record.data_quality) << key;
    EXPECT_FALSE(record.cost.has_value()) << key;
    EXPECT_FALSE(record.cost_usd.has_value()) << key;
  }
}

TEST_F(BookTest, without_a_price_hours_stand_without_dollars) {
  Sighting unpriced = sighting("hang", "a", 0, 5);
  unpriced.usd_per_gpu_hour.reset();
  round(5, {unpriced});
  EXPECT_TRUE(only().cost.has_value());
  EXPECT_FALSE(only().cost_usd.has_value());
}

TEST_F(BookTest, a_restart_goes_on_from_what_was_kept) {
  open_one("regression");
  round(6, {sighting("regression", "a", 0, 6, 5)});
  const Record kept = only();
  Book after;
  after.restore({kept}, {});
  // Detectors see less of the past than they did: the drop seems to begin at minute 4, and to have cost 2.
  after.replay(std::vector{sighting("regression", "a", 4, 5, 1)});
  after.replay(std::vector{sighting("regression", "a", 4, 6, 2)});
  EXPECT_TRUE(after.round(std::vector{sighting("regression", "a", 4, 7, 3)}, at(7), wall(7)).empty());
  const Record& record = after.records().begin()->second;
  EXPECT_EQ(record.id, kept.id);
  EXPECT_EQ(record.first, at(0));
  EXPECT_DOUBLE_EQ(record.cost->value, 6) << "5 until minute 6, and 1 since";
}

TEST_F(BookTest, replaying_opens_nothing_and_resolves_nothing) {
  book_.replay(std::vector{sighting("hang", "a", 0, 5)});
  EXPECT_TRUE(book_.records().empty());
}

TEST_F(BookTest, past_its_limit_new_findings_are_counted_and_left_out) {
  BookOptions options;
  options.open_max = 3;
  book_.set_options(options);
  std::vector<Sighting> seen;
  for (const char* job : {"a", "b", "c"}) seen.push_back(sighting("hang", job, 0, 5));
  EXPECT_EQ(round(5, seen).size(), 3u);
  EXPECT_EQ(book_.dropped_total(), 0u);
  seen.push_back(sighting("hang", "d", 0, 5));
  EXPECT_EQ(round(5, seen).size(), 0u);
  EXPECT_EQ(book_.open_count(), 3u);
  EXPECT_EQ(book_.dropped_total(), 1u);
}

TEST_F(BookTest, past_their_limit_silences_are_refused_until_one_is_removed) {
  BookOptions options;
  options.silences_max = 2;
  book_.set_options(options);
  std::vector<Silence> all;
  for (const char* job : {"a", "b", "c"}) {
    all.push_back(*silence_from_told(std::string(R"({"matchers": ["job=)") + job + R"("], "duration_seconds": 60, "comment": "x"})", "ada", wall(0)));
  }
  EXPECT_TRUE(book_.add_silence(all[0], wall(0)).ok());
  EXPECT_TRUE(book_.add_silence(all[1], wall(0)).ok());
  EXPECT_TRUE(book_.add_silence(all[1], wall(0)).ok()) << "it is there already";
  EXPECT_EQ(book_.add_silence(all[2], wall(0)).error().code, base::ErrorCode::kLimit);
  EXPECT_TRUE(book_.remove_silence(all[0].id, wall(0)).ok());
  EXPECT_TRUE(book_.add_silence(all[2], wall(0)).ok());
  EXPECT_EQ(book_.remove_silence(all[0].id, wall(0)).error().code, base::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace flopsight::findings
