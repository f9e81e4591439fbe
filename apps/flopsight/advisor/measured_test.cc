// `flopsight tune train --store` and `tune verify`, on stores that `flopsight import` made.
#include <gtest/gtest.h>

#include "base/file.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::number;
using test::run_program;
using test::TempFolder;
using test::text;

const char* const kConfig = FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/made--Llama-3-8B_config.json";

// A job for half an hour on one GPU, and a faster one after it.
std::string store_of(const TempFolder& folder) {
  const auto job = [](const std::string& uuid, const std::string& name, const std::string& tensor, const std::string& active) {
    const std::string labels = test::h100(uuid, "n1", "0", "exported_pod=\"" + name + "\"");
    return test::series(test::kTensor, labels, 15, test::times(120, tensor)) + test::series(test::kClock, labels, 15, test::times(120, "1830")) +
           test::series("DCGM_FI_PROF_SM_ACTIVE", labels, 15, test::times(120, active));
  };
  const std::string store = folder.path() + "/store";
  const Answer answer = run_program({"import", "--store", store, "--file", folder.write("a.prom", job("GPU-a", "slow", "0.25", "0.5") + job("GPU-b", "fast", "0.5", "0.95"))});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  return store;
}

base::json::Value json_of(const std::vector<std::string>& arguments) {
  const Answer answer = run_program(arguments);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  auto parsed = base::json::parse(answer.out);
  return parsed.ok() ? std::move(parsed).value() : base::json::Value();
}

std::vector<std::string> train(const std::string& store, const std::string& job) {
  return {"tune", "train", "--config", kConfig, "--gpu", "H100-SXM5-80GB", "--gpus", "1", "--seq-len", "4096", "--global-batch", "8", "--zero", "0", "--store", store, "--job", job};
}

TEST(TuneMeasured, the_part_that_is_out_of_line_is_named) {
  const TempFolder folder;
  const std::string store = store_of(folder);
  std::vector<std::string> arguments = train(store, "slow");
  arguments.insert(arguments.end(), {"--format", "json"});
  const auto out = json_of(arguments);
  EXPECT_NEAR(number(out, "measured.ofu_ratio"), 0.25, 1e-3);
  EXPECT_NEAR(number(out, "measured.sm_idle_ratio"), 0.5, 1e-2);
  EXPECT_EQ(text(out, "measured.out_of_line"), "idle");
  EXPECT_EQ(text(out, "measured.parts.0.part"), "idle");
  EXPECT_NEAR(number(out, "measured.step_seconds"), number(out, "predicted.step_seconds") * number(out, "predicted.attainable_ofu_ratio") / 0.25, 1e-2);
  EXPECT_TRUE(test::assumes(out, "implied by OFU"));
  EXPECT_GT(number(test::find(out, "advice", "id", "input_or_host"), "gain_ratio"), 0.3);
  const Answer table = run_program(train(store, "slow"));
  EXPECT_NE(table.out.find("out of line: SMs idle"), std::string::npos) << table.out;
}

TEST(TuneMeasured, a_job_that_is_not_there_and_half_an_option) {
  const TempFolder folder;
  const std::string store = store_of(folder);
  Answer answer = run_program(train(store, "none"));
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_EQ(answer.out, "");
  EXPECT_NE(answer.err.find("none"), std::string::npos);
  std::vector<std::string> arguments = train(store, "slow");
  arguments.resize(arguments.size() - 2);
  EXPECT_NE(run_program(arguments).err.find("--store and --job go together"), std::string::npos);
  arguments = train(store, "slow");
  arguments.insert(arguments.end(), {"--start", "2026-11-28T00:00:00Z", "--end", "2026-11-28T01:00:00Z"});
  answer = run_program(arguments);
  EXPECT_EQ(answer.exit_code, 2) << "it did not run then";
  EXPECT_NE(answer.err.find("it ran from 2026-11-29T10:00:00Z to 2026-11-29T10:30:00Z (--start "), std::string::npos) << answer.err;
}

TEST(TuneMeasured, a_job_on_other_gpus_is_not_the_one_that_is_predicted) {
  const TempFolder folder;
  const std::string store = store_of(folder);
  std::vector<std::string> arguments = train(store, "slow");
  arguments[5] = "H200";
  const Answer other = run_program(arguments);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.out, "");
  EXPECT_NE(other.err.find("--gpu H200-SXM-141GB: the store saw job slow on H100-SXM5-80GB"), std::string::npos) << other.err;
  arguments = train(store, "slow");
  arguments[7] = "8";
  arguments.insert(arguments.end(), {"--format", "json"});
  const auto more = json_of(arguments);
  EXPECT_TRUE(test::assumes(more, "the store saw 1 GPU of job slow, --gpus says 8"));
  EXPECT_FALSE(test::assumes(more, "implied by OFU"));
  EXPECT_TRUE(more.find("measured")->is_null()) << "a share of one GPU's capacity is none of eight";
}

