#include "advisor/command_tune.h"

#include <ostream>

#include "advisor/tune_answer.h"
#include "error_line.h"

namespace flopsight::app {
int run_tune(const TuneArguments& arguments, const Env& env) {
  if (arguments.action == TuneArguments::Action::kVerify) {
    const base::Result<TuneVerifyAnswer> answer = tune_verify(arguments.verify, env);
    if (!answer.ok()) return fail(env, "tune", answer.error());
    env.out << verify_text(*answer);
    return kExitDone;
  }
  if (arguments.action == TuneArguments::Action::kServe) {
    const base::Result<TuneServeAnswer> answer = tune_serve(arguments.serve);
    if (!answer.ok()) return fail(env, "tune", answer.error());
    const TuneFormat format = arguments.serve.format;
    env.out << (format == TuneFormat::kJson ? serve_json(*answer) : format == TuneFormat::kHtml ? serve_html(*answer) : serve_table(*answer));
    return kExitDone;
  }
  const base::Result<TuneTrainAnswer> answer = tune_train(arguments.train, env);
  if (!answer.ok()) return fail(env, "tune", answer.error());
  const TuneFormat format = arguments.train.format;
  env.out << (format == TuneFormat::kJson ? train_json(*answer) : format == TuneFormat::kHtml ? train_html(*answer) : train_table(*answer));
  return kExitDone;
}

}  // namespace flopsight::app
