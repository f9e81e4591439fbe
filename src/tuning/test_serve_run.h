#pragma once
// A model served on a GPU, for tests: two thousand tokens in, 96 out.

#include <string>
#include <string_view>

#include "tuning/serving.h"
#include "tuning/test_cases.h"

namespace flopsight::tuning::test {

struct ServeRun {
  explicit ServeRun(const std::string& model_name = "made--Llama-3-8B", std::string_view gpu = "H100-SXM5-80GB", std::string_view fabric_name = "dgx-h100")
      : model(model_of(model_name)), rates(Rates::of(device(gpu)).value()), fabric(*find_fabric(fabric_name)), serve(model, rates, fabric) {
    settings.input_tokens = 2000;
    settings.output_tokens = 96;
  }
  Serving predict() const { return serve.predict(settings).value(); }
  Findings advice() const { return advise_serving(serve, {settings, predict(), std::nullopt}); }
  DecodeStep decode(double batch, double context = 2048) const { return serve.decode(settings, batch, context).value(); }

  flops::Model model;
  Rates rates;
  Fabric fabric;
  ServeModel serve;
  ServeSettings settings;
};

}  // namespace flopsight::tuning::test
