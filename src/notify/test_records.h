#pragma once
// A finding for tests, with names that tests can say.

#include <memory>
#include <string>

#include "notify/plan.h"

namespace flopsight::notify {

inline units::Instant at(double seconds) { return units::Instant{1'790'000'000'000} + units::Seconds(seconds); }

inline findings::Record hang(const std::string& id = "00000000000000aa") {
  findings::Record record;
  record.id = id;
  record.key = "hang/job=train";
  record.kind = "hang";
  record.severity = detect::Severity::kCritical;
  record.holder.job = "train";
  record.holder.name_space = "ml";
  record.holder.user = "ada";
  record.holder.team = "vision";
  record.job = "train@ml";
  record.host = "n1";
  record.gpu = "GPU-1";
  record.first = at(0);
  record.last = at(60);
  record.opened = at(70);
  record.changed = at(70);
  record.text = "no tensor work for 10 minutes";
  record.action = "look at the job's stacks";
  record.evidence = {{"power_watts", 143.25}};
  record.suspects = {{detect::SuspectKind::kCommunication, 0.5, "NVLink is silent"}};
  record.cost = units::GpuHours(12.5);
  record.cost_usd = units::Usd(37.5);
  return record;
}

inline findings::Record resolved(findings::Record record, units::Instant when) {
  record.state = findings::State::kResolved;
  record.resolved = when;
  record.changed = when;
  return record;
}

inline Records records(std::initializer_list<findings::Record> list) {
  Records out;
  for (const findings::Record& record : list) out.push_back(std::make_shared<findings::Record>(record));
  return out;
}

}  // namespace flopsight::notify
