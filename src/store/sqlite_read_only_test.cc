#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "store/sqlite.h"

namespace flopsight::store {
namespace {

struct Folder {
  Folder() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path = testing::TempDir() + "flopsight_read_only_XXXXXX";
};

// A folder in which nobody may write, also where the test is run by root.
class ReadOnlyFolder {
 public:
  explicit ReadOnlyFolder(const std::string& path) : path_(path) {
    EXPECT_EQ(chmod(path_.c_str(), 0555), 0);
    if (geteuid() == 0) was_root_ = seteuid(65'534) == 0;
  }
  ~ReadOnlyFolder() {
    if (was_root_) {
      EXPECT_EQ(seteuid(0), 0);
    }
    EXPECT_EQ(chmod(path_.c_str(), 0755), 0);
  }
  ReadOnlyFolder(const ReadOnlyFolder&) = delete;
  ReadOnlyFolder& operator=(const ReadOnlyFolder&) = delete;

 private:
  std::string path_;
  bool was_root_ = false;
};

Database made(const std::string& path) {
  auto database = Database::open(path, Database::Mode::kReadWrite);
  EXPECT_TRUE(database.ok());
  EXPECT_TRUE(database->execute("PRAGMA journal_mode = WAL; CREATE TABLE t(x); INSERT INTO t VALUES(7);").ok());
  return std::move(database).value();
}

base::Result<std::int64_t> read(const std::string& path) {
  auto opened = Database::open(path, Database::Mode::kReadOnly);
  if (!opened.ok()) return opened.error();
  Database database = std::move(opened).value();
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement statement, database.prepare("SELECT x FROM t"));
  FLOPSIGHT_RETURN_IF_ERROR(statement.step());
  return statement.integer(0);
}

TEST(ReadOnly, a_closed_database_in_a_folder_that_may_only_be_read_is_read) {
  const Folder folder;
  const std::string path = folder.path + "/a%20#b.db";
  { const Database database = made(path); }
  const ReadOnlyFolder locked(folder.path);
  const auto found = read(path);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(*found, 7);
}

TEST(ReadOnly, one_that_was_not_closed_says_in_one_line_why_it_cannot_be_read) {
  const Folder folder;
  const std::string path = folder.path + "/flopsight.db";
  const Database open = made(folder.path + "/open.db");
  // As after a crash: the journal is there, and the file that coordinates its readers is not.
  for (const char* end : {"", "-wal"}) std::filesystem::copy_file(folder.path + "/open.db" + end, path + end);
  const ReadOnlyFolder locked(folder.path);
  const auto found = read(path);
  ASSERT_FALSE(found.ok());
  EXPECT_TRUE(found.error().message.starts_with(path + ": in use, or not closed, by another process")) << found.error().message;
}

}  // namespace
}  // namespace flopsight::store
