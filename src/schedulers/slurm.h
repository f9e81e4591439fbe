#pragma once
// What Slurm's commands and its REST service print, as jobs and nodes. Which of these forms a text
// has is seen from the text:
//   JSON of sacct, squeue, scontrol, sinfo and slurmrestd, of data_parser v0.0.37 and later;
//   `sacct -P` (and -p) with its header, columns in any order;
//   `scontrol show job -d` and `scontrol show node -d`, also with -o.
//
// Array tasks, parts of heterogeneous jobs and each start of a requeued job are jobs; steps are
// none. A time that gives no offset from UTC is read in Options::zone. Errors: kInvalid for a text
// of none of these forms, and for a time without offset where no zone is given; kLimit. What is
// wrong with one job is in Parsed::problems, and the others are read.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/zone.h"
#include "schedulers/job.h"

namespace flopsight::schedulers {

struct SlurmOptions {
  std::string cluster;               // for output that does not name its own
  const base::Zone* zone = nullptr;  // of times without an offset; borrowed
  std::size_t jobs_max = 1'000'000;  // jobs and nodes of a text
};

base::Result<Parsed> read_slurm(std::string_view text, const SlurmOptions& options);

// The columns that read_slurm takes from sacct, for --format.
std::string_view sacct_columns();

// The readers behind it, by form.
base::Result<Parsed> read_slurm_json(std::string_view text, const SlurmOptions& options);
base::Result<Parsed> read_sacct_text(std::string_view text, const SlurmOptions& options);
base::Result<Parsed> read_scontrol_text(std::string_view text, const SlurmOptions& options);

}  // namespace flopsight::schedulers
