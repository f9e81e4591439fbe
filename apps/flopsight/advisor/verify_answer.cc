#include "advisor/verify_answer.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "new_files.h"
#include "views/text_table.h"

namespace flopsight::app {
namespace {

namespace json = base::json;
namespace text_table = views::text_table;
using base::Error;
using base::ErrorCode;
using tuning::GainRecord;

std::string percent(double ratio) {
  return text_table::number(100 * ratio, "%+.1f %%");
}

std::string run_text(const MeasuredJob& job) { return job.job + " " + units::to_rfc3339(job.window.start) + " to " + units::to_rfc3339(job.window.end); }

base::Status compare_runs(const TuneVerifyArguments& a, const Env& env, GainRecord& record, std::vector<std::string>& notes) {
  if (a.before_tokens_per_second) {
    record.before = json::number_text(*a.before_tokens_per_second) + " tokens/s";
    record.after = json::number_text(*a.after_tokens_per_second) + " tokens/s";
    record.obtained_gain_ratio = *a.after_tokens_per_second / *a.before_tokens_per_second - 1;
    return {};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const MeasuredJob before, read_measured(a.store_path, a.before, env));
  FLOPSIGHT_ASSIGN_OR_RETURN(const MeasuredJob after, read_measured(a.store_path, a.after, env));
  record.before = run_text(before);
  record.after = run_text(after);
  if (before.gpu_count != after.gpu_count) {
    notes.push_back("the runs had " + std::to_string(before.gpu_count) + " and " + std::to_string(after.gpu_count) + " GPUs: gains are of one GPU");
  }
  if (before.measured.tokens_per_second && after.measured.tokens_per_second && *before.measured.tokens_per_second > 0) {
    record.obtained_gain_ratio = *after.measured.tokens_per_second / *before.measured.tokens_per_second - 1;
    return {};
  }
  if (*before.measured.ofu_ratio <= 0) return Error{ErrorCode::kInvalid, "--before " + base::printable(a.before.job, 80) + ": its OFU is 0, and it reports no tokens per second: no gain can be told"};
  record.by = tuning::GainBy::kOfu;
  record.obtained_gain_ratio = *after.measured.ofu_ratio / *before.measured.ofu_ratio - 1;
  notes.emplace_back("the jobs report no tokens per second: the gain is of OFU, which is that of tokens only if the FLOPs of a token and their format did not change");
  return {};
}

// A ratio of figures of a store can still be none.
base::Status check_gain(const GainRecord& record) {
  if (std::isfinite(record.obtained_gain_ratio) && record.obtained_gain_ratio >= -1) return {};
  return Error{ErrorCode::kInvalid, "the gain from " + base::printable(record.before, 120) + " to " + base::printable(record.after, 120) + " is no finite number; nothing was recorded"};
}

base::Result<tuning::KeptRecords> kept_records(const std::string& path, bool has_to_exist) {
  std::error_code ignored;
  if (!has_to_exist && !std::filesystem::exists(path, ignored)) return tuning::KeptRecords{};
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string text, base::read_file(path, tuning::kRecordBytesMax));
  return tuning::read_records(text).within(base::printable(path));
}

base::Status append(const std::string& path, const GainRecord& record, bool on_a_new_line) {
  std::error_code unknown;
  FLOPSIGHT_RETURN_IF_ERROR(make_folder_of("--record", path));
  const auto before = std::filesystem::file_size(path, unknown);
  std::ofstream file(path, std::ios::app | std::ios::binary);
  file << (on_a_new_line ? "\n" : "") + tuning::record_line(record);
  file.flush();
  if (file) return {};
  file.close();
  std::error_code ignored;
  if (!unknown) std::filesystem::resize_file(path, before, ignored);  // half a line is worse than none
  return Error{ErrorCode::kIo, base::printable(path) + ": cannot be written"};
}

json::Object record_json(const GainRecord& r) {
  return {{"time", r.time}, {"change", r.change}, {"before", r.before}, {"after", r.after}, {"predicted_gain_ratio", r.predicted_gain_ratio}, {"obtained_gain_ratio", r.obtained_gain_ratio},
          {"by", tuning::gain_by_name(r.by)}};
}

std::string json_of(const TuneVerifyAnswer& answer) {
  json::Array kept;
  for (const GainRecord& r : answer.kept) kept.emplace_back(record_json(r));
  const tuning::RecordSummary s = tuning::summary_of(answer.kept);
  return json::dump(json::Object{{"verified", answer.verified ? json::Value(record_json(*answer.verified)) : json::Value()},
                                 {"records", std::move(kept)},
                                 {"summary", json::Object{{"verified", s.verified_total}, {"error_median_ratio", s.error_median_ratio}, {"error_absolute_median_ratio", s.error_absolute_median_ratio},
                                                          {"worse_than_before", s.worse_total}}},
                                 {"notes", json::Array(answer.notes.begin(), answer.notes.end())}}) + "\n";
}

}  // namespace

