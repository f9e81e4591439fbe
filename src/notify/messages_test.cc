#include "notify/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/utf8.h"
#include "notify/alerts.h"
#include "notify/test_records.h"
#include "notify/words.h"

namespace flopsight::notify {
namespace {

namespace json = base::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_at(const json::Value& value, std::string_view key) {
  const json::Value* found = value.find(key);
  return found != nullptr && found->as_string() != nullptr ? *found->as_string() : "-";
}

json::Value alert_of(const Alert& alert) { return json::parse(alerts_body(std::array{alert})).value().as_array()->at(0); }

// A name as somebody might choose it who wants to do harm: a shell's orders, a terminal's, a line break, bytes that are no UTF-8.
const std::string kHostile = "$(reboot)`id`;\n\x1b[2J\"'\\\xff" + std::string(1, '\0') + "\u202e" + std::string(5'000, 'x');

TEST(Alerts, have_the_names_of_flopsight_rules_where_it_has_one) {
  EXPECT_EQ(alert_name("hang"), "FlopsightGpuHung");
  EXPECT_EQ(alert_name("regression"), "FlopsightJobOfuDropped");
  EXPECT_EQ(alert_name("below_family"), "FlopsightBelowFamily");
  EXPECT_EQ(alert_name("test"), "FlopsightTest");
}

TEST(Alerts, carry_whose_what_since_when_and_a_link) {
  Receiver receiver;
  receiver.type = ReceiverType::kAlertmanager;
  receiver.labels = {{"cluster", "a"}, {"job", "not this one"}};
  const json::Value alert = alert_of(open_alert(hang(), receiver, "https://f.example/", at(100)));
  const json::Value& labels = *alert.find("labels");
  for (const auto& [name, value] : std::map<std::string, std::string>{{"alertname", "FlopsightGpuHung"}, {"severity", "critical"}, {"kind", "hang"}, {"job", "train"},
                                                                      {"namespace", "ml"}, {"user", "ada"}, {"team", "vision"}, {"host", "n1"}, {"gpu", "GPU-1"},
                                                                      {"UUID", "GPU-1"}, {"id", "00000000000000aa"}, {"cluster", "a"}}) {
    EXPECT_EQ(text_at(labels, name), value);
  }
  const json::Value& annotations = *alert.find("annotations");
  EXPECT_EQ(text_at(annotations, "summary"), "hang: job ml/train, GPU GPU-1 of host n1");
  EXPECT_EQ(text_at(annotations, "description"), "no tensor work for 10 minutes\npower_watts = 143.25\nsuspect: NVLink is silent (50 % of it)");
  EXPECT_EQ(text_at(annotations, "cost"), "12.50 GPU-hours, $37.50 since " + units::to_rfc3339(at(0)));
  EXPECT_EQ(text_at(alert, "startsAt"), units::to_rfc3339(at(0)));
  EXPECT_EQ(text_at(alert, "endsAt"), units::to_rfc3339(at(100 + 4 * 60)));
  EXPECT_EQ(text_at(alert, "generatorURL"), "https://f.example/finding?id=00000000000000aa");
}

TEST(Alerts, without_an_address_of_this_service_have_no_link) {
  EXPECT_EQ(alert_of(open_alert(hang(), Receiver(), "", at(100))).find("generatorURL"), nullptr);
}

TEST(Alerts, end_when_the_finding_did_and_never_before_they_started_or_later_than_now) {
  EXPECT_EQ(ended_alert(resolved(hang(), at(200)), "{}", "", at(300))->ends, at(200));
  EXPECT_EQ(ended_alert(resolved(hang(), at(-200)), "{}", "", at(300))->ends, at(0));
  EXPECT_EQ(ended_alert(resolved(hang(), at(900)), "{}", "", at(300))->ends, at(300));
  EXPECT_FALSE(ended_alert(hang(), "[1]", "", at(300)).ok());
  EXPECT_FALSE(ended_alert(hang(), "{\"a\":1}", "", at(300)).ok());
}

TEST(Alerts, that_end_although_the_finding_is_open_say_why) {
  findings::Record record = hang();
  record.state = findings::State::kAcknowledged;
  record.acknowledged_by = "ada";
  const json::Value alert = alert_of(ended_alert(record, "{\"alertname\":\"x\"}", "", at(300)).value());
  EXPECT_THAT(text_at(*alert.find("annotations"), "withdrawn"), HasSubstr("acknowledged"));
  EXPECT_EQ(text_at(*alert.find("annotations"), "acknowledged_by"), "ada");
}

TEST(Alerts, of_a_simulated_fleet_say_so) {
  findings::Record record = hang();
  record.simulated = true;
  const json::Value alert = alert_of(open_alert(record, Receiver(), "", at(100)));
  EXPECT_EQ(text_at(*alert.find("labels"), "simulated"), "true");
  EXPECT_THAT(text_at(*alert.find("annotations"), "summary"), HasSubstr("SIMULATED"));
}

TEST(Words, names_from_strangers_become_one_line_of_utf8_of_limited_length) {
  const std::string name = clean(kHostile);
  EXPECT_LE(name.size(), kNameBytesMax + 3);
  EXPECT_TRUE(base::is_utf8(name));
  EXPECT_EQ(std::count_if(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }), 0);
  EXPECT_THAT(name, Not(HasSubstr("\u202e")));
}

TEST(Messages, carry_every_finding_with_its_transition_and_how_many_more_there_are) {
  const findings::Record a = hang("00000000000000aa"), b = resolved(hang("00000000000000bb"), at(300));
  const Due due[] = {{&a, Telling::kOpened}, {&b, Telling::kResolved}};
  const json::Value message = json::parse(message_json({"hook", "https://f.example", at(400), due, 7, false})).value();
  EXPECT_EQ(*message.find("version")->as_number(), 1);
  EXPECT_EQ(*message.find("more")->as_number(), 7);
  EXPECT_THAT(text_at(message, "text"), HasSubstr("opened: hang: job ml/train"));
  EXPECT_THAT(text_at(message, "text"), HasSubstr("and 7 more"));
  const json::Array& list = *message.find("findings")->as_array();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(text_at(list[0], "transition"), "opened");
  EXPECT_EQ(text_at(list[0], "state"), "open");
  EXPECT_EQ(text_at(list[1], "transition"), "resolved");
  EXPECT_EQ(text_at(list[1], "resolved"), units::to_rfc3339(at(300)));
  EXPECT_EQ(text_at(list[1], "link"), "https://f.example/finding?id=00000000000000bb");
}

TEST(Messages, hostile_names_stay_values_and_huge_findings_stay_small) {
  findings::Record record = hang();
  record.holder.job = record.holder.user = record.host = record.gpu = record.text = record.note = kHostile;
  for (int i = 0; i < 10'000; ++i) record.evidence.push_back({kHostile, 1});
  for (int i = 0; i < 1'000; ++i) record.suspects.push_back({detect::SuspectKind::kKernels, {}, kHostile});
  const Due due[] = {{&record, Telling::kOpened}};
  const std::string body = message_json({"hook", "", at(400), due, 0, false});
  EXPECT_LT(body.size(), 100'000U);
  ASSERT_TRUE(json::parse(body).ok());
  EXPECT_TRUE(base::is_utf8(body));
  for (const auto& [name, value] : command_environment({"hook", "", at(400), due, 0, false})) {
    EXPECT_EQ(value.find('\0'), std::string::npos) << name;
    EXPECT_EQ(value.find('\n'), std::string::npos) << name;
    EXPECT_LE(value.size(), kTextBytesMax + 3) << name;
  }
}

TEST(Messages, a_command_is_told_what_happened_to_whom) {
  const findings::Record record = hang();
  const Due due[] = {{&record, Telling::kResolved}};
  const auto list = command_environment({"drain", "", at(400), due, 2, true});
  const std::map<std::string, std::string> environment(list.begin(), list.end());
  EXPECT_EQ(environment.at("FLOPSIGHT_TRANSITION"), "resolved");
  EXPECT_EQ(environment.at("FLOPSIGHT_HOST"), "n1");
  EXPECT_EQ(environment.at("FLOPSIGHT_KIND"), "hang");
  EXPECT_EQ(environment.at("FLOPSIGHT_MORE"), "2");
  EXPECT_EQ(environment.at("FLOPSIGHT_TEST"), "1");
}

}  // namespace
}  // namespace flopsight::notify
