// For tests/e2e/test_slurm.py: what the readers and the poller of Slurm make of a real one, as
// JSON.
//   slurm_jobs read CLUSTER ZONE < TEXT          what a command printed
//   slurm_jobs ask CLUSTER SINCE_UNIX [REST_URL]  as serve asks, by commands or slurmrestd
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "schedulers/job_json.h"
#include "schedulers/place.h"
#include "schedulers/slurm.h"
#include "serve/slurm_query.h"

namespace {

using namespace flopsight;
using base::json::Array;
using base::json::Object;
using base::json::Value;

Value texts(const std::vector<std::string>& items) {
  Array out;
  for (const std::string& item : items) out.emplace_back(item);
  return Value(std::move(out));
}

Value record_json(const jobs::JobRecord& record) {
  Object out;
  out.emplace_back("job", record.job);
  out.emplace_back("hosts", texts(record.hosts));
  out.emplace_back("gpus", texts(record.gpu_indices));
  out.emplace_back("start", record.start ? Value(units::to_rfc3339(*record.start)) : Value());
  out.emplace_back("end", record.end ? Value(units::to_rfc3339(*record.end)) : Value());
  return Value(std::move(out));
}

int print(const std::vector<schedulers::Job>& jobs, const std::vector<std::string>& complaints) {
  Array all, records;
  for (const schedulers::Job& job : jobs) {
    all.push_back(schedulers::to_json(job));
    for (const jobs::JobRecord& record : schedulers::to_records(job).records)
      records.push_back(record_json(record));
  }
  Object out;
  out.emplace_back("jobs", Value(std::move(all)));
  out.emplace_back("records", Value(std::move(records)));
  out.emplace_back("complaints", texts(complaints));
  std::cout << base::json::dump(Value(std::move(out))) << "\n";
  return 0;
}

int fail(const std::string& what) {
  std::cerr << "slurm_jobs: " << what << "\n";
  return 2;
}

int read(const std::string& cluster, const std::string& zone_name) {
  const auto text = base::read_file("-");
  const auto zone = base::Zone::find(zone_name);
  if (!text.ok()) return fail(text.error().message);
  if (!zone.ok()) return fail(zone.error().message);
  schedulers::SlurmOptions options;
  options.cluster = cluster;
  options.zone = &*zone;
  const auto parsed = schedulers::read_slurm(*text, options);
  if (!parsed.ok()) return fail(parsed.error().message);
  std::vector<std::string> complaints;
  for (const schedulers::Problem& problem : parsed->problems)
    complaints.push_back(problem.where + ": " + problem.what);
  return print(parsed->jobs, complaints);
}

int ask(const std::string& cluster, const std::string& since, const std::string& rest_url) {
  app::SlurmSource source;
  source.cluster = cluster;
  source.rest_url = rest_url;
  app::SlurmQuery query(source);
  app::SlurmAnswer answer = query.ask({std::atoll(since.c_str()) * 1000});
  answer.failures.insert(answer.failures.end(), answer.problems.begin(), answer.problems.end());
  return print(answer.jobs, answer.failures);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "read") return read(arguments[1], arguments[2]);
  if (arguments.size() >= 3 && arguments[0] == "ask") {
    return ask(arguments[1], arguments[2], arguments.size() > 3 ? arguments[3] : "");
  }
  return fail("expected read CLUSTER ZONE, or ask CLUSTER SINCE_UNIX [REST_URL]");
}
