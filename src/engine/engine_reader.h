#pragma once
// Questions to a whole fleet: the arithmetic is pushed down to the engine as PromQL over the series that all processes wrote
// (series.h), and a few numbers per job or GPU come back. One reader is for one question: numbers of jobs, GPUs and models are
// its own.
//
// Errors: kUnavailable with one line for an engine that does not answer, answers in part, or answers what is no answer;
// kLimit for more than it gives, after windows were halved down to a slot; kUnsupported for cells of single GPUs where
// they are not written.
// Threads: one.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/promql.h"
#include "sources/prometheus_client.h"
#include "store/instance_index.h"
#include "store/store.h"

namespace flopsight::engine {

struct EngineReaderOptions {
  std::string url;
  net::HttpOptions http;
  units::Seconds slot{60};
  bool gpu_cells = true;
  units::Instant now;
  units::Seconds history{400 * 86'400.0};  // how far back names and lives of jobs are looked for
};

class EngineReader : public store::Reader {
 public:
  static base::Result<std::unique_ptr<EngineReader>> create(EngineReaderOptions options);

  const std::string& model_name(store::ModelId id) const override;
  samples::Holder holder(store::JobId id) const override { return known_holder(id); }
  base::Result<std::vector<store::JobId>> find_job(std::string_view text) override;
  base::Result<std::vector<store::JobTotal>> job_totals(units::Window window, std::optional<store::JobId> job) override;
  base::Result<std::vector<store::JobCell>> job_series(store::JobId job, units::Window window, units::Seconds step) override;
  base::Result<std::vector<store::GpuTotal>> gpu_totals(units::Window window, std::optional<store::JobId> job) override;
  base::Result<std::vector<store::GpuRecord>> gpus(const std::vector<store::GpuId>& ids) override;
  base::Result<std::vector<store::Member>> members(units::Window window, std::optional<store::JobId> job) override;
  void make_whole(std::vector<store::GpuId>& gpus) const override;
  bool simulated() const override { return simulated_; }
  units::Window answered(units::Window window, units::Seconds step) override;
  base::Result<units::Seconds> longest_slot(units::Window) override { return options_.slot; }

 private:
  EngineReader(EngineReaderOptions options, sources::PrometheusClient client);

  const samples::Holder& known_holder(store::JobId id) const;

  using Answer = wire::ApiAnswer;
  using Take = std::function<base::Status(const wire::ApiSeries&)>;
  units::Window whole_slots(units::Window window, std::int64_t step_milliseconds) const;
  std::int64_t length_of(Level level) const { return level == Level::kHour ? kHourMilliseconds : slot_milliseconds_; }
  std::string matchers_of(std::optional<store::JobId> job) const;
  base::Result<Answer> ask(const std::string& promql, units::Instant at);
  // The pieces of a window, halved where the engine refuses them whole; make(piece, range) is the expression.
  base::Status ask_pieces(const std::vector<Piece>& pieces, const std::function<std::string(const Piece&, std::int64_t)>& make,
                          const Take& take);
  base::Status load_shards();
  base::Status load_holders(units::Window window, const std::string& matchers);
  base::Status load_gpu_names(units::Window window, const std::string& matchers);
  base::Status ask_lives(units::Window window, const std::string& matchers, std::map<store::JobId, store::Member>& members);

  store::JobId job_of(const wire::ApiSeries& series);
  store::GpuId gpu_of(const wire::ApiSeries& series);
  store::ModelId model_of(const wire::ApiSeries& series);

  EngineReaderOptions options_;
  sources::PrometheusClient client_;
  std::int64_t slot_milliseconds_;
  bool simulated_ = false;
  std::optional<std::vector<Shard>> shards_;
  std::optional<std::pair<units::Window, std::string>> holders_loaded_;
  std::vector<samples::Holder> jobs_;  // id - 1
  std::map<std::pair<std::string, std::string>, store::JobId> job_ids_;
  std::vector<samples::GpuIdentity> gpus_;
  std::map<base::Hash128, store::GpuId> gpu_ids_;
  store::InstanceIndex instances_;
  std::vector<std::string> models_;
  std::map<std::string, store::ModelId> model_ids_;
};

}  // namespace flopsight::engine
