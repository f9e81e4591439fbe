#pragma once
// What `flopsight tune` says, before it is written down as a table, JSON or a page.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "advisor/measured_job.h"
#include "base/json.h"
#include "base/result.h"
#include "catalog/devices.h"
#include "env.h"
#include "tuning/advice.h"
#include "tuning/compare.h"
#include "tuning/search.h"
#include "advisor/tune_options.h"

namespace flopsight::app {

// GPU, links and model of a question.
struct TuneGround {
  catalog::DeviceCatalog catalog;
  std::optional<catalog::Device> device;  // of the catalogue, with the memory that the name says
  tuning::Fabric fabric;
  flops::Model model;
  std::vector<std::string> assumptions;
};
// Errors: of files; a GPU that is not known; links that have to be said.
base::Status read_ground(const TuneCommon& arguments, TuneGround& out);
struct AttentionChoice {
  bool is_given = false;
  bool is_wide = false;  // the run is in FP32 or TF32
};
// Makes `kernel` that of the run where none is given, and says so. Error: a kernel that was never written for the GPU.
base::Status choose_attention(const TuneGround& ground, const tuning::Rates& rates, const AttentionChoice& choice, tuning::AttentionKernel& kernel, std::vector<std::string>& assumptions);
// Where a sequence is longer than what the configuration says the model has positions for.
void say_positions(const flops::Model& model, std::uint64_t tokens, const char* option, std::vector<std::string>& out);

struct TuneTrainAnswer {
  TuneTrainArguments arguments;
  std::string gpu;     // of the catalogue
  std::string fabric;  // in words
  tuning::TrainSettings settings;
  tuning::Step step;
  tuning::Memory memory;
  tuning::Findings findings;
  std::optional<MeasuredJob> measured;      // with --store; tokens a second of the whole job
  std::optional<tuning::Comparison> comparison;
  std::vector<tuning::Found> layouts;  // with --search
  std::uint64_t layouts_tried = 0;
  std::uint64_t layouts_fitting = 0;
  std::vector<std::string> assumptions;
};
base::Result<TuneTrainAnswer> tune_train(const TuneTrainArguments& arguments, const Env& env);

struct TuneServeAnswer {
  TuneServeArguments arguments;
  std::string gpu;
  std::string fabric;
  tuning::Serving serving;
  tuning::Findings findings;
  std::optional<double> usd_per_million_tokens;  // of output
  std::vector<std::string> assumptions;

  // Whether the weights fit, and at least one request beside them; nothing where the memory is not known.
  std::optional<bool> fits() const;
  std::string over() const;  // empty where it fits
};
base::Result<TuneServeAnswer> tune_serve(const TuneServeArguments& arguments);
std::string serve_json(const TuneServeAnswer& answer);
std::string serve_table(const TuneServeAnswer& answer);
std::string serve_html(const TuneServeAnswer& answer);

std::string train_json(const TuneTrainAnswer& answer);
std::string train_table(const TuneTrainAnswer& answer);
std::string train_html(const TuneTrainAnswer& answer);

// Shared forms.
struct BreakdownPart {
  const char* key;   // of the contract
  const char* name;
  double seconds = 0;
};
std::vector<BreakdownPart> breakdown_parts(const tuning::Breakdown& breakdown);
base::json::Object breakdown_json(const tuning::Breakdown& breakdown);
std::string fabric_text(const TuneCommon& arguments, const tuning::Fabric& fabric);
base::json::Object memory_json(const tuning::Memory& memory);
std::string breakdown_table(const char* head, const tuning::Breakdown& breakdown, const char* whole);
std::string memory_table(const tuning::Memory& memory);
std::string advice_table(const tuning::Findings& findings);
std::string seconds_text(double seconds);
std::string gain_text(const tuning::Advice& advice);  // "+12.3 %", "makes it fit", "not predicted"

}  // namespace flopsight::app