base::Result<TuneVerifyAnswer> tune_verify(const TuneVerifyArguments& a, const Env& env) {
  TuneVerifyAnswer out;
  out.json = a.json;
  FLOPSIGHT_ASSIGN_OR_RETURN(tuning::KeptRecords kept, kept_records(a.record_path, a.list));
  out.kept = std::move(kept.records);
  if (kept.unread_total > 0) {
    out.notes.push_back(std::to_string(kept.unread_total) + (kept.unread_total == 1 ? " line" : " lines") + " of the record cannot be read and " +
                        (kept.unread_total == 1 ? "is" : "are") + " left out: " + kept.first_unread);
  }
  if (a.list) return out;
  GainRecord record;
  record.time = units::to_rfc3339(env.now());
  record.change = a.change;
  record.predicted_gain_ratio = a.predicted_gain_ratio;
  FLOPSIGHT_RETURN_IF_ERROR(compare_runs(a, env, record, out.notes));
  FLOPSIGHT_RETURN_IF_ERROR(check_gain(record));
  FLOPSIGHT_RETURN_IF_ERROR(append(a.record_path, record, !kept.ends_in_line));
  out.kept.push_back(record);
  out.verified = std::move(record);
  return out;
}

std::string verify_text(const TuneVerifyAnswer& answer) {
  if (answer.json) return json_of(answer);
  std::string out;
  if (answer.verified) {
    const GainRecord& r = *answer.verified;
    out += "change     " + base::printable(r.change) + "\nbefore     " + base::printable(r.before) + "\nafter      " + base::printable(r.after) + "\n";
    out += "predicted  " + (r.predicted_gain_ratio ? percent(*r.predicted_gain_ratio) : std::string("nothing")) + "\nobtained   " + percent(r.obtained_gain_ratio) + ", by " +
           std::string(tuning::gain_by_name(r.by)) + "\n\n";
  }
  std::vector<text_table::Column> columns = {{"when", {}, true}, {"change", {}, true}, {"predicted", {}, false}, {"obtained", {}, false}, {"by", {}, true}};
  for (const GainRecord& r : answer.kept) {
    columns[0].cells.push_back(text_table::short_name(r.time));
    columns[1].cells.push_back(text_table::short_name(r.change));
    columns[2].cells.push_back(r.predicted_gain_ratio ? percent(*r.predicted_gain_ratio) : std::string(text_table::kUnknownCell));
    columns[3].cells.push_back(percent(r.obtained_gain_ratio));
    columns[4].cells.emplace_back(tuning::gain_by_name(r.by));
  }
  out += text_table::render(columns, columns[0].cells.size());
  const tuning::RecordSummary s = tuning::summary_of(answer.kept);
  if (s.verified_total > 0) {
    out += "\n" + std::to_string(s.verified_total) + " with a prediction: obtained less predicted " + percent(*s.error_median_ratio) + " in the median, " + percent(*s.error_absolute_median_ratio).substr(1) +
           " in size; " + std::to_string(s.worse_total) + " became slower where a gain was predicted\n";
  }
  for (const std::string& note : answer.notes) out += "note: " + base::printable(note, 600) + "\n";
  return out;
}

}  // namespace flopsight::app
