#include "findings/ledger.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "findings/test_records.h"

namespace flopsight::findings {
namespace {

using test::at;
using test::wall;

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    std::string name = (std::filesystem::temp_directory_path() / "ledger_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    open();
  }
  ~LedgerTest() override {
    ledger_.reset();
    std::filesystem::remove_all(folder_);
  }
  void open(LedgerOptions options = {}) {
    ledger_.reset();
    auto opened = Ledger::open(folder_, options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    ledger_ = std::move(opened).value();
  }
  Record record(std::string_view kind, std::string_view job, int first, int last, State state = State::kOpen) {
    Record out = test::sighting(kind, job, first, last).record;
    out.id = record_id(out.key, out.first);
    out.state = state;
    out.opened = out.changed = wall(last);
    return out;
  }
  std::vector<std::string> jobs(const Query& query) {
    std::vector<std::string> out;
    const auto page = ledger_->find(query);
    EXPECT_TRUE(page.ok());
    for (const Record& found : page->records) out.push_back(found.job);
    return out;
  }
  using Jobs = std::vector<std::string>;

  std::string folder_;
  std::unique_ptr<Ledger> ledger_;
};

TEST_F(LedgerTest, what_was_put_is_there_when_it_is_opened_again) {
  ASSERT_TRUE(ledger_->put(std::vector{record("hang", "a", 0, 5)}, at(6)).ok());
  const auto silence = silence_from_told(R"({"matchers": ["job=a"], "duration_seconds": 60, "comment": "x"})", "ada", wall(0));
  ASSERT_TRUE(ledger_->put_silence(*silence).ok());
  open();
  ASSERT_EQ(ledger_->current(at(100))->size(), 1u);
  EXPECT_EQ(ledger_->current(at(100))->front().text, "OFU fell");
  EXPECT_EQ(ledger_->looked_until().value(), at(6));
  EXPECT_EQ(ledger_->silences()->front().id, silence->id);
  EXPECT_EQ(ledger_->record(record_id("hang/job=a", at(0)))->value().kind, "hang");
  EXPECT_FALSE(ledger_->record("0000000000000000")->has_value());
}

TEST_F(LedgerTest, a_query_finds_by_each_of_its_parts_and_only_whom_the_caller_may_see) {
  Record of_bob = record("regression", "b", 10, 20);
  of_bob.holder.user = "bob";
  of_bob.host = "n1";
  Record of_nobody = record("thermal", "", 0, 5);
  of_nobody.holder = {};
  of_nobody.gpu = "GPU-1";
  ASSERT_TRUE(ledger_->put(std::vector{record("hang", "a", 0, 5), of_bob, of_nobody, record("stall", "c", 0, 5, State::kResolved)}, std::nullopt).ok());
  EXPECT_EQ(jobs({}).size(), 4u);
  Query query;
  query.states = {State::kOpen, State::kAcknowledged};
  EXPECT_EQ(jobs(query), (Jobs{"a", "", "b"})) << "critical ones first";
  query = {};
  query.kinds = {"stall", "regression"};
  EXPECT_EQ(jobs(query), (Jobs{"b", "c"})) << "resolved ones last";
  query = {};
  query.severities = {detect::Severity::kCritical};
  EXPECT_EQ(jobs(query), (Jobs{"a", ""}));
  query = {};
  query.host = "n1";
  EXPECT_EQ(jobs(query), (Jobs{"b"}));
  query = {};
  query.gpu = "GPU-1";
  EXPECT_EQ(jobs(query), (Jobs{""}));
  query = {};
  query.window = units::Window{at(6), at(11)};
  EXPECT_EQ(jobs(query), (Jobs{"b"}));
  query.window = units::Window{at(6), at(10)};
  EXPECT_EQ(jobs(query), (Jobs{}));
  query = {};
  query.seen_users = {"bob"};
  EXPECT_EQ(jobs(query), (Jobs{"b"}));
  query.seen_users = {"eve"};
  EXPECT_EQ(jobs(query), (Jobs{}));
  query.seen_users = {""};
  EXPECT_EQ(jobs(query), (Jobs{})) << "nobody's are not those of a user without a name";
}

TEST_F(LedgerTest, pages_follow_each_other) {
  std::vector<Record> all;
  for (const char* job : {"a", "b", "c"}) all.push_back(record("hang", job, 0, 5));
  ASSERT_TRUE(ledger_->put(all, std::nullopt).ok());
  Jobs together;
  for (std::uint64_t skip = 0; skip < 4; ++skip) {
    Query query;
    query.skip = skip;
    query.limit = 1;
    EXPECT_EQ(ledger_->find(query)->records_total, 3u);
    for (std::string& job : jobs(query)) together.push_back(std::move(job));
  }
  std::sort(together.begin(), together.end());
  EXPECT_EQ(together, (Jobs{"a", "b", "c"}));
}

TEST_F(LedgerTest, past_its_limit_the_ones_that_were_resolved_longest_ago_go_and_open_ones_never) {
  LedgerOptions options;
  options.records_max = 3;
  open(options);
  ASSERT_TRUE(ledger_->put(std::vector{record("hang", "a", 0, 1, State::kResolved), record("hang", "b", 0, 2, State::kResolved), record("hang", "c", 0, 0)},
                           std::nullopt)
                  .ok());
  ASSERT_TRUE(ledger_->forget(at(0)).ok());
  EXPECT_EQ(jobs({}).size(), 3u);
  ASSERT_TRUE(ledger_->put(std::vector{record("hang", "d", 0, 3)}, std::nullopt).ok());
  ASSERT_TRUE(ledger_->forget(at(0)).ok());
  EXPECT_EQ(jobs({}).size(), 3u);
  EXPECT_FALSE(ledger_->record(record_id("hang/job=a", at(0)))->has_value());
  ASSERT_TRUE(ledger_->forget(at(3)).ok());
  EXPECT_EQ(jobs({}).size(), 2u) << "b was resolved and is old; c is open";
}

TEST_F(LedgerTest, a_damaged_file_is_put_aside_and_said) {
  ledger_.reset();
  std::ofstream(folder_ + "/flopsight-findings.db", std::ios::binary | std::ios::trunc) << std::string(8'192, 'x');
  open();
  EXPECT_NE(ledger_->damage().find("put aside as"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/flopsight-findings.db.damaged-1"));
}

TEST_F(LedgerTest, a_file_of_a_newer_program_is_left_alone) {
  ledger_.reset();
  {
    auto database = store::Database::open(folder_ + "/flopsight-findings.db", store::Database::Mode::kReadWrite);
    ASSERT_TRUE(database->execute("PRAGMA user_version = 99").ok());
  }
  const auto opened = Ledger::open(folder_, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, base::ErrorCode::kUnsupported);
  EXPECT_NE(opened.error().message.find("findings of version 99, this program knows up to 1"), std::string::npos) << opened.error().message;
}

TEST_F(LedgerTest, people_read_it_with_sqlite3) {
  ASSERT_TRUE(ledger_->put(std::vector{record("hang", "a", 0, 5)}, std::nullopt).ok());
  auto database = store::Database::open(folder_ + "/flopsight-findings.db", store::Database::Mode::kReadOnly);
  auto rows = database->prepare("SELECT kind, severity, state, job, first, text FROM told_findings");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_TRUE(rows->step().value());
  EXPECT_EQ(rows->text(0), "hang");
  EXPECT_EQ(rows->text(1), "critical");
  EXPECT_EQ(rows->text(2), "open");
  EXPECT_EQ(rows->text(4), "2026-01-01T00:00:00Z");
  EXPECT_EQ(rows->text(5), "OFU fell");
}

}  // namespace
}  // namespace flopsight::findings
