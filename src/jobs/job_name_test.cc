#include "jobs/job_name.h"

#include <gtest/gtest.h>

#include "jobs/test_holder.h"

namespace flopsight::jobs {
namespace {

TEST(JobName, is_one_word_and_back) {
  EXPECT_EQ(job_text(holder("train-0", "ml")), "train-0@ml");
  EXPECT_EQ(job_text(holder("101", "")), "101");
  EXPECT_EQ(job_text(holder("a/b@c %", "x y")), "a~2fb~40c~20~25@x~20y");
  for (const auto& [job, name_space] : {std::pair<std::string, std::string>{"train-0", "ml"}, {"a/b@c %", "x@y"}, {"ü", ""}, {"../..", "?"}}) {
    const auto back = parse_job_text(job_text(holder(job, name_space)));
    ASSERT_TRUE(back) << job;
    EXPECT_EQ(back->job, job);
    EXPECT_EQ(back->name_space, name_space);
  }
}

TEST(JobName, texts_of_no_job_are_none) {
  for (const char* text : {"", "@ml", "a@", "a@b@c", "a~@b", "a~4@b", "a~zz@b", "a~61@b", "a~2F@b", "a b@c", "a/b@c"}) {
    EXPECT_FALSE(parse_job_text(text)) << text;
  }
}

}  // namespace
}  // namespace flopsight::jobs
