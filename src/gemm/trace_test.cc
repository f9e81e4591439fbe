#include "gemm/trace.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "gemm/test_traces.h"
#include "gemm/trace_events_internal.h"

namespace flopsight::gemm {
namespace {

using test::read_text;

std::uint64_t count(const TraceSummary& trace, KernelKind kind) { return trace.count[static_cast<std::size_t>(kind)]; }

// A trace of events, each given without its braces.
std::string trace_of(const std::vector<std::string>& events, const std::string& head = R"("deviceProperties": [{"name": "NVIDIA A100-SXM4-80GB", "numSms": 108}], )") {
  std::string text = "{" + head + "\"traceEvents\": [";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i > 0 ? ",\n{" : "{") + events[i] + "}";
  return text + "]}";
}
std::string op(const std::string& name, int ts, int dur, int id, const std::string& dims) {
  const std::string shape = dims.empty() ? "" : ", \"Input Dims\": " + dims;
  return R"("ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": 2, "ts": )" + std::to_string(ts) + ", \"dur\": " + std::to_string(dur) + ", \"args\": {\"External id\": " + std::to_string(id) + shape + "}";
}
std::string launch(int ts, int correlation) {
  return R"("ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": )" + std::to_string(ts) + ", \"dur\": 1, \"args\": {\"correlation\": " + std::to_string(correlation) + "}";
}
std::string kernel(const std::string& name, int correlation, int id, double dur, const std::string& grid) {
  const std::string blocks = grid.empty() ? "" : ", \"grid\": " + grid;
  return R"("ph": "X", "cat": "kernel", "name": ")" + name + "\", \"pid\": 0, \"tid\": 7, \"ts\": 1000, \"dur\": " + base::json::number_text(dur) + ", \"args\": {\"correlation\": " + std::to_string(correlation) + ", \"External id\": " + std::to_string(id) + blocks + "}";
}
constexpr const char* kAmpere = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn";

TEST(Trace, an_a100_training_step_with_shapes) {
  const auto trace = read_text(test::fixture_text(test::kFitted));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->gpu_name, "NVIDIA A100-PG509-200");
  EXPECT_EQ(trace->sm_count, 108);
  EXPECT_EQ(count(*trace, KernelKind::kTensorGemm), 1638u);
  EXPECT_EQ(count(*trace, KernelKind::kCommunication), 60u);
  EXPECT_EQ(trace->without_shape, 0u);
  EXPECT_NEAR(*trace->overhead_ratio(), 1.1849, 0.0001);
  // 1024 products of 647x30x96 in tiles of 64x64x32.
  const TraceProduct& worst = trace->products.front();
  EXPECT_EQ(worst.shape, (Shape{647, 30, 96, 1024}));
  EXPECT_EQ(worst.count, 12u);
  EXPECT_NEAR(worst.quantized.overhead_ratio(), 704.0 * 64 / (647 * 30), 1e-9);
  EXPECT_EQ(worst.quantized.ctas, 1024u * 11);
}

TEST(Trace, ids_of_operators_that_are_launches_are_joined_by_time) {
  const auto trace = read_text(test::fixture_text(test::kScored));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->gpu_name, "");
  EXPECT_FALSE(trace->sm_count);
  EXPECT_EQ(count(*trace, KernelKind::kTensorGemm), 308u);
  EXPECT_EQ(trace->without_shape, 0u);
  EXPECT_NEAR(*trace->overhead_ratio(), 1.3802, 0.0001);
  // Where grids tell the two ways apart, every tile lies with its first side along n.
  for (const TraceProduct& product : trace->products) EXPECT_EQ(product.tile.n, product.read.tile->m) << product.kernel;
  const auto with_gpu = read_text(test::fixture_text(test::kScored), catalog::DeviceCatalog::builtin().find("NVIDIA A100-SXM4-80GB"));
  ASSERT_TRUE(with_gpu.ok());
  EXPECT_EQ(with_gpu->sm_count, 108);
  EXPECT_TRUE(with_gpu->products.front().quantized.waves);
}

