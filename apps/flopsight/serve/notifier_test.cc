#include "serve/notifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "net/test_http_server.h"
#include "notify/test_records.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using base::json::Value;
using net::TestReply;
using net::TestRequest;
using notify::hang;
using notify::Receiver;
using notify::ReceiverType;
using notify::resolved;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

units::Instant wall() {
  return units::Instant{std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count()};
}

// What receivers got, waited for.
class Heard {
 public:
  void add(std::string text) {
    {
      const std::scoped_lock lock(mutex_);
      all_.push_back(std::move(text));
    }
    came_.notify_all();
  }
  // The first `count`; fewer after a minute.
  std::vector<std::string> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::minutes(1), [&] { return all_.size() >= count; });
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> all_;
};

// "opened aa, resolved bb"
std::string told_in(const std::string& body) {
  std::string out;
  const Value message = base::json::parse(body).value();
  for (const Value& finding : *message.find("findings")->as_array()) {
    out += (out.empty() ? "" : ", ") + *finding.find("transition")->as_string() + " " + finding.find("id")->as_string()->substr(14);
  }
  return out;
}

class NotifierTest : public ::testing::Test {
 protected:
  Receiver webhook(const net::TestHttpServer& server) {
    Receiver receiver;
    receiver.name = "hook";
    receiver.url = server.url("/in");
    receiver.group_wait = units::Seconds(0);
    return receiver;
  }
  void start(std::vector<Receiver> receivers, std::size_t records_max = kRecordsKeptMax) {
    auto opened = Notifier::open(folder_.path(), {"", std::move(receivers)}, wall, [this](const std::string& line) { said_.add(line); }, records_max);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    notifier_ = std::move(opened).value();
  }
  void tell(std::vector<findings::Record> records) { notifier_->update(records); }
  // Once the first receiver has taken so many messages, or after a minute.
  ReceiverHealth taken(std::uint64_t messages) {
    for (int i = 0; i < 6'000 && notifier_->health().at(0).taken < messages; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return notifier_->health().at(0);
  }

  test::TempFolder folder_;
  Heard heard_, said_;
  std::unique_ptr<Notifier> notifier_;
};

TEST_F(NotifierTest, what_was_told_is_not_told_again_after_a_restart_and_its_end_is) {
  net::TestHttpServer server([&](const TestRequest& request) {
    heard_.add(told_in(request.body));
    return TestReply{};
  });
  start({webhook(server)});
  tell({hang()});
  EXPECT_EQ(taken(1).taken, 1U);
  notifier_.reset();
  start({webhook(server)});
  tell({resolved(hang(), wall()), hang("00000000000000bb")});
  EXPECT_THAT(heard_.wait(2), ElementsAre("opened aa", ::testing::AnyOf("opened bb, resolved aa", "resolved aa, opened bb")));
}

TEST_F(NotifierTest, a_receiver_that_fails_first_is_told_later_and_this_is_said_once) {
  std::atomic<int> asked = 0;
  net::TestHttpServer server([&](const TestRequest& request) {
    if (++asked <= 2) return TestReply{.status = "503 Service Unavailable", .headers = {}, .body = "later"};
    heard_.add(told_in(request.body));
    return TestReply{};
  });
  start({webhook(server)});
  tell({hang()});
  EXPECT_THAT(heard_.wait(1), ElementsAre("opened aa"));
  const std::vector<std::string> said = said_.wait(2);
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("hook"), HasSubstr("503 Service Unavailable: later"), HasSubstr("waits")), HasSubstr("takes messages again")));
  const ReceiverHealth health = notifier_->health().at(0);
  EXPECT_EQ(health.failed, 2U);
}

