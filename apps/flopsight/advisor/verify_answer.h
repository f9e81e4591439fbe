#pragma once
// `flopsight tune verify`: what a change did gain, beside what was predicted, kept in a file.

#include <optional>
#include <string>
#include <vector>

#include "advisor/measured_job.h"
#include "base/result.h"
#include "env.h"
#include "tuning/gain_record.h"

namespace flopsight::app {

struct TuneVerifyArguments {
  std::string record_path;
  bool list = false;  // only what is kept
  std::string change;
  std::optional<double> predicted_gain_ratio;
  std::string store_path;
  JobWindow before, after;
  std::optional<double> before_tokens_per_second;  // instead of a store
  std::optional<double> after_tokens_per_second;
  bool json = false;
};
struct TuneVerifyTexts {
  JobWindowTexts before, after;
  std::string format = "table";
};

void add_tune_verify(CLI::App& app, TuneVerifyArguments& arguments, TuneVerifyTexts& texts);
std::optional<std::string> set_tune_verify(TuneVerifyArguments& arguments, const TuneVerifyTexts& texts);

struct TuneVerifyAnswer {
  std::optional<tuning::GainRecord> verified;  // absent with --list
  std::vector<tuning::GainRecord> kept;        // with the new one
  std::vector<std::string> notes;
  bool json = false;
};
// Appends the new record. Errors: of the store; of the file, which then is as it was.
base::Result<TuneVerifyAnswer> tune_verify(const TuneVerifyArguments& arguments, const Env& env);
std::string verify_text(const TuneVerifyAnswer& answer);

}  // namespace flopsight::app
