#include "notify/receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "notify/test_records.h"

namespace flopsight::notify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

base::Result<std::vector<Receiver>> parsed(const std::string& yaml) {
  const auto list = base::yaml::parse(yaml);
  return parse_receivers(list.value(), "f.yml");
}

std::string mistake_in(const std::string& yaml) {
  const auto receivers = parsed(yaml);
  return receivers.ok() ? "" : receivers.error().message;
}

TEST(Receivers, are_read_with_their_routes_and_defaults) {
  const auto receivers = parsed(
      "- {name: am, type: alertmanager, url: 'http://am:9093', labels: {cluster: a}}\n"
      "- name: hook\n  type: webhook\n  url-file: /etc/url\n  teams: [ml-*, vision]\n  kinds: hang\n  min-severity: critical\n  data-quality: false\n  reminder: 4h\n"
      "- {name: drain, type: command, command: [/bin/drain, --now]}\n");
  ASSERT_TRUE(receivers.ok()) << receivers.error().message;
  ASSERT_EQ(receivers->size(), 3U);
  const Receiver &am = (*receivers)[0], &hook = (*receivers)[1], &drain = (*receivers)[2];
  EXPECT_EQ(am.url, "http://am:9093");
  EXPECT_EQ(am.per_hour, 0U);
  EXPECT_EQ(am.route.severity_min, detect::Severity::kWarning);
  EXPECT_THAT(am.labels, ElementsAre(std::pair<std::string, std::string>("cluster", "a")));
  EXPECT_THAT(hook.route.teams, ElementsAre("ml-*", "vision"));
  EXPECT_THAT(hook.route.kinds, ElementsAre("hang"));
  EXPECT_EQ(hook.reminder.value, 4 * 3'600);
  EXPECT_FALSE(hook.route.data_quality);
  EXPECT_THAT(drain.command, ElementsAre("/bin/drain", "--now"));
  EXPECT_EQ(drain.timeout.value, 60);
  EXPECT_EQ(drain.per_hour, 20U);
}

TEST(Receivers, a_route_asks_severity_kind_quality_and_names) {
  Route route;
  EXPECT_TRUE(route.takes(hang()));
  findings::Record record = hang();
  record.severity = detect::Severity::kInfo;
  EXPECT_FALSE(route.takes(record));
  route.severity_min = detect::Severity::kInfo;
  EXPECT_TRUE(route.takes(record));
  record.data_quality = true;
  route.data_quality = false;
  EXPECT_FALSE(route.takes(record));
  route.data_quality = true;
  for (auto field : {&Route::kinds, &Route::jobs, &Route::namespaces, &Route::users, &Route::teams, &Route::hosts}) {
    (route.*field) = {"nothing-*", "x"};
    EXPECT_FALSE(route.takes(record));
    (route.*field) = {"x", "*"};
    EXPECT_TRUE(route.takes(record));
  }
}

TEST(Receivers, a_mistake_is_one_line_with_file_line_key_and_what_was_expected) {
  EXPECT_EQ(mistake_in("- {name: a, type: webhook, url: 'ftp://x:secret@y'}"), "f.yml:1: notify.receivers: a: url: found \"…\", expected http:// or https://");
  EXPECT_EQ(mistake_in("- name: a\n  type: mail\n"), "f.yml:2: notify.receivers: a: type: expected alertmanager, webhook or command");
  EXPECT_THAT(mistake_in("- {type: webhook}"), HasSubstr("name: expected up to 64"));
  EXPECT_THAT(mistake_in("- {name: 'a b', type: webhook}"), HasSubstr("name: expected up to 64"));
  EXPECT_THAT(mistake_in("- {name: a, type: webhook}"), HasSubstr("expected one of url and url-file"));
  EXPECT_THAT(mistake_in("- {name: a, type: command}"), HasSubstr("command: missing"));
  EXPECT_THAT(mistake_in("- {name: a, type: command, command: [x], url: 'http://a'}"), HasSubstr("url: is not for a receiver of type command, only for alertmanager, webhook"));
  EXPECT_THAT(mistake_in("- {name: a, type: webhook, url: 'http://a', resend: 1m}"), HasSubstr("resend: is not for a receiver of type webhook"));
  EXPECT_THAT(mistake_in("- name: a\n  type: webhook\n  url: http://a\n  colour: red\n"), HasSubstr("f.yml:4: notify.receivers: a: colour: no such key"));
  EXPECT_THAT(mistake_in("- {name: a, type: webhook, url: 'http://a', min-severity: high}"), HasSubstr("found \"high\", expected info, warning or critical"));
  EXPECT_THAT(mistake_in("- {name: a, type: webhook, url: 'http://a', reminder: 1s}"), HasSubstr("expected 1m or longer"));
  EXPECT_THAT(mistake_in("- {name: a, type: webhook, url: 'http://a', basic-user: u}"), HasSubstr("belong together"));
  EXPECT_THAT(mistake_in("- {name: a, type: alertmanager, url: 'http://a', labels: {a-b: c}}"), HasSubstr("labels: found a mapping"));
  EXPECT_THAT(mistake_in("- {name: a, type: webhook, url: 'http://a'}\n- {name: a, type: webhook, url: 'http://b'}"), HasSubstr("f.yml:2: notify.receivers: a: a second receiver"));
  EXPECT_THAT(mistake_in("name: a"), HasSubstr("found a mapping, expected a list of receivers"));
}

TEST(Receivers, as_many_as_the_limit_and_not_one_more) {
  std::string yaml;
  for (std::size_t i = 0; i < kReceiversMax; ++i) yaml += "- {name: r" + std::to_string(i) + ", type: webhook, url: 'http://a'}\n";
  EXPECT_EQ(parsed(yaml)->size(), kReceiversMax);
  const auto over = parsed(yaml + "- {name: over, type: webhook, url: 'http://a'}\n");
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, base::ErrorCode::kLimit);
}

}  // namespace
}  // namespace flopsight::notify
