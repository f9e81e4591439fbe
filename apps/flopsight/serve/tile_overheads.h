#pragma once
// What tiles cost a job, kept with it in the book of jobs (store/job_book.h): the FLOP-weighted overhead of a trace or of a model's products,
// by which reports correct OFU. One for each job, the last that was told. Threads: as the book.

#include <map>
#include <string>
#include <utility>

#include "analysis/report.h"
#include "base/result.h"
#include "store/job_book.h"

namespace flopsight::app {

struct TileOverhead {
  double overhead_ratio = 1;  // executed / useful FLOPs, 1 or more
  std::string source;         // "trace rank0.json.gz, 98.2 % of the tensor kernels' time"

  bool is_measured() const { return source.starts_with("trace "); }  // otherwise a model's products and a modelled or given tile
};

base::Status keep_tile_overhead(store::JobBook& book, const std::string& job, const std::string& name_space, const TileOverhead& overhead);
using TileOverheads = std::map<std::pair<std::string, std::string>, TileOverhead>;
// By job and namespace. Errors: kIo, kCorrupt; what is kept and cannot be read is left out.
base::Result<TileOverheads> tile_overheads(store::JobBook& book);
void add_tile_overhead(const TileOverheads& overheads, const std::pair<std::string, std::string>& job, analysis::Summary& summary);
// To the groups of a report by job; of one by anything else nothing is known.
base::Status add_tile_overheads(store::JobBook& book, analysis::Report& report);

}  // namespace flopsight::app
