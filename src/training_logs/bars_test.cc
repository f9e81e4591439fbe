#include "training_logs/bars_internal.h"

#include <gtest/gtest.h>

#include <string>

namespace flopsight::training_logs {
namespace {

std::string bar(int done, int total, const std::string& rate, const std::string& description = "") {
  return description + "  " + std::to_string(100 * done / total) + "%|██▌       | " + std::to_string(done) + "/" + std::to_string(total) + " [00:30<09:30, " + rate + "]";
}

std::string loss(const std::string& epoch) { return "{'loss': 1.29, 'grad_norm': 1.01, 'learning_rate': 8.2e-08, 'epoch': " + epoch + "}\n"; }

TEST(ProgressBars, of_tqdm_in_their_forms) {
  struct Case {
    std::string text, description;
    double seconds;
  };
  const Case cases[] = {
      {bar(25, 500, " 1.20s/it"), "", 1.2},
      {bar(25, 500, "4.00it/s, loss=2.1, lr=1e-5", "Train:"), "Train", 0.25},
      {"0: " + bar(25, 500, "4.00it/s"), "", 0.25},
      {"[rank0]: " + bar(25, 500, "4.00it/s", "Steps:"), "Steps", 0.25},
      {"[1,0]<stderr>:" + bar(25, 500, "4.00it/s"), "", 0.25},
      {"(WorkerDict pid=77) " + bar(25, 500, "4.00it/s", "Training Progress:"), "(WorkerDict pid=77) Training Progress", 0.25},
      {"2026-01-01T00:00:00.123456789Z stderr F " + bar(25, 500, "4.00it/s"), "", 0.25},
      {bar(24, 500, "4.10it/s") + bar(25, 500, "4.00it/s"), "", 0.25},
      {"3: " + bar(25, 500, "4.00it/s", "Train:"), "Train", 0.25},
  };
  for (const Case& one : cases) {
    const auto got = read_bar(one.text);
    ASSERT_TRUE(got) << one.text;
    EXPECT_EQ(got->description, one.description) << one.text;
    EXPECT_EQ(got->done, 25) << one.text;
    EXPECT_EQ(got->total, 500) << one.text;
    EXPECT_DOUBLE_EQ(got->seconds_each.value_or(0), one.seconds) << one.text;
  }
  EXPECT_FALSE(read_bar(bar(0, 500, "?it/s"))->seconds_each);
  for (const char* none : {"50%|", "it/s", "5%| | [00:30<09:30, 1.2s/it]", "5%| | a/b [1.2s/it]", " [", "%|", "━", "━ 1/"}) EXPECT_FALSE(read_bar(none)) << none;
}

TEST(ProgressBars, of_the_trainer_are_those_that_a_loss_follows) {
  std::string text = bar(3, 40, "9.00it/s") + "\r" + bar(40, 40, "9.00it/s") + "\n";  // somebody's tokenizer
  for (int step = 1; step <= 20; ++step) text += bar(step, 500, "2.00s/it") + "\r";
  text += "\n" + loss("0.01");
  for (int step = 21; step <= 40; ++step) text += bar(step, 500, "2.00s/it") + "\r";
  text += bar(1, 16, "30.0it/s") + "\r" + bar(16, 16, "30.0it/s") + "\r" + bar(41, 500, "4.00s/it") + loss("0.02");  // an evaluation
  const Reported got = read_log(text);
  EXPECT_EQ(got.format, "progress-bar");
  // The bars before the first loss may have been anybody's.
  EXPECT_EQ(got.steps_total, 20U);
  EXPECT_EQ(got.steps.front().step, 21);
  EXPECT_EQ(got.attempts, 1U);
  EXPECT_DOUBLE_EQ(*got.summary.step_seconds, 2);
}

TEST(ProgressBars, without_a_word_of_the_trainer_a_bar_without_a_description_is_nobodys) {
  std::string text;
  for (int step = 1; step <= 20; ++step) text += bar(step, 500, "2.00s/it") + "\r";
  EXPECT_EQ(read_log(text).steps_total, 0U);
  Options options;
  options.format = "progress-bar";  // somebody knows
  EXPECT_EQ(read_log(text, options).steps_total, 20U);
}

TEST(ProgressBars, that_say_they_are_of_training_are_read) {
  for (const char* description : {"Train:", "Training:", "Steps:", "1|52|Loss: 2.31:"}) {
    std::string text;
    for (int step = 1; step <= 20; ++step) text += bar(step, 500, "2.00s/it", description) + "\r";
    EXPECT_EQ(read_log(text).steps_total, 20U) << description;
  }
  for (const char* description : {"Loading checkpoint shards:", "Map:", "Evaluating:", "Validation DataLoader 0:", "Sanity Checking DataLoader 0:", "Downloading:"}) {
    EXPECT_EQ(read_log(bar(4, 40, "2.00s/it", description)).steps_total, 0U) << description;
  }
}

TEST(ProgressBars, what_the_trainer_says_at_its_end_is_better_than_its_bar) {
  std::string text = bar(1, 500, "2.00s/it") + "\r" + loss("0.01");
  for (int step = 2; step <= 20; ++step) text += bar(step, 500, "2.00s/it") + "\r";
  text += "{'train_runtime': 100.0, 'train_samples_per_second': 2.0, 'train_steps_per_second': 0.4, 'train_loss': 1.1, 'epoch': 0.02}\n" + bar(7, 500, "9.00s/it");
  const Reported got = read_log(text);
  EXPECT_EQ(got.format, "hf-trainer");
  EXPECT_DOUBLE_EQ(*got.summary.step_seconds, 2.5);
  EXPECT_DOUBLE_EQ(*got.summary.samples_per_second, 2);
}

TEST(ProgressBars, while_the_trainer_says_nothing_else_the_bar_is_given) {
  Reader reader({});
  std::string text = bar(1, 500, "2.00s/it") + "\r" + loss("0.01");
  for (int step = 2; step <= 20; ++step) text += bar(step, 500, "2.00s/it") + "\r";
  reader.feed(text);
  const auto taken = reader.close();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].format, "progress-bar");
  EXPECT_EQ(taken[0].steps.size(), 19U);
}

TEST(ProgressBars, of_lightning_with_rich) {
  const Reported got = read_log(
      "Epoch 1/9  ━━━━━━━━━━━━━━━━╸━━━━━ 120/1000 0:00:30 • 0:03:20 4.00it/s v_num: 0.000 train_loss: 2.1\r"
      "a biting bit| Epoch 2:   1%|          | 10/1000 [00:05<03:20, 2.50s/it, v_num=0]\n");
  EXPECT_EQ(got.format, "lightning");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.steps[0].step, 1120);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 0.25);
  EXPECT_EQ(got.steps[1].step, 2010);
}

TEST(ProgressBars, a_line_that_is_drawn_anew_is_one_line) {
  std::string text;
  for (int step = 2; step <= 59; ++step) text += "\rTrain: 10%|#         | " + std::to_string(step) + "/590 [00:59<09:00,  1.02s/it]";
  const Reported got = read_log(text + "\n");
  EXPECT_GT(got.steps_total, 50U);
  EXPECT_EQ(got.lines_total, 1U);
  EXPECT_EQ(got.lines_matched, 1U);
}

}  // namespace
}  // namespace flopsight::training_logs
