#include "simulation/rows.h"

#include <algorithm>

#include "simulation/random.h"

namespace flopsight::simulation {
namespace {

constexpr std::string_view kDriver = "570.86.15";
constexpr std::string_view kTeams[] = {"foundation", "apps", "research", "vision", "speech", "robotics", "search", "platform"};
constexpr std::string_view kUsers[] = {"ada",    "grace", "linus", "edsger", "barbara", "donald", "alan",  "margaret",
                                       "dennis", "radia", "ken",   "frances", "john",   "hedy",   "niklaus", "katherine",
                                       "tony",   "joan",  "robin", "karen",  "leslie",  "sophie", "vint",  "annie"};

std::string base36(std::uint64_t n) {
  std::string out;
  do {
    out.insert(out.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[n % 36]);
    n /= 36;
  } while (n > 0);
  return out;
}

// As Kubernetes makes them: no vowels, nothing that looks like something else.
std::string random_suffix(std::uint64_t hash) {
  std::string out;
  for (int i = 0; i < 5; ++i, hash /= 27) out += "bcdfghjklmnpqrstvwxz2456789"[hash % 27];
  return out;
}

std::string hex(std::uint64_t value, int digits) {
  std::string out(static_cast<std::size_t>(digits), '0');
  for (int i = digits; i-- > 0; value /= 16) out[static_cast<std::size_t>(i)] = "0123456789abcdef"[value % 16];
  return out;
}

std::string_view stem(JobKind kind) {
  switch (kind) {
    case JobKind::kPretrain: return "llm-pretrain";
    case JobKind::kFinetune: return "finetune";
    case JobKind::kInference: return "vllm";
    case JobKind::kNotebook: return "notebook";
    case JobKind::kMoePretrain: return "moe-latent-pretrain";
    case JobKind::kHybridPretrain: return "hybrid-mamba-pretrain";
  }
  return "";
}

std::string uuid_from(std::uint64_t high, std::uint64_t low) {
  return hex(high >> 32, 8) + "-" + hex(high >> 16, 4) + "-" + hex(high, 4) + "-" + hex(low >> 48, 4) + "-" + hex(low, 12);
}

std::string mig_profile(const Timetable& timetable, const Slot& slot) {
  // Memory comes in eighths: 1g has one, 2g two, 3g and 4g four.
  const int memory = timetable.options().device->memory_gigabytes.back();
  const int eighths = slot.mig_slices >= 3 ? 4 : slot.mig_slices;
  return std::to_string(slot.mig_slices) + "g." + std::to_string(memory * eighths / 8) + "gb";
}

void add_gpu_labels(const Timetable& timetable, const Row& row, LabelPairs& out) {
  const Options& options = timetable.options();
  const std::uint32_t index = row.gpu % options.gpus_per_host;
  const Slot& slot = timetable.slots()[row.slot];
  out.emplace_back("gpu", std::to_string(index));
  out.emplace_back("UUID", uuid_of(options, row.gpu));
  out.emplace_back("pci_bus_id", "00000000:" + hex(0x1b + 0x0e * index, 2) + ":00.0");
  out.emplace_back("device", "nvidia" + std::to_string(index));
  out.emplace_back("modelName", options.model);
  if (slot.mig_slices > 0) {
    out.emplace_back("GPU_I_PROFILE", mig_profile(timetable, slot));
    out.emplace_back("GPU_I_ID", std::to_string(slot.mig_instance));
  }
  out.emplace_back("Hostname", host_name(row.gpu / options.gpus_per_host));
  out.emplace_back("DCGM_FI_DRIVER_VERSION", std::string(kDriver));
}

std::string pod_uid(const Timetable& timetable, const Row& row) {
  const std::uint64_t key = timetable.try_key(row.segment);
  return uuid_from(mix(key), mix(hash_of(key, row.gpu / timetable.options().gpus_per_host)));
}

// A trainer says nothing before its first step. While it hangs, what it said last stays.
bool reports_mfu(Meter& meter, const Timetable& timetable, std::uint32_t slot, std::int64_t t) {
  if (!timetable.options().reports_mfu()) return false;
  const Workload& workload = meter.workload(slot, t);
  if (workload.reported_mfu_ratio <= 0) return false;
  const double first = workload.start_up_seconds + (workload.start_up_seconds > 0 ? workload.step_seconds : 0);
  return static_cast<double>(t - meter.segment(slot, t).start) / 1000 >= first;
}

}  // namespace

std::string host_name(std::uint32_t host) {
  std::string number = std::to_string(host);
  return "sim-" + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number;
}

std::string uuid_of(const Options& options, std::uint32_t gpu) {
  const std::uint64_t key = hash_of(options.seed, 4711, gpu);
  return "GPU-" + uuid_from(key, mix(key));
}

JobNames names_of(const Timetable& timetable, const Segment& segment, std::uint32_t host) {
  const Slot& slot = timetable.slots()[segment.slot];
  const std::uint64_t key = timetable.key(segment);
  JobNames names;
  const std::uint64_t user = mix(key ^ 5) % std::size(kUsers);
  names.user = kUsers[user];
  names.team = kTeams[user % std::size(kTeams)];
  // Slot and period are in the name, so that no two jobs share one.
  names.workload = std::string(stem(segment.kind)) + "-" + base36(segment.slot) + "-" +
                   base36(static_cast<std::uint64_t>(segment.period));
  if (timetable.options().labels == LabelStyle::kSlurm) {
    std::string period = std::to_string(segment.period % 1'000'000);
    names.job = std::to_string(segment.slot + 1) + std::string(6 - period.size(), '0') + period;
    // Resubmitted, not requeued: a new id.
    if (timetable.options().scenario == Scenario::kRestartStorm) {
      names.job += segment.attempt < 10 ? "0" + std::to_string(segment.attempt) : std::to_string(segment.attempt);
    }
    return names;
  }
  names.name_space = names.team;
  names.container = segment.kind == JobKind::kInference ? "vllm" : segment.kind == JobKind::kNotebook ? "notebook" : "main";
  const std::uint32_t ordinal = host - slot.gpu_first / timetable.options().gpus_per_host;
  names.job = names.workload + (segment.kind == JobKind::kNotebook ? "-" : "-worker-") + std::to_string(ordinal);
  if (timetable.options().scenario == Scenario::kRestartStorm) {
    names.job += "-" + random_suffix(hash_of(timetable.try_key(segment), host));
  }
  return names;
}

bool Row::has(const SimulatedMetric& metric, bool with_profiling) const {
  if (metric.group == kReported) return reports_mfu && named;
  if (utilization_only) return metric.per_process;
  return with_profiling || !metric.name.starts_with("DCGM_FI_PROF_");
}

void add_rows(Meter& meter, const Timetable& timetable, std::uint32_t gpu, std::int64_t t, std::vector<Row>& out) {
  const std::uint32_t first = timetable.first_slot(gpu), seats = timetable.seats(gpu);
  const bool mig = timetable.slots()[first].mig_slices > 0;
  const bool pods = !timetable.without_pods(gpu / timetable.options().gpus_per_host, t);
  const std::size_t before = out.size();
  for (std::uint32_t i = 0; i < seats; ++i) {
    const Segment& segment = meter.segment(first + i, t);
    if (seats > 1 && !mig && !segment.held) continue;
    Row row{gpu, first + i, segment.held && pods ? segment.job_start : 0, segment.held && pods, seats > 1 && !mig, false, segment};
    row.reports_mfu = segment.held && reports_mfu(meter, timetable, first + i, t);
    out.push_back(row);
  }
  if (seats == 1 || mig) return;
  if (out.size() == before) {  // shared by nobody
    out.push_back({gpu, first, 0, false, false, false, {}, false});
  } else {
    out.push_back({gpu, first, 0, false, true, true, {}, false});
  }
}

double value_of(const SimulatedMetric& metric, const Row& row, const Readings& readings, const Timetable& timetable,
                Meter& meter, std::int64_t t) {
  if (metric.per_process && row.shared && !row.utilization_only) return meter.process_percent(row.gpu, row.slot, t);
  return metric.value(readings, *timetable.options().device);
}

LabelPairs exporter_labels(const Timetable& timetable, const Row& row) {
  LabelPairs out;
  add_gpu_labels(timetable, row, out);
  const bool slurm = timetable.options().labels == LabelStyle::kSlurm;
  if (!row.named) {
    // A dcgm-exporter that maps pods says of a free GPU that there is none.
    if (!slurm && !row.utilization_only) {
      for (const char* name : {"container", "namespace", "pod", "pod_uid"}) out.emplace_back(name, "");
    }
    return out;
  }
  const JobNames names = names_of(timetable, row.segment, row.gpu / timetable.options().gpus_per_host);
  if (slurm) {
    out.emplace_back("hpc_job", names.job);
    out.emplace_back("user", names.user);
    out.emplace_back("account", names.team);
    return out;
  }
  out.emplace_back("container", names.container);
  out.emplace_back("namespace", names.name_space);
  out.emplace_back("pod", names.job);
  out.emplace_back("pod_uid", pod_uid(timetable, row));
  if (row.shared) out.emplace_back("vgpu", std::to_string(timetable.slots()[row.slot].seat));
  out.emplace_back("team", names.team);
  out.emplace_back("user", names.user);
  return out;
}

LabelPairs stored_host_labels(const Timetable& timetable, std::uint32_t host) {
  const std::string name = host_name(host);
  const std::string address = "10." + std::to_string(host >> 16 & 255) + "." + std::to_string(host >> 8 & 255) + "." +
                              std::to_string(host & 255) + ":9400";
  LabelPairs out = {{"cluster", "sim"},
                    {"container", "nvidia-dcgm-exporter"},
                    {"endpoint", "gpu-metrics"},
                    {"instance", address},
                    {"job", "nvidia-dcgm-exporter"},
                    {"namespace", "gpu-operator"},
                    {"node", name},
                    {"pod", "nvidia-dcgm-exporter-" + random_suffix(hash_of(timetable.options().seed, host, 9))},
                    {"prometheus", "monitoring/k8s"},
                    {"region", "sim-1"},
                    {"service", "nvidia-dcgm-exporter"}};
  return out;
}

LabelPairs stored_labels(const Timetable& timetable, const Row& row, std::uint32_t labels_min) {
  LabelPairs out = stored_host_labels(timetable, row.gpu / timetable.options().gpus_per_host);
  for (auto& own : exporter_labels(timetable, row)) {
    if (own.second.empty()) continue;
    const bool taken = std::any_of(out.begin(), out.end(), [&](const auto& label) { return label.first == own.first; });
    out.emplace_back(taken ? "exported_" + own.first : own.first, std::move(own.second));
  }
  for (std::uint32_t i = 0; out.size() + 1 < labels_min; ++i) {
    out.emplace_back("label_extra_" + base36(i), "value-" + base36(i));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace flopsight::simulation
