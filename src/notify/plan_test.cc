#include "notify/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "notify/alerts.h"
#include "notify/pace.h"
#include "notify/test_records.h"

namespace flopsight::notify {
namespace {

using findings::Record;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Receiver webhook() {
  Receiver receiver;
  receiver.name = "hook";
  return receiver;
}

Receiver alertmanager() {
  Receiver receiver;
  receiver.name = "alerts";
  receiver.type = ReceiverType::kAlertmanager;
  receiver.per_hour = 0;
  return receiver;
}

std::vector<std::string> names(const Plan& plan) {
  std::vector<std::string> out;
  for (const Due& due : plan.due) out.push_back(due.record->id.substr(14) + " " + std::string(telling_name(due.telling)));
  return out;
}

// A receiver that is told all that is due, whenever it is asked.
struct Told {
  explicit Told(Receiver r) : receiver(std::move(r)) {}
  std::vector<std::string> look(const Records& list, units::Instant now) {
    const Plan due = plan(receiver, list, told, since, now);
    for (const Due& one : due.due) told.insert_or_assign(one.record->id, noted(one, receiver, told, now, false));
    return names(due);
  }
  Receiver receiver;
  store::ToldFindings told;
  units::Instant since = at(0);
};

TEST(Plan, an_open_finding_is_told_once_and_its_end_once) {
  Told hook(webhook());
  EXPECT_THAT(hook.look(records({hang()}), at(100)), ElementsAre("aa opened"));
  EXPECT_THAT(hook.look(records({hang()}), at(5'000)), IsEmpty());
  const Records ended = records({resolved(hang(), at(6'000))});
  EXPECT_THAT(hook.look(ended, at(6'001)), ElementsAre("aa resolved"));
  EXPECT_THAT(hook.look(ended, at(6'002)), IsEmpty());
}

TEST(Plan, what_came_and_went_while_nobody_listened_is_told_as_ended_but_not_what_is_older_than_the_receiver) {
  Told hook(webhook());
  EXPECT_THAT(hook.look(records({resolved(hang(), at(500))}), at(1'000)), ElementsAre("aa resolved"));
  Told late(webhook());
  late.since = at(501);
  EXPECT_THAT(late.look(records({resolved(hang(), at(500))}), at(1'000)), IsEmpty());
}

TEST(Plan, silenced_and_acknowledged_findings_are_not_told_but_the_end_of_what_was_told_is) {
  Told hook(webhook());
  Record silenced = hang("00000000000000aa"), acknowledged = hang("00000000000000bb"), open = hang("00000000000000cc");
  silenced.silenced = true;
  acknowledged.state = findings::State::kAcknowledged;
  acknowledged.acknowledged_by = "ada";
  EXPECT_THAT(hook.look(records({silenced, acknowledged, open}), at(100)), ElementsAre("cc opened"));
  open.silenced = true;
  EXPECT_THAT(hook.look(records({silenced, acknowledged, open}), at(200)), IsEmpty());
  EXPECT_THAT(hook.look(records({resolved(silenced, at(300)), resolved(acknowledged, at(300)), resolved(open, at(300))}), at(300)), ElementsAre("cc resolved"));
}

TEST(Plan, a_silence_that_is_over_lets_an_open_finding_be_told) {
  Told hook(webhook());
  Record record = hang();
  record.silenced = true;
  EXPECT_THAT(hook.look(records({record}), at(100)), IsEmpty());
  record.silenced = false;
  EXPECT_THAT(hook.look(records({record}), at(200)), ElementsAre("aa opened"));
}

TEST(Plan, a_finding_that_comes_and_goes_is_opened_again_after_the_interval_only) {
  Told hook(webhook());
  hook.look(records({hang()}), at(100));
  hook.look(records({resolved(hang(), at(110))}), at(110));
  EXPECT_THAT(hook.look(records({hang()}), at(120)), IsEmpty());
  const Plan waiting = plan(hook.receiver, records({hang()}), hook.told, at(0), at(120));
  EXPECT_EQ(waiting.next, at(110 + 300));
  EXPECT_THAT(hook.look(records({hang()}), at(410)), ElementsAre("aa opened"));
}

TEST(Plan, a_finding_that_got_worse_is_told_again_and_one_that_got_better_is_not) {
  Told hook(webhook());
  Record record = hang();
  record.severity = detect::Severity::kWarning;
  hook.look(records({record}), at(100));
  record.severity = detect::Severity::kInfo;
  EXPECT_THAT(hook.look(records({record}), at(1'000)), IsEmpty());
  record.severity = detect::Severity::kCritical;
  EXPECT_THAT(hook.look(records({record}), at(1'001)), ElementsAre("aa changed"));
}

TEST(Plan, a_reminder_comes_as_often_as_it_was_asked_for_and_not_once_somebody_knows) {
  Told hook(webhook());
  hook.receiver.reminder = units::Seconds(3'600);
  Record record = hang();
  EXPECT_THAT(hook.look(records({record}), at(100)), ElementsAre("aa opened"));
  EXPECT_THAT(hook.look(records({record}), at(3'699)), IsEmpty());
  EXPECT_THAT(hook.look(records({record}), at(3'700)), ElementsAre("aa reminder"));
  record.state = findings::State::kAcknowledged;
  EXPECT_THAT(hook.look(records({record}), at(9'000)), IsEmpty());
}

TEST(Plan, the_most_severe_and_then_the_oldest_come_first) {
  Record a = hang("00000000000000aa"), b = hang("00000000000000bb"), c = hang("00000000000000cc");
  a.severity = detect::Severity::kWarning;
  b.changed = at(80);
  EXPECT_THAT(names(plan(webhook(), records({a, b, c}), {}, at(0), at(100))), ElementsAre("cc opened", "bb opened", "aa opened"));
}

TEST(Plan, a_route_that_fits_no_more_takes_nothing_new_and_still_ends_what_was_told) {
  Told hook(webhook());
  hook.look(records({hang()}), at(100));
  hook.receiver.route.teams = {"nobody"};
  Record other = hang("00000000000000bb");
  EXPECT_THAT(hook.look(records({resolved(hang(), at(200)), other}), at(200)), ElementsAre("aa resolved"));
}

TEST(Plan, an_alertmanager_is_sent_what_is_open_again_in_time_and_its_end_for_a_quarter_of_an_hour) {
  Told alerts(alertmanager());
  EXPECT_THAT(alerts.look(records({hang()}), at(100)), ElementsAre("aa opened"));
  EXPECT_THAT(alerts.look(records({hang()}), at(159)), IsEmpty());
  EXPECT_THAT(alerts.look(records({hang()}), at(160)), ElementsAre("aa resent"));
  EXPECT_LT(at(160) + alerts.receiver.resend, open_alert(hang(), alerts.receiver, "", at(160)).ends);
  const Records ended = records({resolved(hang(), at(200))});
  EXPECT_THAT(alerts.look(ended, at(200)), ElementsAre("aa ended"));
  EXPECT_THAT(alerts.look(ended, at(259)), IsEmpty());
  EXPECT_THAT(alerts.look(ended, at(260)), ElementsAre("aa ended"));
  EXPECT_THAT(alerts.look(ended, at(1'099)), ElementsAre("aa ended"));
  EXPECT_THAT(alerts.look(ended, at(1'200)), IsEmpty());
}

TEST(Plan, an_alert_whose_finding_is_silenced_or_acknowledged_ends_and_comes_back_afterwards) {
  Told alerts(alertmanager());
  Record record = hang();
  alerts.look(records({record}), at(100));
  record.silenced = true;
  EXPECT_THAT(alerts.look(records({record}), at(110)), ElementsAre("aa ended"));
  EXPECT_THAT(alerts.look(records({record}), at(500)), IsEmpty());
  record.silenced = false;
  EXPECT_THAT(alerts.look(records({record}), at(600)), ElementsAre("aa opened"));
}

TEST(Plan, other_labels_make_another_alert_and_the_one_that_was_sent_is_ended_with_its_own) {
  Told alerts(alertmanager());
  Record record = hang();
  record.severity = detect::Severity::kWarning;
  alerts.look(records({record}), at(100));
  const std::string sent = alerts.told.at(record.id).labels;
  EXPECT_THAT(sent, ::testing::HasSubstr("\"severity\":\"warning\""));
  record.severity = detect::Severity::kCritical;
  EXPECT_THAT(alerts.look(records({record}), at(110)), ElementsAre("aa changed"));
  EXPECT_THAT(alerts.told.at(record.id).labels, ::testing::HasSubstr("\"severity\":\"critical\""));
  const auto ended = ended_alert(record, sent, "", at(110));
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(labels_text(ended->labels), sent);
}

TEST(Plan, a_clock_that_was_set_back_keeps_nobody_from_being_told) {
  Told alerts(alertmanager());
  alerts.look(records({hang()}), at(100'000));
  EXPECT_THAT(alerts.look(records({hang()}), at(100)), ElementsAre("aa resent"));
}

TEST(Pace, what_comes_within_the_group_wait_goes_in_one_message) {
  Receiver receiver = webhook();
  Pace pace(receiver);
  EXPECT_EQ(pace.ready_at(at(0)), at(5));
  EXPECT_EQ(pace.ready_at(at(3)), at(5));
  EXPECT_LE(pace.ready_at(at(5)), at(5));
  pace.taken(at(5));
  EXPECT_EQ(pace.ready_at(at(6)), at(11));
}

TEST(Pace, pauses_double_up_to_five_minutes_and_end_with_what_is_taken) {
  Receiver receiver = webhook();
  receiver.group_wait = units::Seconds(0);
  Pace pace(receiver);
  double now = 0;
  std::vector<double> pauses;
  for (int i = 0; i < 11; ++i) {
    pace.failed(at(now), {}, 0);
    const units::Instant ready = pace.ready_at(at(now));
    pauses.push_back((ready - at(now)).value);
    now = (ready - at(0)).value;
  }
  EXPECT_THAT(pauses, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300));
  EXPECT_EQ(pace.failing_for(at(now)).value, now);
  pace.taken(at(now));
  EXPECT_EQ(pace.ready_at(at(now)), at(now));
  EXPECT_EQ(pace.failing_for(at(now)).value, 0);
}

TEST(Pace, chance_shortens_a_pause_by_up_to_a_half) {
  Receiver receiver = webhook();
  receiver.group_wait = units::Seconds(0);
  Pace pace(receiver);
  pace.failed(at(0), {}, 1);
  EXPECT_EQ(pace.ready_at(at(0)), at(0.5));
}

TEST(Pace, a_pause_of_a_fraction_of_a_millisecond_more_is_still_a_pause) {
  Receiver receiver = webhook();
  receiver.group_wait = units::Seconds(0);
  for (int i = 0; i < 1'000; ++i) {
    Pace pace(receiver);
    pace.failed(at(0), {}, i / 1'000.0 + 0.00033);
    EXPECT_GE(pace.ready_at(at(0)), at(0.499));
  }
}

TEST(Pace, a_pause_ends_when_the_clock_is_set_back) {
  Receiver receiver = webhook();
  receiver.group_wait = units::Seconds(0);
  Pace pace(receiver);
  pace.failed(at(100'000), {}, 0);
  EXPECT_EQ(pace.ready_at(at(0)), at(0));
}

TEST(Pace, retry_after_is_kept_to_up_to_an_hour) {
  Receiver receiver = webhook();
  Pace pace(receiver);
  pace.failed(at(0), units::Seconds(120), 0.5);
  EXPECT_EQ(pace.ready_at(at(0)), at(120));
  pace.failed(at(0), units::Seconds(1e9), 0.5);
  EXPECT_EQ(pace.ready_at(at(0)), at(3'600));
}

TEST(Pace, an_hour_has_as_many_messages_as_it_may_and_not_one_more) {
  Receiver receiver = webhook();
  receiver.group_wait = units::Seconds(0);
  receiver.per_hour = 2;
  Pace pace(receiver);
  pace.taken(at(0));
  EXPECT_EQ(pace.ready_at(at(10)), at(10));
  EXPECT_FALSE(pace.is_hour_full());
  pace.taken(at(10));
  EXPECT_EQ(pace.ready_at(at(20)), at(3'600));
  EXPECT_TRUE(pace.is_hour_full());
  EXPECT_EQ(pace.ready_at(at(3'600)), at(3'600));
}

TEST(Pace, a_message_that_is_refused_is_halved_down_to_one_finding) {
  Receiver receiver = webhook();
  Pace pace(receiver);
  EXPECT_EQ(pace.batch(), 50U);
  EXPECT_TRUE(pace.halve(50));
  EXPECT_EQ(pace.batch(), 25U);
  EXPECT_TRUE(pace.halve(3));
  EXPECT_EQ(pace.batch(), 1U);
  EXPECT_FALSE(pace.halve(1));
  for (int i = 0; i < 10; ++i) pace.taken(at(i));
  EXPECT_EQ(pace.batch(), 50U);
}

}  // namespace
}  // namespace flopsight::notify