TEST(Trace, macro_tiles_of_amd) {
  const auto trace = read_text(test::fixture_text(test::kAmd));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->products.size(), 2u);
  EXPECT_EQ(trace->sm_count, 104);
  EXPECT_EQ(trace->products[0].shape, (Shape{5, 128, 128, 1}));
  EXPECT_EQ(trace->products[0].tile, (Tile{16, 64, 32}));
  EXPECT_NEAR(trace->products[0].quantized.overhead_ratio(), 3.2, 1e-12);
}

TEST(Trace, the_innermost_operator_says_the_shape) {
  const auto trace = read_text(trace_of({op("aten::linear", 10, 50, 4, "[[4, 30, 64], [96, 64], [96]]"), op("aten::addmm", 12, 40, 5, "[[96], [120, 64], [64, 96], [], []]"), launch(20, 77),
                                         kernel(kAmpere, 77, 77, 11.5, "[1, 2, 1]")}));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->products.size(), 1u);
  EXPECT_EQ(trace->products[0].shape, (Shape{120, 96, 64, 1}));
  EXPECT_EQ(trace->products[0].tile, (Tile{64, 128, 64}));
  EXPECT_NEAR(*trace->overhead_ratio(), 128.0 * 128 / (120 * 96), 1e-12);
}

TEST(Trace, after_an_inner_operator_the_outer_one_runs_on) {
  const auto trace = read_text(trace_of({op("aten::matmul", 10, 90, 4, "[[8, 64], [64, 32]]"), op("aten::mm", 20, 10, 5, "[[1, 2], [2, 3]]"), launch(50, 7), kernel(kAmpere, 7, 7, 1, "")}));
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->products.size(), 1u);
  EXPECT_EQ(trace->products[0].shape, (Shape{8, 32, 64, 1}));
}

TEST(Trace, external_ids_join_where_there_is_no_launch) {
  const auto trace = read_text(trace_of({kernel(kAmpere, 77, 5, 1, ""), kernel(kAmpere, 78, 78, 1, ""), op("aten::bmm", 12, 40, 5, "[[3, 120, 64], [3, 64, 96]]"), op("aten::mm", 112, 40, 78, "[[1, 2], [2, 3]]")}));
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->products.size(), 1u);
  EXPECT_EQ(trace->products[0].shape, (Shape{120, 96, 64, 3}));
  EXPECT_EQ(trace->without_shape, 1u);  // an id that is the correlation id says nothing of operators
}

TEST(Trace, several_kernels_of_one_operator_have_no_shape_each) {
  const auto trace = read_text(trace_of({op("aten::mm", 10, 50, 4, "[[64, 64], [64, 64]]"), launch(20, 7), launch(21, 8), kernel(kAmpere, 7, 7, 1, ""), kernel(kAmpere, 8, 8, 1, "")}));
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->products.empty());
  EXPECT_EQ(trace->several_of_one, 2u);
  EXPECT_FALSE(trace->overhead_ratio());
}

TEST(Trace, a_grid_tells_which_way_a_tile_lies_and_how_k_is_split) {
  const auto trace = read_text(trace_of({op("aten::mm", 10, 5, 1, "[[1024, 4096], [4096, 128]]"), launch(11, 7), kernel("cutlass_80_tensorop_f16_s16816gemm_f16_256x64_32x3_nn_align8", 7, 7, 30, "[4, 2, 6]"),
                                         op("aten::mm", 20, 5, 2, "[[1024, 4096], [4096, 128]]"), launch(21, 8), kernel("cutlass_80_tensorop_f16_s16816gemm_f16_256x64_32x3_nn_align8", 8, 8, 30, "[16, 1, 1]")}));
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->products.size(), 2u);
  const bool first = trace->products[0].splits == 6;
  EXPECT_EQ(trace->products[first ? 0 : 1].tile, (Tile{256, 64, 32}));
  EXPECT_EQ(trace->products[first ? 0 : 1].splits, 6u);
  EXPECT_EQ(trace->products[first ? 1 : 0].tile, (Tile{64, 256, 32}));
}

