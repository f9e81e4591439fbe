#pragma once
// A job as a JSON object, both ways: what the API takes and gives, `flopsight jobs` prints and the
// book of jobs keeps.
//
// Out: every field of Job under its own name, times RFC 3339, null where unknown. In: the same
// keys; besides, who writes by hand may use the keys of a jobs file (docs/report.md: "job", "team",
// "namespace", "hosts": "n[1-4]", "gpus": ["0-3"] or UUIDs), and "gpus": 8 for a count. Unknown
// keys are an error, as a misspelt one would change who held what. Errors: kInvalid naming the key
// and what was expected. Threads: pure.

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "schedulers/job.h"

namespace flopsight::schedulers {

base::json::Value to_json(const Job& job);
base::Result<Job> job_from_json(const base::json::Value& value);

// A list, or {"jobs": [...]}. Errors are within "entry N". Limits, kLimit: kJobsPerTextMax, kHostsPerTextMax of all jobs together, and kTextBytesMax of an id, a name or a host.
inline constexpr std::size_t kJobsPerTextMax = 1'000'000;
inline constexpr std::size_t kHostsPerTextMax = 1'000'000;
inline constexpr std::size_t kTextBytesMax = 4'096;
base::Result<std::vector<Job>> parse_told_jobs(std::string_view json_text);

// What a record of a jobs file says, as a job.
Job from_record(const jobs::JobRecord& record);

}  // namespace flopsight::schedulers
