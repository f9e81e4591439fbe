#include "findings/record.h"

#include <array>
#include <cstdio>

#include "base/hash.h"

namespace flopsight::findings {
namespace {

constexpr std::array<std::string_view, kStateCount> kStateNames = {"open", "acknowledged", "resolved"};

std::vector<KindInfo> make_kinds() {
  std::vector<KindInfo> out;
  for (std::size_t i = 0; i < detect::kFindingKindCount; ++i) {
    const detect::FindingKindInfo& info = detect::info_of(static_cast<detect::FindingKind>(i));
    out.push_back({info.name, info.severity, info.data_quality});
  }
  out.push_back({kAuditKind, detect::Severity::kWarning, false});
  out.push_back({kWasteKind, detect::Severity::kWarning, false});
  return out;
}

}  // namespace

std::string_view state_name(State state) { return kStateNames[static_cast<std::size_t>(state)]; }

std::optional<State> parse_state(std::string_view name) {
  for (std::size_t i = 0; i < kStateCount; ++i) {
    if (kStateNames[i] == name) return static_cast<State>(i);
  }
  return std::nullopt;
}

std::optional<detect::Severity> parse_severity(std::string_view name) {
  for (const detect::Severity severity : {detect::Severity::kInfo, detect::Severity::kWarning, detect::Severity::kCritical}) {
    if (detect::severity_name(severity) == name) return severity;
  }
  return std::nullopt;
}

const std::vector<KindInfo>& kinds() {
  static const std::vector<KindInfo> kAll = make_kinds();
  return kAll;
}

const KindInfo* find_kind(std::string_view name) {
  for (const KindInfo& kind : kinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::string record_id(std::string_view key, units::Instant first) {
  const std::uint64_t bits = base::hash128(std::string(key) + "@" + std::to_string(first.unix_milliseconds)).high;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
  return text;
}

std::string_view change_name(Change change) {
  switch (change) {
    case Change::kOpened: return "opened";
    case Change::kReopened: return "reopened";
    case Change::kWorsened: return "worsened";
    case Change::kAcknowledged: return "acknowledged";
    case Change::kUnacknowledged: return "unacknowledged";
    case Change::kResolved: return "resolved";
  }
  return "";
}

}  // namespace flopsight::findings