TEST(Trace, a_trace_without_shapes_counts_its_products) {
  const auto trace = read_text(trace_of({op("aten::mm", 10, 50, 4, ""), launch(20, 7), kernel(kAmpere, 7, 7, 2, ""), kernel("triton_mm_3", 8, 8, 5, ""), kernel("void flash_fwd_kernel<x>", 9, 9, 3, "")}));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->operators_without_shape, 1u);
  EXPECT_EQ(trace->without_shape, 1u);
  ASSERT_EQ(trace->unread.size(), 1u);
  EXPECT_EQ(trace->unread[0].kernel, "triton_mm_3");
  EXPECT_NEAR(trace->tensor_time().value, 5e-6, 1e-12);
  EXPECT_NEAR(trace->total().value, 10e-6, 1e-12);
}

TEST(Trace, a_launch_above_the_peak_is_noticed) {
  const auto trace = read_text(trace_of({op("aten::mm", 10, 50, 4, "[[8192, 8192], [8192, 8192]]"), launch(20, 7), kernel(kAmpere, 7, 7, 100, "")}));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->impossible, 1u);
  EXPECT_NE(trace->impossible_example.find("8192x8192x8192 in 100 us"), std::string::npos);
}

TEST(Trace, a_launch_above_the_peak_is_noticed_however_short_it_is) {
  const auto impossible = [](const std::string& dims, double microseconds) {
    return read_text(trace_of({op("aten::mm", 10, 50, 4, dims), launch(20, 7), kernel(kAmpere, 7, 7, microseconds, "")})).value().impossible;
  };
  EXPECT_EQ(impossible("[[8192, 8192], [8192, 8192]]", 1), 1u) << "1,100 GFLOPs in 1 us";
  EXPECT_EQ(impossible("[[8192, 8192], [8192, 8192]]", 0), 1u);
  EXPECT_EQ(impossible("[[1024, 1024], [1024, 1024]]", 4), 1u) << "358 TFLOP/s even in 6 us, above 312 and a tenth";
  EXPECT_EQ(impossible("[[1024, 1024], [1024, 1024]]", 5), 0u) << "537 TFLOP/s in 5 us may be 307 in 7: the clock's grain";
}

TEST(Trace, impossible_times_and_sizes_are_counted_as_malformed_and_are_no_zeros) {
  const auto trace = read_text(trace_of({op("aten::mm", 10, 50, 4, "[[4611686018427387904, 4096], [4096, 64]]"), op("aten::mm", 100, 50, 5, "[[-1, 4096], [4096, 64]]"),
                                         op("aten::mm", 200, 50, 6, "[[0, 64], [64, 64]]"), launch(20, 7), kernel(kAmpere, 7, 7, 11.5, ""), kernel(kAmpere, 8, 8, 1e300, ""), kernel(kAmpere, 9, 9, -5, "")}));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->malformed, 4u);
  EXPECT_EQ(trace->operators_with_unusable_shape, 3u) << "the empty tensor is well formed";
  EXPECT_NE(trace->malformed_example.find("aten::mm with a size"), std::string::npos) << trace->malformed_example;
  EXPECT_EQ(count(*trace, KernelKind::kTensorGemm), 1u);
  EXPECT_NEAR(trace->total().value, 11.5e-6, 1e-12);
  const auto none = read_text(trace_of({kernel(kAmpere, 8, 8, -1, "")}));
  EXPECT_NE(none.error().message.find("(1 malformed: ampere"), std::string::npos) << none.error().message;
}

TEST(Trace, a_number_beyond_a_double_costs_its_own_record) {
  std::string text = trace_of({op("aten::mm", 10, 50, 4, "[[64, 64], [64, 64]]"), launch(20, 7), kernel(kAmpere, 7, 7, 2, ""), kernel(kAmpere, 8, 8, 777, "")});
  text.replace(text.find("777"), 3, "1e999");
  const auto trace = read_text(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->malformed, 1u);
  EXPECT_EQ(count(*trace, KernelKind::kTensorGemm), 1u);
  EXPECT_NEAR(trace->total().value, 2e-6, 1e-12);
}