TEST_F(NotifierTest, the_one_finding_that_is_refused_is_given_up_and_all_others_are_told) {
  net::TestHttpServer server([&](const TestRequest& request) {
    if (request.body.find("\"poison\"") != std::string::npos) return TestReply{.status = "400 Bad Request", .headers = {}, .body = "no"};
    heard_.add(told_in(request.body));
    return TestReply{};
  });
  start({webhook(server)});
  std::vector<findings::Record> records;
  for (const char* id : {"aa", "bb", "cc", "dd"}) records.push_back(hang("00000000000000" + std::string(id)));
  records[2].host = "poison";
  tell(records);
  std::string all;
  EXPECT_THAT(said_.wait(1), ElementsAre(AllOf(HasSubstr("given up"), HasSubstr("00000000000000cc"), HasSubstr("400 Bad Request: no"))));
  for (const std::string& told : heard_.wait(2)) all += told + ", ";
  EXPECT_EQ(all, "opened aa, opened bb, opened dd, ");
  EXPECT_EQ(notifier_->health().at(0).given_up, 1U);
}

TEST_F(NotifierTest, a_receiver_that_lets_nobody_in_is_given_up_after_its_time) {
  net::TestHttpServer server([&](const TestRequest&) { return TestReply{.status = "403 Forbidden", .headers = {}, .body = ""}; });
  Receiver receiver = webhook(server);
  receiver.give_up = units::Seconds(1);
  start({receiver});
  tell({hang()});
  EXPECT_THAT(said_.wait(2), ElementsAre(HasSubstr("403 Forbidden; what is due waits"), HasSubstr("given up")));
}

TEST_F(NotifierTest, a_receiver_that_hangs_keeps_no_other_waiting) {
  net::TestHttpServer silent([&](const TestRequest&) { return TestReply{.hold_after = 0}; });
  net::TestHttpServer server([&](const TestRequest& request) {
    heard_.add(told_in(request.body));
    return TestReply{};
  });
  Receiver hanging = webhook(silent);
  hanging.name = "silent";
  start({hanging, webhook(server)});
  tell({hang()});
  EXPECT_THAT(heard_.wait(1), ElementsAre("opened aa"));
}

TEST_F(NotifierTest, an_alertmanager_gets_alerts_on_its_path_with_credentials_that_are_not_said) {
  std::atomic<int> asked = 0;
  net::TestHttpServer server([&](const TestRequest& request) {
    if (++asked == 1) return TestReply{.status = "502 Bad Gateway", .headers = {}, .body = ""};
    heard_.add(request.method + " " + request.target + " " + request.header("authorization") + " " + request.header("content-type") + " " + request.body);
    return TestReply{};
  });
  Receiver receiver;
  receiver.name = "am";
  receiver.type = ReceiverType::kAlertmanager;
  receiver.group_wait = units::Seconds(0);
  receiver.url_file = folder_.write("url", server.url("/prefix-sesame/") + "\n");
  receiver.bearer_token_file = folder_.write("token", "open-sesame\n");
  start({receiver});
  tell({hang()});
  EXPECT_THAT(heard_.wait(1), ElementsAre(AllOf(HasSubstr("POST /prefix-sesame/api/v2/alerts Bearer open-sesame application/json [{"), HasSubstr("FlopsightGpuHung"))));
  EXPECT_THAT(said_.wait(1).at(0), AllOf(HasSubstr("502"), Not(HasSubstr("sesame"))));
}

