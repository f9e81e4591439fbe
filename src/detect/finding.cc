#include "detect/finding.h"

#include <array>

namespace flopsight::detect {
namespace {

constexpr std::array<FindingKindInfo, kFindingKindCount> kKinds = {{
    {"regression", Severity::kWarning, false,
     "look at the first suspect; compare the configuration and the commit of the run before and after the moment"},
    {"below_family", Severity::kWarning, false, "compare the configuration with that of the family's other runs"},
    {"hang", Severity::kCritical, false,
     "take stack traces of the ranks (py-spy dump, NCCL flight recorder), then restart from the last checkpoint"},
    {"stall", Severity::kWarning, false, "look at the job's log: a checkpoint, an evaluation on the host or a crash that was not noticed"},
    {"straggler", Severity::kWarning, false,
     "run dcgmi diag -r 3 on it; restart the job without it if it does not go away"},
    {"slow_clock", Severity::kWarning, false,
     "read nvidia-smi -q -d CLOCK,PERFORMANCE on it; reset locked clocks with nvidia-smi -rgc"},
    {"low_power", Severity::kInfo, false, "see whether its rank has other work than its peers; else run dcgmi diag -r 3"},
    {"thermal", Severity::kCritical, false, "drain the host and have its cooling looked at"},
    {"power_brake", Severity::kCritical, false, "have the power supplies of the host and of the rack looked at"},
    {"stuck_clock", Severity::kWarning, false, "reset locked clocks with nvidia-smi -rgc; if that does not help, reset the GPU"},
    {"power_capped", Severity::kWarning, false, "compare the power limit with the board's default: nvidia-smi -q -d POWER"},
    {"counter_dead", Severity::kWarning, true, "restart the exporter and the DCGM host engine; until then the time is unmeasured"},
    {"counter_frozen", Severity::kWarning, true, "restart the exporter and the DCGM host engine; until then the time is unmeasured"},
    {"profiler_pause", Severity::kInfo, true, "find who profiles on the host; the time is unmeasured while it lasts"},
    {"unseen", Severity::kWarning, true, "see whether the host and its exporter are up; the time is unmeasured"},
    {"unmeasurable", Severity::kInfo, true, "have the exporter scrape tensor activity and the SM clock, and the GPU model in the catalogue"},
}};

void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
}

}  // namespace

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kCritical: return "critical";
  }
  return "";
}

const FindingKindInfo& info_of(FindingKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::string_view suspect_name(SuspectKind kind) {
  switch (kind) {
    case SuspectKind::kLabelChange: return "label_change";
    case SuspectKind::kSlowGpu: return "slow_gpu";
    case SuspectKind::kClock: return "clock";
    case SuspectKind::kHostOrInput: return "host_or_input";
    case SuspectKind::kCommunication: return "communication";
    case SuspectKind::kKernels: return "kernels";
  }
  return "";
}

std::string finding_key(const Finding& finding) {
  std::string key(info_of(finding.kind).name);
  const auto add = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    key += '/';
    key += name;
    key += '=';
    append_escaped(key, value);
  };
  add("job", finding.job);
  add("host", finding.host);
  add("gpu", finding.gpu);
  return key;
}

}  // namespace flopsight::detect