TEST(Trace, a_nan_in_an_argument_is_no_reason_to_refuse_the_trace) {
  std::string text = trace_of({op("aten::mm", 10, 50, 4, "[[64, 64], [64, 64]]"), launch(20, 7), kernel(kAmpere, 7, 7, 2, "")});
  text.replace(text.find("\"correlation\": 7, \"External"), 0, "\"est. achieved occupancy %\": NaN, \"warps\": -Infinity, ");
  for (const std::size_t piece : {1u, 7u, 100'000u}) {
    const auto trace = read_text(text, nullptr, piece);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace->products.size(), 1u);
  }
}

TEST(Trace, what_is_no_trace_is_one_line) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "empty"},
      {"{}", "no list traceEvents"},
      {R"({"traceEvents": {}})", "no list traceEvents"},
      {R"({"traceEvents": []})", "no kernel among 0 events"},
      {trace_of({op("aten::mm", 10, 50, 4, "")}), "no kernel among 1 events"},
      {R"({"traceEvents": [{"cat": "kernel")", "inside the list traceEvents"},
  };
  for (const auto& [text, said] : cases) {
    const auto trace = read_text(text, nullptr, 7);
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_NE(trace.error().message.find(said), std::string::npos) << trace.error().message;
    EXPECT_EQ(trace.error().message.find('\n'), std::string::npos);
  }
}

// Wherever a real trace is cut or a byte is changed, the answer is a figure or one line.
TEST(Trace, damaged_bytes_are_an_error_or_a_figure) {
  const std::string good = test::fixture_text(test::kAmd);
  for (std::size_t cut = 0; cut < good.size() - 3; cut += 997) EXPECT_FALSE(read_text(std::string_view(good).substr(0, cut)).ok()) << cut;
  for (std::size_t at = 1; at < good.size(); at += 1499) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    const auto trace = read_text(bad);
    EXPECT_GE(trace.ok() ? trace->overhead_ratio().value_or(1) : 1, 1.0);
    EXPECT_EQ(trace.ok() ? std::string::npos : trace.error().message.find('\n'), std::string::npos);
  }
}

TEST(Trace, sizes_of_inputs_are_read_by_operator) {
  const auto shape = [](const char* name, const char* dims) { return operator_shape(name, *base::json::parse(dims)); };
  EXPECT_EQ(shape("aten::mm", "[[2, 3], [3, 5]]"), (Shape{2, 5, 3, 1}));
  EXPECT_EQ(shape("aten::_scaled_mm", "[[2, 32], [32, 5], [], []]"), (Shape{2, 5, 32, 1}));
  EXPECT_EQ(shape("aten::baddbmm", "[[7, 2, 5], [7, 2, 3], [7, 3, 5]]"), (Shape{2, 5, 3, 7}));
  EXPECT_EQ(shape("aten::linear", "[[4, 2, 3], [5, 3], []]"), (Shape{8, 5, 3, 1}));
  EXPECT_EQ(shape("aten::matmul", "[[4, 2, 3], [3, 5]]"), (Shape{8, 5, 3, 1}));
  EXPECT_EQ(shape("aten::matmul", "[[4, 6, 2, 3], [4, 6, 3, 5]]"), (Shape{2, 5, 3, 24}));
  for (const char* dims : {"[[2, 3], [4, 5]]", "[[2, 3]]", "[[], []]", "[[2, 3], 5]", "{}", "[[2, 0], [0, 5]]", "[[2.5, 3], [3, 5]]", "[[-2, 3], [3, 5]]", "[[1e12, 3], [3, 5]]", "[[2, 3], [3]]"}) {
    EXPECT_FALSE(shape("aten::mm", dims)) << dims;
  }
  EXPECT_FALSE(shape("aten::matmul", "[[4, 2, 3], [5, 3, 6]]"));
  EXPECT_FALSE(shape("aten::add", "[[2, 3], [3, 5]]"));
}

}  // namespace
}  // namespace flopsight::gemm
