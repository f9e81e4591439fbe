#include "store/notify_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace flopsight::store {
namespace {

using ::testing::ElementsAre;

units::Instant at(int seconds) { return units::Instant{1'790'000'000'000 + 1'000 * std::int64_t{seconds}}; }

ToldFinding row(const std::string& id, bool is_open, int seconds) { return {id, is_open, false, at(seconds), "warning", "{}"}; }

class NotifyLedgerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("flopsight-ledger-" + std::to_string(::getpid()) + "-" + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    open();
  }
  void TearDown() override {
    ledger_.reset();
    std::filesystem::remove_all(folder_);
  }
  void open(std::size_t rows_max = NotifyLedger::kRowsMax) {
    ledger_.reset();
    auto opened = NotifyLedger::open(folder_, rows_max);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    ledger_ = std::move(opened).value();
  }
  std::vector<std::string> ids(std::string_view receiver) {
    const auto told = ledger_->told(receiver);
    std::vector<std::string> out;
    for (const auto& [id, row] : told.value()) out.push_back(id);
    return out;
  }
  std::string folder_;
  std::unique_ptr<NotifyLedger> ledger_;
};

TEST_F(NotifyLedgerTest, what_was_told_to_whom_is_there_after_a_restart) {
  ASSERT_TRUE(ledger_->put("a", {row("1", true, 0), row("2", false, 1)}).ok());
  ASSERT_TRUE(ledger_->put("b", {row("3", true, 0)}).ok());
  ASSERT_TRUE(ledger_->put("a", {{"1", false, true, at(5), "critical", "{\"x\":\"y\"}"}}).ok());
  open();
  const auto told = ledger_->told("a");
  ASSERT_EQ(told->size(), 2U);
  const ToldFinding& first = told->at("1");
  EXPECT_FALSE(first.is_open);
  EXPECT_TRUE(first.is_given_up);
  EXPECT_EQ(first.told, at(5));
  EXPECT_EQ(first.severity, "critical");
  EXPECT_EQ(first.labels, "{\"x\":\"y\"}");
  EXPECT_THAT(ids("b"), ElementsAre("3"));
}

TEST_F(NotifyLedgerTest, a_receiver_is_known_since_it_was_first_asked_for) {
  EXPECT_EQ(ledger_->since("a", at(10)).value(), at(10));
  open();
  EXPECT_EQ(ledger_->since("a", at(20)).value(), at(10));
  EXPECT_EQ(ledger_->since("b", at(20)).value(), at(20));
}

TEST_F(NotifyLedgerTest, old_ends_are_forgotten_and_open_ones_are_not) {
  ASSERT_TRUE(ledger_->put("a", {row("1", true, 0), row("2", false, 0), row("3", false, 100)}).ok());
  ASSERT_TRUE(ledger_->put("b", {row("4", false, 0)}).ok());
  ASSERT_TRUE(ledger_->forget("a", at(50)).ok());
  EXPECT_THAT(ids("a"), ElementsAre("1", "3"));
  EXPECT_THAT(ids("b"), ElementsAre("4"));
}

TEST_F(NotifyLedgerTest, as_many_rows_as_the_limit_and_of_more_the_oldest_ends_go) {
  open(3);
  ASSERT_TRUE(ledger_->put("a", {row("1", true, 0), row("2", false, 1), row("3", false, 2)}).ok());
  ASSERT_TRUE(ledger_->forget("a", at(0)).ok());
  EXPECT_THAT(ids("a"), ElementsAre("1", "2", "3"));
  ASSERT_TRUE(ledger_->put("a", {row("4", true, 3)}).ok());
  ASSERT_TRUE(ledger_->forget("a", at(0)).ok());
  EXPECT_THAT(ids("a"), ElementsAre("1", "3", "4"));
}

TEST_F(NotifyLedgerTest, a_damaged_file_is_put_aside_and_said) {
  ledger_.reset();
  for (const char* name : {"/flopsight-notify.db", "/flopsight-notify.db-wal"}) std::ofstream(folder_ + name, std::ios::binary) << std::string(8'192, 'x');
  open();
  EXPECT_THAT(ledger_->damage(), ::testing::HasSubstr("put aside"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/flopsight-notify.db.damaged-1"));
  EXPECT_TRUE(ledger_->told("a")->empty());
}

}  // namespace
}  // namespace flopsight::store
