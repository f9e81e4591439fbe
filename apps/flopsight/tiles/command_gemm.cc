#include "tiles/command_gemm.h"

#include <ostream>

#include "tiles/gemm_answer.h"

namespace flopsight::app {

int run_gemm(const GemmArguments& arguments, const Env& env) {
  const base::Result<GemmAnswer> answer = gemm_answer(arguments);
  if (!answer.ok()) {
    env.err << "flopsight gemm: " << answer.error().message << '\n';
    return kExitUsage;
  }
  env.out << (arguments.json ? gemm_json(*answer) : gemm_table(*answer, arguments.top));
  return kExitDone;
}

}  // namespace flopsight::app