TEST(TuneVerify, before_against_after_is_kept_and_listed) {
  const TempFolder folder;
  const std::string store = store_of(folder), record = folder.path() + "/gains.jsonl";
  const auto out = json_of({"tune", "verify", "--record", record, "--store", store, "--before", "slow", "--after", "fast", "--change", "input_or_host", "--predicted-gain", "0.8", "--format", "json"});
  EXPECT_NEAR(number(out, "verified.obtained_gain_ratio"), 1, 1e-3);
  EXPECT_EQ(text(out, "verified.by"), "ofu");
  EXPECT_NE(text(out, "notes.0").find("no tokens per second"), std::string::npos);
  const auto hand = json_of({"tune", "verify", "--record", record, "--before-tokens-per-second", "1000", "--after-tokens-per-second", "900", "--change", "micro_batch", "--predicted-gain", "0.1", "--format", "json"});
  EXPECT_EQ(test::count(hand, "records"), 2u);
  EXPECT_EQ(number(hand, "summary.worse_than_before"), 1);
  const Answer list = run_program({"tune", "verify", "--record", record, "--list"});
  EXPECT_NE(list.out.find("2 with a prediction"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("1 became slower where a gain was predicted"), std::string::npos);
}

TEST(TuneVerify, what_is_no_number_is_refused_before_anything_is_written) {
  const TempFolder folder;
  const std::string record = folder.path() + "/r.jsonl";
  const std::pair<const char*, const char*> cases[] = {{"nan", "1"}, {"1", "inf"}, {"1e-320", "1e308"}, {"0", "1"}, {"-1", "2"}, {"1", "1e999"}};
  for (const auto& [before, after] : cases) {
    const Answer answer = run_program({"tune", "verify", "--record", record, "--change", "x", "--before-tokens-per-second", before, "--after-tokens-per-second", after});
    EXPECT_EQ(answer.exit_code, 2) << before << " " << after << ": " << answer.out;
    EXPECT_FALSE(base::read_file(record).ok()) << before << " " << after;
  }
}

TEST(TuneVerify, a_very_long_gain_keeps_its_sign_and_unit) {
  const TempFolder folder;
  const Answer answer = run_program({"tune", "verify", "--record", folder.path() + "/r.jsonl", "--change", "x", "--before-tokens-per-second", "1e-9", "--after-tokens-per-second", "1e15"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.out.find("obtained   +100000000000000"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find(".0 %, by "), std::string::npos) << answer.out;
}

TEST(TuneVerify, a_line_that_was_cut_is_said_and_the_next_begins_on_its_own) {
  const TempFolder folder;
  const auto verify = [&](const std::string& record) {
    return run_program({"tune", "verify", "--record", record, "--change", "x", "--before-tokens-per-second", "1", "--after-tokens-per-second", "2"});
  };
  const std::string record = folder.path() + "/r.jsonl";
  ASSERT_EQ(verify(record).exit_code, 0);
  const std::string good = *base::read_file(record), cut = good.substr(0, good.size() / 2);
  const std::string damaged = folder.write("damaged.jsonl", good + cut);
  const Answer answer = verify(damaged);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.out.find("1 line of the record cannot be read and is left out: line 2: "), std::string::npos) << answer.out;
  EXPECT_EQ(*base::read_file(damaged), good + cut + "\n" + good);
  EXPECT_EQ(verify(damaged).exit_code, 0) << "and it stays readable";
}

TEST(TuneVerify, mistakes_are_exit_2_and_leave_the_record_alone) {
  const TempFolder folder;
  const std::string broken = folder.write("broken.jsonl", "{}\n");
  const std::vector<std::string> hand = {"--before-tokens-per-second", "1", "--after-tokens-per-second", "2", "--change", "x"};
  const auto with = [&](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {with({"tune", "verify", "--record", broken}, hand), "broken.jsonl: line 1: time: expected a text"},
      {with({"tune", "verify", "--record", broken + "/such"}, hand), "--record " + broken + ": cannot be made a folder"},
      {{"tune", "verify", "--record", folder.path() + "/none", "--list"}, "none"},
      {{"tune", "verify", "--record", "r", "--change", "x"}, "expected --store with --before and --after, or"},
      {{"tune", "verify", "--record", "r", "--change", "x", "--before-tokens-per-second", "1"}, "go together"},
      {{"tune", "verify", "--record", "r", "--store", folder.path(), "--before", "a", "--after", "b"}, "--change: expected"},
      {{"tune", "verify", "--record", "r", "--store", folder.path(), "--before", "a", "--change", "x"}, "--store, --before and --after go together"},
      {{"tune", "verify", "--record", "r", "--store", folder.path() + "/none", "--before", "a", "--after", "b", "--change", "x"}, "none"},
      {{"tune", "verify", "--record", "r", "--store", "s", "--before", "a", "--after", "b", "--change", "x", "--before-start", "noon"}, "--before-start noon: expected RFC 3339"},
      {{"tune", "verify"}, "--record is required"},
  };
  for (const auto& [arguments, said] : cases) {
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2) << said;
    EXPECT_EQ(answer.out, "") << said;
    EXPECT_NE(answer.err.find(said), std::string::npos) << said << " in " << answer.err;
  }
  EXPECT_EQ(*base::read_file(broken), "{}\n");
}

}  // namespace
}  // namespace flopsight::app
