#include "engine/engine_reader.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "jobs/job_name.h"
#include "net/http_client.h"

namespace flopsight::engine {
namespace {

using base::Error;
using base::ErrorCode;
using rollups::CellField;
using store::GpuId;
using store::JobId;
using units::Instant;
using units::Window;
using wire::ApiSeries;

constexpr std::string_view kGpuLabels = "uuid, mig_instance, host, gpu";
constexpr std::string_view kJobLabels = "job, namespace";
// Cells of all GPUs are asked for in parts of this length.
constexpr std::int64_t kGpusAtOnceMilliseconds = 6 * kHourMilliseconds;
constexpr std::size_t kMessageBytesMax = 400;

const std::string& label_of(const ApiSeries& series, std::string_view name) {
  static const std::string none;
  for (const auto& [label, value] : series.labels) {
    if (label == name) return value;
  }
  return none;
}

std::optional<CellField> field_of(std::string_view name) {
  static const std::unordered_map<std::string_view, CellField> kByName = [] {
    std::unordered_map<std::string_view, CellField> fields;
    for (std::size_t i = 0; i < rollups::kCellFieldCount; ++i) {
      fields.emplace(rollups::cell_fields()[i].name, static_cast<CellField>(i));
    }
    return fields;
  }();
  const auto at = kByName.find(name);
  return at == kByName.end() ? std::nullopt : std::optional(at->second);
}

// Adds a point of a series to what its labels say it is. Fields that nobody knows are of a newer version.
base::Status add_point(const ApiSeries& series, const wire::ApiPoint& point, rollups::Cell& cell, rollups::Spread* spread) {
  const std::string& field = label_of(series, "field");
  if (!(point.value >= 0) || point.value > 9e18) {
    return Error{ErrorCode::kUnavailable, "engine: the field " + base::printable(field, 60) +
                                              " has a value that Flopsight never writes"};
  }
  const std::int64_t value = std::llround(point.value);
  if (const auto known = field_of(field)) {
    rollups::Cell part;
    part[*known] = value;
    cell.merge(part);
  } else if (spread != nullptr && field.starts_with(kBinPrefix)) {
    const auto number = base::parse_number(std::string_view(field).substr(kBinPrefix.size()));
    if (!number || value == 0) return {};
    const rollups::Spread::Bin bin{static_cast<std::uint16_t>(*number), value};
    rollups::Spread part;
    if (*number >= 0 && *number < rollups::Spread::kBins && part.assign({&bin, 1})) spread->merge(part);
  }
  return {};
}

void fill(std::string& into, const std::string& from) {
  // Where processes differ, one of them, and always the same.
  if (!from.empty() && (into.empty() || from < into)) into = from;
}

}  // namespace

EngineReader::EngineReader(EngineReaderOptions options, sources::PrometheusClient client)
    : options_(std::move(options)),
      client_(std::move(client)),
      slot_milliseconds_(std::llround(options_.slot.value * 1000)) {}

base::Result<std::unique_ptr<EngineReader>> EngineReader::create(EngineReaderOptions options) {
  sources::PrometheusOptions client_options;
  client_options.url = options.url;
  client_options.http = options.http;
  FLOPSIGHT_ASSIGN_OR_RETURN(sources::PrometheusClient client, sources::PrometheusClient::create(std::move(client_options)));
  return std::unique_ptr<EngineReader>(new EngineReader(std::move(options), std::move(client)));
}

const std::string& EngineReader::model_name(store::ModelId id) const {
  static const std::string unknown;
  return id >= 1 && id <= models_.size() ? models_[id - 1] : unknown;
}

const samples::Holder& EngineReader::known_holder(JobId id) const {
  static const samples::Holder nobody;
  return id >= 1 && id <= jobs_.size() ? jobs_[id - 1] : nobody;
}

JobId EngineReader::job_of(const ApiSeries& series) {
  const std::string& job = label_of(series, "job");
  if (job.empty()) return 0;
  const std::string& name_space = label_of(series, "namespace");
  const auto [at, is_new] = job_ids_.emplace(std::pair(job, name_space), static_cast<JobId>(jobs_.size() + 1));
  if (is_new) {
    samples::Holder& holder = jobs_.emplace_back();
    holder.job = job;
    holder.name_space = name_space;
  }
  return at->second;
}

GpuId EngineReader::gpu_of(const ApiSeries& series) {
  samples::GpuIdentity gpu;
  gpu.uuid = label_of(series, "uuid");
  gpu.mig_instance = label_of(series, "mig_instance");
  gpu.host = label_of(series, "host");
  gpu.index = label_of(series, "gpu");
  const auto [at, is_new] = gpu_ids_.emplace(store::gpu_key(gpu), static_cast<GpuId>(gpus_.size() + 1));
  if (is_new) {
    instances_.add(at->second, gpu);
    gpus_.push_back(std::move(gpu));
  }
  return at->second;
}

void EngineReader::make_whole(std::vector<GpuId>& gpus) const {
  instances_.make_whole(gpus, [&](const base::Hash128& key) {
    const auto at = gpu_ids_.find(key);
    return at != gpu_ids_.end() ? std::optional(at->second) : std::nullopt;
  });
}

store::ModelId EngineReader::model_of(const ApiSeries& series) {
  const std::string& model = label_of(series, "model");
  const auto [at, is_new] = model_ids_.emplace(model, static_cast<store::ModelId>(models_.size() + 1));
  if (is_new) models_.push_back(model);
  return at->second;
}

Window EngineReader::whole_slots(Window window, std::int64_t step) const {
  return {{window.start.unix_milliseconds / step * step}, {(window.end.unix_milliseconds + step - 1) / step * step}};
}

Window EngineReader::answered(Window window, units::Seconds step) {
  Window whole = whole_slots(window, std::max(slot_milliseconds_, std::int64_t{std::llround(step.value * 1000)}));
  // Nothing is there that has not been yet.
  if (window.end >= options_.now) whole.end = window.end;
  return whole;
}

std::string EngineReader::matchers_of(std::optional<JobId> job) const {
  return job && *job != 0 ? job_matchers(holder(*job)) : "";
}

// ---- Asking

namespace {

Error engine_error(const Error& error) {
  // Whatever it is, it is not the caller's mistake.
  const ErrorCode code = error.code == ErrorCode::kLimit ? ErrorCode::kLimit : ErrorCode::kUnavailable;
  return {code, "engine: " + base::printable(error.message, kMessageBytesMax)};
}

base::Status check_whole(const wire::ApiAnswer& answer) {
  if (!answer.is_partial) return {};
  return Error{ErrorCode::kUnavailable, "engine: the answer is partial: some of its storage does not answer"};
}

}  // namespace

base::Result<wire::ApiAnswer> EngineReader::ask(const std::string& promql, Instant at) {
  auto answer = client_.query(promql, at);
  if (!answer.ok()) return engine_error(answer.error());
  FLOPSIGHT_RETURN_IF_ERROR(check_whole(*answer));
  return answer;
}

base::Status EngineReader::ask_pieces(const std::vector<Piece>& pieces,
                                      const std::function<std::string(const Piece&, std::int64_t)>& make, const Take& take) {
  for (const Piece& piece : pieces) {
    const std::int64_t range = piece.window.end.unix_milliseconds - piece.window.start.unix_milliseconds;
    const auto answer = ask(make(piece, range), piece.window.end);
    if (answer.ok()) {
      for (const ApiSeries& series : answer->series) {
        if (!series.points.empty()) FLOPSIGHT_RETURN_IF_ERROR(take(series));
      }
      continue;
    }
    const std::int64_t slots = range / length_of(piece.level);
    if (answer.error().code != ErrorCode::kLimit || slots < 2) return answer.error();
    const Instant middle{piece.window.start.unix_milliseconds + slots / 2 * length_of(piece.level)};
    Piece first = piece, second = piece;
    first.window.end = middle;
    second.window.start = middle;
    FLOPSIGHT_RETURN_IF_ERROR(ask_pieces({first, second}, make, take));
  }
  return {};
}

base::Status EngineReader::load_shards() {
  if (shards_) return {};
  const Instant at = options_.now + units::Seconds(3600);
  const auto range = static_cast<std::int64_t>(std::llround(options_.history.value * 1000));
  FLOPSIGHT_ASSIGN_OR_RETURN(
      const Answer answer,
      ask(over_promql("max", "shard, simulated", "max_over_time", std::string(kHoursUntil) + "{shard!=\"\"}", range), at));
  std::map<std::string, std::int64_t> until;
  for (const ApiSeries& series : answer.series) {
    if (series.points.empty()) continue;
    if (!label_of(series, "simulated").empty()) simulated_ = true;
    const double seconds = series.points.back().value;
    if (!(seconds >= 0) || seconds > 1e11) continue;
    std::int64_t& known = until[label_of(series, "shard")];
    known = std::max(known, static_cast<std::int64_t>(seconds) * 1000);
  }
  shards_.emplace();
  for (const auto& [name, time] : until) shards_->push_back({name, time});
  return {};
}

// Names are written once an hour, at the first slot of it.
base::Status EngineReader::load_holders(Window window, const std::string& matchers) {
  const std::pair wanted(window, matchers);
  if (holders_loaded_ && holders_loaded_->second == matchers && holders_loaded_->first.start == window.start &&
      holders_loaded_->first.end == window.end) {
    return {};
  }
  const std::int64_t start = window.start.unix_milliseconds / kHourMilliseconds * kHourMilliseconds;
  FLOPSIGHT_ASSIGN_OR_RETURN(
      const Answer answer,
      ask(over_promql("max", "job, namespace, container, user, team, attributed_by", "max_over_time",
                      std::string(kJobInfo) + "{job!=\"\"" + matchers + "}", window.end.unix_milliseconds - start),
          window.end));
  for (const ApiSeries& series : answer.series) {
    const JobId job = job_of(series);
    if (job == 0) continue;
    samples::Holder& holder = jobs_[job - 1];
    fill(holder.container, label_of(series, "container"));
    fill(holder.user, label_of(series, "user"));
    fill(holder.team, label_of(series, "team"));
    fill(holder.rule, label_of(series, "attributed_by"));
  }
  holders_loaded_ = wanted;
  return {};
}

base::Status EngineReader::load_gpu_names(Window window, const std::string& matchers) {
  const std::int64_t start = window.start.unix_milliseconds / kHourMilliseconds * kHourMilliseconds;
  const std::int64_t end = window.end.unix_milliseconds;
  std::string promql = over_promql("max", std::string(kGpuLabels) +
                                              ", mig_profile, hostname, gpu_index, pci_bus_id, model, driver_version",
                                   "max_over_time", std::string(kGpuInfo) + "{shard!=\"\"}", end - start);
  if (!matchers.empty()) {
    promql += " and on (" + std::string(kGpuLabels) + ") " +
              over_promql("max", kGpuLabels, "max_over_time", metric("gpu", Level::kSlot, "held") + "{shard!=\"\"" + matchers + "}",
                          end - window.start.unix_milliseconds);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const Answer answer, ask(promql, window.end));
  for (const ApiSeries& series : answer.series) {
    samples::GpuIdentity& gpu = gpus_[gpu_of(series) - 1];
    fill(gpu.mig_profile, label_of(series, "mig_profile"));
    if (gpu.host.empty()) gpu.host = label_of(series, "hostname");
    if (gpu.index.empty()) gpu.index = label_of(series, "gpu_index");
    fill(gpu.pci_bus_id, label_of(series, "pci_bus_id"));
    fill(gpu.model_raw, label_of(series, "model"));
    fill(gpu.driver_version, label_of(series, "driver_version"));
  }
  return {};
}

base::Result<std::vector<JobId>> EngineReader::find_job(std::string_view text) {
  const Error missing{ErrorCode::kNotFound, "no job with the id " + base::printable(text, 80)};
  const auto named = jobs::parse_job_text(text);
  if (!named) return missing;
  const Instant end = options_.now + units::Seconds(3600);
  FLOPSIGHT_RETURN_IF_ERROR(load_holders({end - options_.history, end}, job_matchers(*named)));
  const auto at = job_ids_.find({named->job, named->name_space});
  if (at == job_ids_.end()) return missing;
  return std::vector<JobId>{at->second};
}

// ---- Questions

base::Result<std::vector<store::JobTotal>> EngineReader::job_totals(Window window, std::optional<JobId> job) {
  window = whole_slots(window, slot_milliseconds_);
  const std::string matchers = matchers_of(job);
  FLOPSIGHT_RETURN_IF_ERROR(load_shards());
  FLOPSIGHT_RETURN_IF_ERROR(load_holders(window, matchers));
  std::map<std::pair<JobId, store::ModelId>, store::JobTotal> totals;
  FLOPSIGHT_RETURN_IF_ERROR(ask_pieces(
      pieces_of(window, *shards_, 0),
      [&](const Piece& piece, std::int64_t range) {
        return cells_promql({"job", piece.level, piece.matchers + matchers, "field, job, namespace, model", true}, range,
                            length_of(piece.level));
      },
      [&](const ApiSeries& series) {
        store::JobTotal& total = totals[{job_of(series), model_of(series)}];
        return add_point(series, series.points.back(), total.cell, &total.spread);
      }));
  std::vector<store::JobTotal> out;
  for (auto& [key, total] : totals) {
    total.job = key.first;
    total.model = key.second;
    if (total.cell[CellField::kCellCount] > 0) out.push_back(std::move(total));
  }
  // In the order of names: numbers are given as the engine's answer comes, and pages of a list must fit together.
  std::sort(out.begin(), out.end(), [this](const store::JobTotal& a, const store::JobTotal& b) {
    const samples::Holder &left = known_holder(a.job), &right = known_holder(b.job);
    return std::tie(left.job, left.name_space, model_name(a.model)) < std::tie(right.job, right.name_space, model_name(b.model));
  });
  return out;
}

base::Result<std::vector<store::JobCell>> EngineReader::job_series(JobId job, Window window, units::Seconds step) {
  const std::int64_t length = std::max(slot_milliseconds_, std::int64_t{std::llround(step.value * 1000)});
  window = whole_slots(window, length);
  FLOPSIGHT_RETURN_IF_ERROR(load_shards());
  std::map<std::pair<std::int64_t, store::ModelId>, store::JobCell> cells;
  for (const Piece& piece : pieces_of(window, *shards_, length)) {
    const std::string promql = cells_promql({"job", piece.level, piece.matchers + matchers_of(job), "field, model", true}, length,
                                            length_of(piece.level));
    base::Status wrong;
    // A step's point is at its end.
    const Window ends{{piece.window.start.unix_milliseconds + length}, {piece.window.end.unix_milliseconds + 1}};
    const base::Status asked =
        client_.query_range(promql, ends, units::Seconds(static_cast<double>(length) / 1000), [&](const Answer& answer) -> base::Status {
          FLOPSIGHT_RETURN_IF_ERROR(wrong = check_whole(answer));
          for (const ApiSeries& series : answer.series) {
            const store::ModelId model = model_of(series);
            for (const wire::ApiPoint& point : series.points) {
              store::JobCell& cell = cells[{point.unix_milliseconds - length, model}];
              FLOPSIGHT_RETURN_IF_ERROR(wrong = add_point(series, point, cell.cell, &cell.spread));
            }
          }
          return {};
        });
    FLOPSIGHT_RETURN_IF_ERROR(wrong);
    if (!asked.ok()) return engine_error(asked.error());
  }
  std::vector<store::JobCell> out;
  for (auto& [key, cell] : cells) {
    if (cell.cell[CellField::kCellCount] == 0) continue;
    cell.job = job;
    cell.model = key.second;
    cell.slot_start = Instant{key.first};
    out.push_back(std::move(cell));
  }
  return out;
}

base::Result<std::vector<store::GpuTotal>> EngineReader::gpu_totals(Window window, std::optional<JobId> job) {
  if (!options_.gpu_cells) {
    return Error{ErrorCode::kUnsupported, "cells of single GPUs are not written to the engine (engine.gpu-cells)"};
  }
  window = whole_slots(window, slot_milliseconds_);
  const std::string matchers = matchers_of(job);
  FLOPSIGHT_RETURN_IF_ERROR(load_shards());
  FLOPSIGHT_RETURN_IF_ERROR(load_holders(window, matchers));
  std::vector<Piece> pieces;
  for (Instant at = window.start; at < window.end;) {
    const Instant end = job ? window.end : std::min(window.end, Instant{at.unix_milliseconds + kGpusAtOnceMilliseconds});
    pieces.push_back({Level::kSlot, {at, end}, ""});
    at = end;
  }
  std::map<std::pair<GpuId, JobId>, store::GpuTotal> totals;
  FLOPSIGHT_RETURN_IF_ERROR(ask_pieces(
      pieces,
      [&](const Piece& piece, std::int64_t range) {
        return cells_promql({"gpu", piece.level, piece.matchers + matchers,
                             "field, " + std::string(kGpuLabels) + ", " + std::string(kJobLabels), true},
                            range, length_of(piece.level));
      },
      [&](const ApiSeries& series) {
        return add_point(series, series.points.back(), totals[{gpu_of(series), job_of(series)}].cell, nullptr);
      }));
  FLOPSIGHT_RETURN_IF_ERROR(load_gpu_names(window, matchers));
  std::vector<store::GpuTotal> out;
  for (auto& [key, total] : totals) {
    total.gpu = key.first;
    total.job = key.second;
    if (total.cell[CellField::kCellCount] > 0) out.push_back(std::move(total));
  }
  const auto names = [this](const store::GpuTotal& total) {
    const samples::GpuIdentity& gpu = gpus_[total.gpu - 1];
    const samples::Holder& who = known_holder(total.job);
    return std::tie(gpu.host, gpu.index, gpu.uuid, gpu.mig_instance, total.gpu, who.job, who.name_space);
  };
  std::sort(out.begin(), out.end(), [&](const store::GpuTotal& a, const store::GpuTotal& b) { return names(a) < names(b); });
  return out;
}

base::Result<std::vector<store::GpuRecord>> EngineReader::gpus(const std::vector<GpuId>& ids) {
  std::vector<store::GpuRecord> records;
  for (const GpuId id : ids) {
    if (id >= 1 && id <= gpus_.size()) records.push_back({id, gpus_[id - 1], {}, {}});
  }
  return records;
}

base::Status EngineReader::ask_lives(Window window, const std::string& matchers, std::map<JobId, store::Member>& members) {
  const auto ask_one = [&](std::string_view aggregation, std::string_view function, std::string_view what,
                           const std::function<void(store::Member&, Instant)>& use) {
    return ask_pieces(
        pieces_of(window, *shards_, 0),
        [&](const Piece& piece, std::int64_t range) {
          return over_promql(aggregation, kJobLabels, function,
                             metric("job", piece.level, what) + "{job!=\"\"" + piece.matchers + matchers + "}", range);
        },
        [&](const ApiSeries& series) -> base::Status {
          const double seconds = series.points.back().value;
          if (seconds >= 0 && seconds < 1e11) {
            use(members[job_of(series)], Instant{static_cast<std::int64_t>(seconds) * 1000});
          }
          return {};
        });
  };
  FLOPSIGHT_RETURN_IF_ERROR(ask_one("min", "min_over_time", "first_seconds", [](store::Member& member, Instant first) {
    if (member.ever.start.unix_milliseconds == 0 || first < member.ever.start) member.ever.start = first;
  }));
  return ask_one("max", "max_over_time", "last_seconds", [](store::Member& member, Instant last) {
    member.ever.end = std::max(member.ever.end, last);
  });
}

base::Result<std::vector<store::Member>> EngineReader::members(Window window, std::optional<JobId> job) {
  window = whole_slots(window, slot_milliseconds_);
  const std::string matchers = matchers_of(job);
  FLOPSIGHT_RETURN_IF_ERROR(load_shards());
  std::map<JobId, store::Member> members;
  if (job) {
    members[*job] = {};
    const Instant end = options_.now + units::Seconds(3600);
    FLOPSIGHT_RETURN_IF_ERROR(ask_lives(whole_slots({end - options_.history, end}, kHourMilliseconds), matchers, members));
  } else {
    FLOPSIGHT_RETURN_IF_ERROR(ask_lives(window, matchers, members));
  }
  FLOPSIGHT_RETURN_IF_ERROR(ask_pieces(
      pieces_of(window, *shards_, 0),
      [&](const Piece& piece, std::int64_t range) {
        return over_promql("max", std::string(kGpuLabels) + ", " + std::string(kJobLabels), "max_over_time",
                           metric("gpu", piece.level, "held") + "{shard!=\"\"" + piece.matchers + matchers + "}", range);
      },
      [&](const ApiSeries& series) -> base::Status {
        members[job_of(series)].gpus.push_back(gpu_of(series));
        return {};
      }));
  std::vector<store::Member> out;
  for (auto& [id, member] : members) {
    member.job = id;
    std::sort(member.gpus.begin(), member.gpus.end());
    member.gpus.erase(std::unique(member.gpus.begin(), member.gpus.end()), member.gpus.end());
    out.push_back(std::move(member));
  }
  return out;
}

}  // namespace flopsight::engine
