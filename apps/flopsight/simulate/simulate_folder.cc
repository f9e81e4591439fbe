#include <filesystem>
#include <ostream>

#include "new_files.h"
#include "simulate/simulate_targets.h"
#include "simulation/text.h"
#include "simulation/training_log.h"
#include "simulation/truth.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

// The samples of a column hardly differ from line to line: a higher level is slower and no smaller.
constexpr int kGzipLevel = 3;

// One for each job that reports its MFU; how many.
base::Result<std::size_t> write_logs(const simulation::Timetable& timetable, const std::string& folder) {
  std::size_t count = 0;
  const Status status = simulation::for_each_training_log(timetable, [&](const std::string& name, std::string_view text) -> Status {
    std::error_code error;
    if (count == 0) std::filesystem::create_directories(folder, error);
    if (error) return Error{ErrorCode::kIo, folder + ": cannot be made a folder: " + error.message()};
    NewFile file(folder + "/" + name);
    FLOPSIGHT_RETURN_IF_ERROR(file.write(text));
    ++count;
    return file.close();
  });
  if (!status.ok()) return status.error();
  return count;
}

}  // namespace

Status simulate_to_folder(const SimulateArguments& a, const Env& env) {
  simulation::Options options = a.fleet;
  const units::Instant start = a.start.value_or(simulation::kDefaultStart);
  options.window = {start, start + a.length.value_or(units::Seconds(3600))};
  const std::string samples_path = a.out + "/samples.prom.gz", truth_path = a.out + "/truth.json",
                    logs_path = a.out + "/training_logs";
  std::vector<std::string> made = {samples_path, truth_path};
  if (a.fleet.reports_mfu()) made.push_back(logs_path);
  FLOPSIGHT_RETURN_IF_ERROR(prepare_folder(a.out, made, a.force));
  const simulation::Timetable timetable(options);
  NewFile samples(samples_path), truth(truth_path);
  const bool show = env.err_is_terminal && !a.quiet;
  FLOPSIGHT_RETURN_IF_ERROR(simulation::write_history(
      timetable, [&](std::string_view piece) { return samples.write(wire::gzip(piece, kGzipLevel)); },
      [&](double done_ratio) {
        if (show) env.err << "\rsimulated " << static_cast<int>(100 * done_ratio) << " %" << std::flush;
      }));
  if (show) env.err << "\r\x1b[K";
  FLOPSIGHT_RETURN_IF_ERROR(
      simulation::write_truth(timetable, [&](std::string_view piece) { return truth.write(piece); }));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::size_t logs, write_logs(timetable, logs_path));
  FLOPSIGHT_RETURN_IF_ERROR(samples.close());
  FLOPSIGHT_RETURN_IF_ERROR(truth.close());
  env.out << "SIMULATED fleet of " << options.gpus << " GPUs, " << simulation::scenario_name(options.scenario) << ", "
          << units::to_rfc3339(options.window.start) << " to " << units::to_rfc3339(options.window.end) << "\n"
          << samples_path << "\n" << truth_path << "\n";
  if (logs > 0) env.out << logs_path << "/ (" << logs << (logs == 1 ? " log)\n" : " logs)\n");
  return {};
}

}  // namespace flopsight::app