TEST_F(NotifierTest, a_command_is_run_once_for_each_change_without_a_shell_and_with_little_of_the_environment) {
  setenv("FLOPSIGHT_TEST_SECRET", "secret", 1);
  const std::string out = folder_.path() + "/out";
  Receiver receiver;
  receiver.name = "drain";
  receiver.type = ReceiverType::kCommand;
  receiver.group_wait = units::Seconds(0);
  receiver.timeout = units::Seconds(60);
  receiver.command = {folder_.write("drain", "#!/bin/sh\nset -e\nenv > \"$1.env\"\ncat > \"$1.json\"\necho \"$FLOPSIGHT_TRANSITION $FLOPSIGHT_HOST\" >> \"$1\"\n"), out};
  std::filesystem::permissions(receiver.command[0], std::filesystem::perms::owner_all);
  start({receiver});
  findings::Record record = hang();
  record.host = "$(touch " + out + ".hacked)`id`;\nx";
  tell({record});
  EXPECT_EQ(taken(1).exits.at(0), 1U);
  tell({resolved(record, wall())});
  EXPECT_EQ(taken(2).exits.at(0), 2U);
  const auto text_of = [](const std::string& path) {
    std::ifstream file(path);
    return (std::stringstream() << file.rdbuf()).str();
  };
  const std::string host = "$(touch " + out + ".hacked)`id`;?x";
  EXPECT_EQ(text_of(out), "opened " + host + "\nresolved " + host + "\n");
  EXPECT_FALSE(std::filesystem::exists(out + ".hacked"));
  EXPECT_THAT(text_of(out + ".env"), AllOf(HasSubstr("PATH="), Not(HasSubstr("secret"))));
  EXPECT_EQ(told_in(text_of(out + ".json")), "resolved aa");
}

TEST_F(NotifierTest, a_command_that_fails_is_run_as_often_as_it_may_and_then_given_up) {
  Receiver receiver;
  receiver.name = "drain";
  receiver.type = ReceiverType::kCommand;
  receiver.group_wait = units::Seconds(0);
  receiver.attempts = 2;
  receiver.command = {"sh", "-c", "echo no such node >&2; exit 3"};
  start({receiver});
  tell({hang()});
  EXPECT_THAT(said_.wait(2), ElementsAre(HasSubstr("sh: ended with 3: no such node; what is due waits"), HasSubstr("given up")));
  EXPECT_EQ(notifier_->health().at(0).exits.at(3), 2U);
}

TEST_F(NotifierTest, what_was_read_before_a_change_and_comes_after_it_is_old_news) {
  net::TestHttpServer server([&](const TestRequest& request) {
    heard_.add(told_in(request.body));
    return TestReply{};
  });
  start({webhook(server)});
  tell({hang()});
  heard_.wait(1);
  tell({resolved(hang(), wall())});
  EXPECT_EQ(taken(2).taken, 2U);
  tell({hang(), hang("00000000000000bb")});
  EXPECT_THAT(heard_.wait(3), ElementsAre("opened aa", "resolved aa", "opened bb"));
}

TEST_F(NotifierTest, as_many_findings_are_kept_as_the_limit_and_of_more_those_that_ended_first_go) {
  const units::Instant now = wall();
  const findings::Record open = hang("00000000000000aa"), late = resolved(hang("00000000000000bb"), now), early = resolved(hang("00000000000000cc"), now - units::Seconds(60));
  net::TestHttpServer server([&](const TestRequest& request) {
    heard_.add(told_in(request.body));
    return TestReply{};
  });
  start({}, 2);
  tell({open, late, early});
  // A receiver that was known before all of them ended is told of what is kept.
  {
    auto ledger = store::NotifyLedger::open(folder_.path());
    ASSERT_TRUE(ledger.ok());
    ASSERT_TRUE((*ledger)->since("hook", now - units::Seconds(3'600)).ok());
  }
  notifier_->replace({"", {webhook(server)}});
  EXPECT_THAT(heard_.wait(1), ElementsAre(::testing::AnyOf("opened aa, resolved bb", "resolved bb, opened aa")));
}

TEST_F(NotifierTest, other_settings_end_one_receiver_and_leave_the_next_as_it_is) {
  net::TestHttpServer server([&](const TestRequest& request) {
    heard_.add(request.target + " " + told_in(request.body));
    return TestReply{};
  });
  Receiver other = webhook(server);
  other.name = "other";
  other.url = server.url("/other");
  start({webhook(server)});
  tell({hang()});
  heard_.wait(1);
  notifier_->replace({"", {webhook(server), other}});
  EXPECT_THAT(heard_.wait(2), ElementsAre("/in opened aa", "/other opened aa"));
  notifier_->replace({"", {}});
  EXPECT_TRUE(notifier_->health().empty());
}

}  // namespace
}  // namespace flopsight::app
