#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "net/test_http_server.h"
#include "test_support.h"

namespace flopsight::app::test {
namespace {

using net::TestReply;
using net::TestRequest;
using ::testing::HasSubstr;

TEST(NotifyCommand, sends_a_test_to_every_receiver_but_commands_and_says_how_it_went) {
  std::mutex mutex;
  std::string body;
  net::TestHttpServer good([&](const TestRequest& request) {
    const std::scoped_lock lock(mutex);
    body = request.body;
    return TestReply{};
  });
  net::TestHttpServer bad([](const TestRequest&) { return TestReply{.status = "403 Forbidden", .headers = {}, .body = "not you"}; });
  const TempFolder folder;
  const std::string config = folder.write("f.yml", "notify:\n  receivers:\n    - {name: a, type: webhook, url: '" + good.url("/") + "'}\n    - {name: b, type: alertmanager, url: '" +
                                                       bad.url("/") + "'}\n    - {name: c, type: command, command: ['false']}\n");
  const Answer answer = run_program({"notify", "test", "--config", config, "--severity", "critical"});
  EXPECT_EQ(answer.exit_code, 1) << answer.err;
  EXPECT_EQ(answer.out, "a (webhook): taken\nb (alertmanager): failed: HTTP 403 Forbidden: not you\nc (command): not run; --receiver c runs it\n");
  const Value message = base::json::parse(body).value();
  EXPECT_EQ(text(message, "test"), "true");
  EXPECT_EQ(text(message, "findings.0.kind"), "test");
  EXPECT_EQ(text(message, "findings.0.severity"), "critical");
}

TEST(NotifyCommand, runs_a_command_that_is_named) {
  const TempFolder folder;
  const std::string config =
      folder.write("f.yml", "notify:\n  receivers:\n    - {name: c, type: command, command: [sh, -c, 'test \"$FLOPSIGHT_TEST\" = 1 && echo told >" + folder.path() + "/out']}\n");
  const Answer answer = run_program({"notify", "test", "--config", config, "--receiver", "c"});
  EXPECT_EQ(answer.out, "c (command): taken\n");
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/out"));
}

TEST(NotifyCommand, wrong_use_is_one_line_and_2) {
  const TempFolder folder;
  const std::string none = folder.write("none.yml", "listen: 127.0.0.1:0\n");
  const std::string one = folder.write("one.yml", "notify:\n  receivers:\n    - {name: a, type: webhook, url: 'http://127.0.0.1:1'}\n");
  const auto said = [](const std::vector<std::string>& arguments) {
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_EQ(answer.out, "");
    return answer.err;
  };
  EXPECT_THAT(said({"notify", "test", "--config", none}), HasSubstr("notify.receivers: none, expected a list"));
  EXPECT_THAT(said({"notify", "test", "--config", one, "--receiver", "b"}), HasSubstr("no receiver is called b"));
  EXPECT_THAT(said({"notify", "test", "--config", one, "--severity", "high"}), HasSubstr("--severity high: expected info, warning or critical"));
  EXPECT_THAT(said({"notify", "test"}), HasSubstr("--config is required"));
}

TEST(NotifyConfig, mistakes_have_file_and_line_and_files_and_programs_must_be_there) {
  const TempFolder folder;
  const auto said = [&](const std::string& receiver, const std::string& before = "") {
    const std::string path = folder.write("f.yml", "notify:\n" + before + "  receivers:\n    - " + receiver + "\n");
    const Answer answer = run_program({"check-config", path});
    return answer.exit_code == 2 ? answer.err : answer.out;
  };
  EXPECT_THAT(said("{name: a, type: webhook, url: 'http://x'}"), HasSubstr("ok"));
  EXPECT_THAT(said("{name: a, type: webhook, url: x}"), HasSubstr("f.yml:3: notify.receivers: a: url: found"));
  EXPECT_THAT(said("{name: a, type: webhook, url-file: /nowhere/url}"), HasSubstr("a: /nowhere/url: cannot open"));
  EXPECT_THAT(said("{name: a, type: command, command: [/nowhere/drain]}"), HasSubstr("/nowhere/drain: no such program"));
  EXPECT_THAT(said("{name: a, type: webhook, url: 'http://x', headers: ['A b: c']}"), HasSubstr("A b"));
  EXPECT_THAT(said("{name: a, type: webhook, url: 'http://x'}", "  external-url: example.com\n"), HasSubstr("notify.external-url: found \"example.com\", expected http"));
  EXPECT_THAT(said("{name: a, type: webhook, url: 'http://x'}", "  receiver: x\n"), HasSubstr("notify.receiver: no such key"));
}

}  // namespace
}  // namespace flopsight::app::test
