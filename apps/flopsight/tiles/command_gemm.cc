#include "tiles/command_gemm.h"

#include <cstdio>
#include <memory>
#include <ostream>

#include "base/text.h"
#include "serve/tile_overheads.h"
#include "store/store.h"
#include "tiles/gemm_answer.h"

namespace flopsight::app {

namespace {

std::string source_of(const GemmArguments& arguments, const GemmAnswer& answer) {
  char text[64];
  if (!answer.trace) return "tiles of " + base::printable(arguments.config_path, 120) + (answer.modelled ? ", modelled" : ", as given");
  std::snprintf(text, sizeof text, ", %.1f %% of the tensor kernels' time", 100 * answer.trace->joined_time().value / answer.trace->tensor_time().value);
  return "trace " + base::printable(arguments.trace_path, 120) + text;
}

base::Status attach(const GemmArguments& arguments, GemmAnswer& answer) {
  if (!answer.overhead_ratio()) return base::Error{base::ErrorCode::kInvalid, "--attach: no overhead is known: no tensor product has both tile and shape"};
  // The store is another's to make; a folder without one is a mistake in the path.
  store::SqliteStoreOptions how;
  how.read_only = true;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> stored, store::open_sqlite_store(arguments.store_path, how));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<store::JobBook> book, store::JobBook::open(arguments.store_path, {}));
  FLOPSIGHT_RETURN_IF_ERROR(keep_tile_overhead(*book, arguments.job, arguments.name_space, {*answer.overhead_ratio(), source_of(arguments, answer)}));
  answer.attached = arguments.job + (arguments.name_space.empty() ? "" : " in " + arguments.name_space);
  return {};
}

}  // namespace

int run_gemm(const GemmArguments& arguments, const Env& env) {
  base::Result<GemmAnswer> answer = gemm_answer(arguments);
  if (answer.ok() && arguments.attach) {
    if (const base::Status status = attach(arguments, *answer); !status.ok()) answer = status.error();
  }
  if (!answer.ok()) {
    env.err << "flopsight gemm: " << answer.error().message << '\n';
    return kExitUsage;
  }
  env.out << (arguments.json ? gemm_json(*answer) : gemm_table(*answer, arguments.top));
  return kExitDone;
}

}  // namespace flopsight::app
