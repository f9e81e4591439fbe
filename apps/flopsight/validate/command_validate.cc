#include "validate/command_validate.h"

#include <chrono>
#include <memory>
#include <ostream>

#include "base/text.h"
#include "cuda/cublaslt_runner.h"
#include "new_files.h"
#include "parse_file.h"
#include "progress_bar.h"
#include "stop_signals.h"
#include "validate/exporter_counters.h"
#include "validate/nvml_counters.h"
#include "validation/simulated_gpu.h"
#include "views/validation_views.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;

// Who runs products, who counts, and what is said of both.
struct Bench {
  catalog::Device device;  // with the SMs that the GPU itself says
  std::unique_ptr<validation::Runner> runner;
  std::unique_ptr<validation::CounterSource> counters_apart;  // nothing: the runner counts as well
  validation::CounterSource* counters = nullptr;
  views::ExperimentHead head;
};

base::Result<catalog::Device> device_of(const catalog::DeviceCatalog& catalog, const std::string& name) {
  const catalog::Device* device = catalog.find_whole(name);
  if (device == nullptr) {
    return Error{ErrorCode::kNotFound, "no GPU " + base::printable(name) + " in the catalogue (flopsight docs gpus lists it); --gpu-catalog adds one"};
  }
  if (!device->sm_count || !device->tensor_peak_clock || !device->nvml_max_sm_clock) {
    return Error{ErrorCode::kUnsupported, device->model + ": the catalogue lacks its SM count or clocks; --gpu-catalog adds them"};
  }
  return *device;
}

base::Status open_simulated(const ValidateArguments& a, const catalog::DeviceCatalog& catalog, Bench& bench) {
  FLOPSIGHT_ASSIGN_OR_RETURN(bench.device, device_of(catalog, a.gpu));
  validation::SimulatedOptions how;
  how.seed = a.sweep.seed;
  how.interval = a.interval;
  auto gpu = std::make_unique<validation::SimulatedGpu>(bench.device, how);
  bench.counters = gpu.get();
  bench.runner = std::move(gpu);
  bench.head.simulated = true;
  bench.head.counters = "simulated";
  return {};
}

double monotonic_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

base::Status open_counters(const ValidateArguments& a, Bench& bench) {
  if (a.exporter.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(auto counters, NvmlCounters::open({a.nvml_library, bench.head.uuid, a.interval, monotonic_seconds}));
    bench.head.driver_version = counters->driver_version();
    bench.head.counters = "NVML GPM";
    bench.counters_apart = std::move(counters);
    bench.counters = bench.counters_apart.get();
    return {};
  }
  ExporterCounters::Settings settings{a.exporter, a.http, bench.head.uuid, a.interval, monotonic_seconds};
  FLOPSIGHT_RETURN_IF_ERROR(read_credentials(a, settings.http));
  FLOPSIGHT_ASSIGN_OR_RETURN(auto counters, ExporterCounters::open(std::move(settings)));
  bench.head.driver_version = counters->driver_version();
  bench.head.counters = net::url_without_credentials(a.exporter);
  bench.counters_apart = std::move(counters);
  bench.counters = bench.counters_apart.get();
  return {};
}

base::Status open_real(const ValidateArguments& a, const catalog::DeviceCatalog& catalog, Bench& bench) {
  auto opened = cuda::CublasLtRunner::open(a.libraries, a.gpu_index);
  if (!opened.ok() && opened.error().code == ErrorCode::kUnsupported) {
    return Error{ErrorCode::kUnsupported, opened.error().message + "; --simulated tries the experiment without a GPU"};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(auto runner, std::move(opened));
  const cuda::GpuFacts& gpu = runner->gpu();
  FLOPSIGHT_ASSIGN_OR_RETURN(bench.device, device_of(catalog, gpu.name));
  if (gpu.sm_count > 0) bench.device.sm_count = gpu.sm_count;
  bench.head.gpu_raw = gpu.name;
  bench.head.uuid = gpu.uuid;
  bench.head.cuda_version = gpu.cuda_version;
  bench.head.library_version = gpu.cublaslt_version;
  bench.runner = std::move(runner);
  return open_counters(a, bench);
}

base::Status write_files(const views::ExperimentHead& head, const validation::Experiment& done,
                         const std::vector<std::string>& paths) {
  const std::string texts[] = {views::validation_csv(head, done.points), views::validation_svg(head, done.points), views::validation_json(head, done)};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    NewFile file(paths[i]);
    FLOPSIGHT_RETURN_IF_ERROR(file.write(texts[i]));
    FLOPSIGHT_RETURN_IF_ERROR(file.close());
  }
  return {};
}

base::Status validate(const ValidateArguments& a, const Env& env) {
  catalog::DeviceCatalog catalog = catalog::DeviceCatalog::builtin();
  if (!a.catalog_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(catalog, parse_file(a.catalog_path, catalog::DeviceCatalog::with_user_rows));
  }
  std::vector<std::string> paths;
  if (!a.out.empty()) {
    paths = {a.out + "/points.csv", a.out + "/scatter.svg", a.out + "/summary.json"};
    // Before an hour of products, not after it.
    FLOPSIGHT_RETURN_IF_ERROR(prepare_folder(a.out, paths, a.force));
    NewFile probe(paths.front());
    FLOPSIGHT_RETURN_IF_ERROR(probe.write(""));
  }
  Bench bench;
  FLOPSIGHT_RETURN_IF_ERROR(a.simulated ? open_simulated(a, catalog, bench) : open_real(a, catalog, bench));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<validation::Case> cases, validation::sweep(a.sweep, bench.device));
  views::ExperimentHead& head = bench.head;
  head.gpu = bench.device.model;
  head.sm_count = *bench.device.sm_count;
  head.interval = a.interval;
  head.start = env.now();
  head.seed = a.sweep.seed;
  validation::ExperimentOptions how;
  how.settle = a.settle;
  const StopSignals stop;
  validation::Experiment done;
  {
    ProgressBar progress(env, a.quiet);
    FLOPSIGHT_ASSIGN_OR_RETURN(done, validation::run_experiment(cases, bench.device, *bench.runner, *bench.counters, how, [&](std::size_t count) {
                                 progress.show("of products", count, cases.size());
                                 return !stop.asked();
                               }));
  }
  head.complete = done.points.size() + done.left_out.size() == cases.size();
  if (!paths.empty()) FLOPSIGHT_RETURN_IF_ERROR(write_files(head, done, paths));
  env.out << (a.json ? views::validation_json(head, done) : views::validation_table(head, done));
  if (!a.json) {
    for (const std::string& path : paths) env.out << path << '\n';
  }
  return {};
}

}  // namespace

int run_validate(const ValidateArguments& arguments, const Env& env) {
  if (const base::Status status = validate(arguments, env); !status.ok()) return fail(env, "validate", status.error());
  return kExitDone;
}

}  // namespace flopsight::app
