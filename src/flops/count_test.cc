#include "flops/count.h"

#include <gtest/gtest.h>

#include "flops/conventions.h"
#include "flops/layer_kinds.h"
#include "flops/test_models.h"

namespace flopsight::flops {
namespace {

using test::model_of;
using test::tokens;

const std::vector<std::string> kModels = {"meta-llama--Meta-Llama-3.1-8B", "deepseek-ai--DeepSeek-V3.2", "openai--gpt-oss-20b",
                                          "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8", "ai21labs--Jamba-v0.1",
                                          "Qwen--Qwen3.5-397B-A17B", "nvidia--Llama-3_3-Nemotron-Super-49B-v1", "google--gemma-4-26B-A4B"};

AttentionCore core(Mask mask, std::uint64_t span = 0) {
  AttentionCore c;
  c.mask = mask;
  c.span = span;
  return c;
}

double context(Mask mask, std::uint64_t span, std::uint64_t length, const CountingRules& rules = {}) {
  return mean_context(core(mask, span), tokens(length).sequence, rules);
}

// Counts keys one by one.
double counted_context(Mask mask, std::uint64_t span, std::uint64_t length) {
  double keys = 0;
  for (std::uint64_t i = 0; i < length; ++i) {
    const std::uint64_t before = i + 1;
    keys += static_cast<double>(mask == Mask::kBidirectional ? length
                                : mask == Mask::kCausal      ? before
                                : mask == Mask::kChunk       ? i % span + 1
                                                             : std::min(span, before));
  }
  return keys / static_cast<double>(length);
}

TEST(MeanContext, is_what_counting_the_keys_gives) {
  for (const std::uint64_t length : {1U, 2U, 7U, 16U, 100U}) {
    EXPECT_DOUBLE_EQ(context(Mask::kCausal, 0, length), counted_context(Mask::kCausal, 0, length));
    EXPECT_DOUBLE_EQ(context(Mask::kBidirectional, 0, length), counted_context(Mask::kBidirectional, 0, length));
    for (const std::uint64_t span : {1U, 3U, 16U, 99U, 100U, 101U}) {
      for (const Mask mask : {Mask::kWindow, Mask::kChunk, Mask::kTopK}) {
        EXPECT_NEAR(context(mask, span, length), counted_context(mask, span, length), 1e-12) << length << " " << span;
      }
    }
  }
}

TEST(MeanContext, packed_documents_do_not_see_each_other) {
  Sequence packed = tokens(8192).sequence;
  packed.documents = {1024, 1024, 2048, 4096};
  const double expected = (2 * 1024.0 * 1025 / 2 + 2048.0 * 2049 / 2 + 4096.0 * 4097 / 2) / 8192;
  EXPECT_DOUBLE_EQ(mean_context(core(Mask::kCausal), packed, {}), expected);
}

TEST(MeanContext, rules_of_others) {
  CountingRules rules;
  rules.causal = CausalRule::kHalf;
  EXPECT_EQ(context(Mask::kCausal, 0, 4096, rules), 2048);
  rules.window = WindowRule::kIgnored;
  EXPECT_EQ(context(Mask::kWindow, 128, 4096, rules), 2048);
  rules.window = WindowRule::kWidth;
  EXPECT_EQ(context(Mask::kWindow, 128, 4096, rules), 128);
  rules.window = WindowRule::kHalved;
  EXPECT_EQ(context(Mask::kWindow, 128, 4096, rules), 64);
  rules.causal = CausalRule::kFull;
  EXPECT_EQ(context(Mask::kCausal, 0, 4096, rules), 4096);
  rules.causal = CausalRule::kNone;
  EXPECT_EQ(context(Mask::kCausal, 0, 4096, rules), 0);
  EXPECT_EQ(context(Mask::kWindow, 128, 4096, rules), 0);
}

TEST(Cost, of_a_model_is_the_sum_over_its_layers) {
  for (const std::string& name : kModels) {
    const Model model = model_of(name);
    double forward = 0, train = 0;
    for (const Layer& layer : model.layers) {
      if (layer.section != Section::kText) continue;
      forward += static_cast<double>(layer.executed) * layer_forward(layer, tokens(4096).sequence, {}).total();
      train += static_cast<double>(layer.executed) * layer_train(layer, tokens(4096).sequence, {}).total();
    }
    EXPECT_NEAR(forward_cost(model, tokens(4096)).total() / forward, 1, 1e-14) << name;
    EXPECT_NEAR(train_cost(model, tokens(4096)).total() / train, 1, 1e-14) << name;
    EXPECT_NEAR(train / forward, 3, 1e-14) << name;
  }
}

TEST(Cost, the_order_of_execution_names_each_layer_as_often_as_it_is_executed) {
  for (const std::string& name : kModels) {
    const Model model = model_of(name);
    std::vector<std::uint64_t> times(model.layers.size());
    for (const std::uint32_t index : model.order) ++times.at(index);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const bool text = model.layers[i].section == Section::kText;
      EXPECT_EQ(times[i], text ? model.layers[i].executed : 0) << name;
    }
  }
}

TEST(Cost, only_attention_grows_with_the_sequence) {
  for (const std::string& name : kModels) {
    const Model model = model_of(name);
    const Cost once = forward_cost(model, tokens(4096)), twice = forward_cost(model, tokens(8192));
    for (std::size_t i = 0; i < kPartCount; ++i) {
      const Part part = static_cast<Part>(i);
      if (part == Part::kAttentionCore || part == Part::kIndexer) {
        EXPECT_GE(twice.of(part), once.of(part)) << name;
      } else {
        EXPECT_EQ(twice.of(part), once.of(part)) << name << " " << part_name(part);
      }
    }
  }
}

TEST(Cost, two_flops_for_every_active_weight_and_the_cores) {
  for (const std::string& name : kModels) {
    const Model model = model_of(name);
    const Cost cost = forward_cost(model, tokens(4096));
    double cores = cost.of(Part::kAttentionCore) + cost.of(Part::kRecurrentCore) + cost.of(Part::kScan) + cost.of(Part::kConvolution);
    for (const Layer& layer : model.layers) {
      if (layer.attention && layer.attention->index_heads > 0) {
        const AttentionCore& a = *layer.attention;
        cores += static_cast<double>(layer.section == Section::kText ? layer.executed : 0) * 2 * static_cast<double>(a.index_heads * a.index_dim) * 2048.5;
      }
    }
    EXPECT_NEAR(cost.total(), 2 * static_cast<double>(matmul_weights_active(model)) + cores, 1) << name;
  }
}

TEST(Cost, recomputation_adds_a_forward_pass_of_the_blocks) {
  const Model model = model_of("meta-llama--Meta-Llama-3.1-8B");
  const Cost forward = forward_cost(model, tokens(8192)), train = train_cost(model, tokens(8192));
  const double full = executed_cost(model, tokens(8192), {Recompute::kFull, false}).total();
  EXPECT_DOUBLE_EQ(full, train.total() + forward.total() - forward.of(Part::kHead));
  EXPECT_NEAR(full / train.total(), 1.313, 1e-3);
  const double selective = executed_cost(model, tokens(8192), {Recompute::kSelective, false}).total();
  EXPECT_DOUBLE_EQ(selective, train.total() + forward.of(Part::kAttentionCore));
  const double rebuilt = executed_cost(model, tokens(8192), {Recompute::kNone, true}).total();
  EXPECT_DOUBLE_EQ(rebuilt, train.total() + forward.of(Part::kAttentionCore) / 2);
}

TEST(Cost, absorbed_latent_attention_takes_more_for_each_key) {
  const Model model = model_of("deepseek-ai--DeepSeek-V3");
  CountingRules decode;
  decode.causal = CausalRule::kFull;  // one query that sees all
  const double plain = forward_cost(model, tokens(1000), decode).of(Part::kAttentionCore);
  decode.absorb_latent_attention = true;
  const double absorbed = forward_cost(model, tokens(1000), decode).of(Part::kAttentionCore);
  EXPECT_EQ(plain, 61 * 81920.0 * 1000);
  EXPECT_EQ(absorbed, 61 * 278528.0 * 1000);
}

TEST(Cost, shared_weights_run_more_often_than_they_are_stored) {
  Model model;
  Layer layer = linear_layer(64, {1, 64});
  layer.executed = 9;
  model.layers.push_back(layer);
  EXPECT_EQ(count_parameters(model).total, 64U * 64 + 64);
  EXPECT_EQ(forward_cost(model, tokens(16)).total(), 9 * 2.0 * 64 * 64);
}

TEST(Cache, of_plain_grouped_latent_and_windowed_attention) {
  EXPECT_EQ(count_cache(model_of("meta-llama--Meta-Llama-3.1-8B")).elements_per_token * 2, 131072U);
  EXPECT_EQ(count_cache(model_of("deepseek-ai--DeepSeek-V3")).elements_per_token * 2, 61U * 1152);
  const Cache oss = count_cache(model_of("openai--gpt-oss-20b"));
  EXPECT_EQ(oss.elements_per_token, 2 * oss.elements_per_token_growing);
  const Cache nemotron = count_cache(model_of("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8"));
  EXPECT_EQ(nemotron.elements_per_token, 8U * 2 * 2 * 128);
  EXPECT_EQ(nemotron.state_elements_per_sequence, 40U * (8192 * 128 + 3 * (8192 + 2 * 8 * 128)));
}

}  // namespace
}  // namespace flopsight::flops
