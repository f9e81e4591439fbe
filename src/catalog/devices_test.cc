#include "catalog/devices.h"

#include <gtest/gtest.h>

namespace flopsight::catalog {
namespace {

std::string model_of(std::string_view name) {
  const Device* device = DeviceCatalog::builtin().find(name);
  return device == nullptr ? "unknown" : device->model;
}

TEST(Devices, names_as_exporters_print_them_find_their_model) {
  EXPECT_EQ(model_of("NVIDIA H100 80GB HBM3"), "H100-SXM5-80GB");
  EXPECT_EQ(model_of("NVIDIA-H100-80GB-HBM3"), "H100-SXM5-80GB");
  EXPECT_EQ(model_of("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), "H100-SXM5-80GB");
  EXPECT_EQ(model_of("NVIDIA H100 NVL"), "H100-NVL-94GB");
  EXPECT_EQ(model_of("NVIDIA H100 PCIe"), "H100-PCIe-80GB");
  EXPECT_EQ(model_of("NVIDIA H200"), "H200-SXM-141GB");
  EXPECT_EQ(model_of("NVIDIA H200 NVL"), "H200-NVL-141GB");
  EXPECT_EQ(model_of("NVIDIA A100-SXM4-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(model_of("NVIDIA A100-SXM4-80GB"), "A100-SXM4-80GB");
  EXPECT_EQ(model_of("A100-PCIE-40GB"), "A100-PCIe-40GB");
  EXPECT_EQ(model_of("NVIDIA A100 80GB PCIe"), "A100-PCIe-80GB");
  EXPECT_EQ(model_of("NVIDIA A800-SXM4-80GB"), "A800-SXM4-80GB");
  EXPECT_EQ(model_of("Tesla V100-SXM2-32GB"), "V100-SXM2");
  EXPECT_EQ(model_of("Tesla T4"), "T4");
  EXPECT_EQ(model_of("NVIDIA L4"), "L4");
  EXPECT_EQ(model_of("NVIDIA L40S"), "L40S");
  EXPECT_EQ(model_of("NVIDIA RTX 6000 Ada Generation"), "RTX 6000 Ada");
  EXPECT_EQ(model_of("NVIDIA GH200 480GB"), "GH200-96GB");
}

TEST(Devices, a_name_that_contains_another_is_not_that_other) {
  EXPECT_EQ(model_of("NVIDIA GB200"), "GB200");
  EXPECT_EQ(model_of("NVIDIA B200"), "B200-SXM");
  EXPECT_EQ(model_of("NVIDIA GB300"), "GB300");
  EXPECT_EQ(model_of("NVIDIA A10"), "A10");
  EXPECT_EQ(model_of("NVIDIA A10G"), "A10G");
  EXPECT_EQ(model_of("NVIDIA L40"), "L40");
}

TEST(Devices, unknown_names_have_no_entry) {
  for (const char* name :
       {"", "NVIDIA", "GRID A100-10C", "NVIDIA H100", "NVIDIA A100-PG509-200", "NVIDIA H100 64GB HBM3",
        "AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2", "NVIDIA GeForce RTX 4090", "NVIDIA B2000",
        "Tesla V100-SXM3-32GB", "NVIDIA H100 80GB HBM3 Prototype"}) {
    EXPECT_EQ(model_of(name), "unknown") << name;
  }
}

TEST(Devices, every_model_finds_itself_and_no_two_rows_share_a_name) {
  for (const Device& device : DeviceCatalog::builtin().devices()) {
    EXPECT_EQ(model_of(device.model), device.model);
    EXPECT_EQ(model_of("NVIDIA " + device.model), device.model);
    EXPECT_FALSE(device.source.empty()) << device.model;
  }
  EXPECT_EQ(DeviceCatalog::builtin().devices().size(), 34U);
}

TEST(Devices, h100_sxm_is_judged_at_1830_not_1980_megahertz) {
  const Device* h100 = DeviceCatalog::builtin().find("NVIDIA H100 80GB HBM3");
  ASSERT_NE(h100, nullptr);
  EXPECT_EQ(h100->tensor_peak_clock, units::megahertz(1830));
  EXPECT_EQ(h100->nvml_max_sm_clock, units::megahertz(1980));
  EXPECT_EQ(h100->peak(Precision::kBf16), units::FlopsPerSecond(989.4e12));
  EXPECT_EQ(h100->peak(Precision::kFp4), std::nullopt);
  EXPECT_EQ(h100->mig_slices(), 7);
}

TEST(Devices, tensor_peaks_are_sm_count_times_rate_times_tensor_clock) {
  // Rates: FLOP per clock and SM for dense FP16, NVIDIA H100 whitepaper and cudnn-frontend benchmarks.
  const struct { const char* model; double rate; } cases[] = {
      {"A100-SXM4-80GB", 2048}, {"H100-SXM5-80GB", 4096}, {"B200-SXM", 8192}, {"GB200", 8192}};
  for (const auto& c : cases) {
    const Device* d = DeviceCatalog::builtin().find(c.model);
    ASSERT_NE(d, nullptr);
    const double computed = *d->sm_count * c.rate * d->tensor_peak_clock->value;
    // The datasheets print three or four digits.
    EXPECT_NEAR(computed / d->peak(Precision::kFp16)->value, 1.0, 0.002) << c.model;
  }
}

TEST(Devices, a_user_row_adds_a_model_or_replaces_one) {
  const auto catalog = DeviceCatalog::with_user_rows(
      "model,name_match,tensor_peak_clock_mhz\nMyGPU,My GPU 9000,1500\nH100-SXM5-80GB,,1755\n");
  ASSERT_TRUE(catalog.ok()) << catalog.error().message;
  ASSERT_NE(catalog->find("NVIDIA My GPU 9000"), nullptr);
  EXPECT_EQ(catalog->find("My GPU 9000")->tensor_peak_clock, units::megahertz(1500));
  EXPECT_EQ(catalog->find("NVIDIA H100 80GB HBM3")->tensor_peak_clock, units::megahertz(1755));
  EXPECT_TRUE(catalog->find("NVIDIA H100 80GB HBM3")->from_user);
}

TEST(Devices, a_broken_user_row_names_line_and_column) {
  const auto catalog =
      DeviceCatalog::with_user_rows("model,tensor_peak_clock_mhz\nX,1500\nY,fast\n");
  ASSERT_FALSE(catalog.ok());
  EXPECT_EQ(catalog.error().message,
            "line 3, column tensor_peak_clock_mhz: \"fast\", expected a number above zero and below 1e7, or nothing");
  EXPECT_FALSE(DeviceCatalog::with_user_rows("name\nX\n").ok());
}

TEST(Devices, a_column_that_is_not_known_is_refused_with_the_nearest_one) {
  const auto mistake = [](const std::string& csv) { return DeviceCatalog::with_user_rows(csv).error().message; };
  EXPECT_NE(mistake("model,sm_cnt\nX,5\n").find("no column is called \"sm_cnt\"; the nearest is \"sm_count\""), std::string::npos) << mistake("model,sm_cnt\nX,5\n");
  EXPECT_NE(mistake("model,peak_dense_tflops_bf61\nX,5\n").find("\"peak_dense_tflops_bf16\""), std::string::npos);
  EXPECT_NE(mistake("model,memory_gb\nX,5\n").find("\"mem_gb\""), std::string::npos);
  EXPECT_EQ(mistake("model,a\x1b[31m\nX,5\n").find('\x1b'), std::string::npos);
}

TEST(Devices, a_name_says_which_of_a_models_memories_it_has) {
  const Device* v100 = DeviceCatalog::builtin().find("Tesla V100-SXM2-32GB");
  ASSERT_NE(v100, nullptr);
  EXPECT_EQ(v100->memory_gigabytes, (std::vector<int>{16, 32}));
  EXPECT_EQ(v100->as_named("Tesla V100-SXM2-32GB").memory_gigabytes, std::vector<int>{32});
  EXPECT_EQ(v100->as_named("Tesla V100-SXM2-16GB").memory_gigabytes, std::vector<int>{16});
  EXPECT_EQ(v100->as_named("V100-SXM2").memory_gigabytes, (std::vector<int>{16, 32}));
}

TEST(Precision, has_its_names_in_any_case_and_no_other) {
  EXPECT_EQ(find_precision("BF16"), Precision::kBf16);
  EXPECT_EQ(find_precision("bfloat16"), Precision::kBf16);
  EXPECT_EQ(find_precision("NVFP4"), Precision::kFp4);
  EXPECT_EQ(find_precision("fp64_tc"), Precision::kFp64Tensor);
  EXPECT_EQ(find_precision("fp8_mx"), Precision::kFp8);
  EXPECT_EQ(find_precision("bf"), std::nullopt);
  EXPECT_EQ(find_precision(""), std::nullopt);
}

TEST(DeviceCatalog, an_instance_is_no_whole_gpu) {
  const DeviceCatalog& catalog = DeviceCatalog::builtin();
  for (const char* name : {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100 80GB HBM3 MIG 9z.10gb", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "mig 1g.10gb"}) {
    EXPECT_EQ(catalog.find_whole(name), nullptr) << name;
    EXPECT_NE(catalog.not_found(name).find(": a MIG instance, which has a part of its GPU's peak and memory; expected a whole GPU"), std::string::npos) << catalog.not_found(name);
  }
  EXPECT_TRUE(catalog.not_found("NVIDIA H100 80GB HBM3 MIG 1g.10gb").ends_with("such as H100-SXM5-80GB"));
  EXPECT_EQ(catalog.find_whole("NVIDIA H100 80GB HBM3"), catalog.find("NVIDIA H100 80GB HBM3 MIG 1g.10gb"));
}

TEST(DeviceCatalog, a_name_that_several_boards_have_is_answered_with_their_names) {
  const DeviceCatalog& catalog = DeviceCatalog::builtin();
  const std::string several = catalog.not_found("H100");
  EXPECT_EQ(several.substr(0, 39), "H100: not in the catalogue, which has H");
  for (const Device& device : catalog.devices()) {
    const bool is_h100 = device.model.starts_with("H100");
    EXPECT_TRUE(!is_h100 || several.find(device.model) != std::string::npos) << several;
  }
  EXPECT_EQ(several.find("A100"), std::string::npos);
  EXPECT_EQ(several.find("H200"), std::string::npos);
  EXPECT_EQ(catalog.not_found("Z900"), "Z900: not in the catalogue (flopsight docs gpus lists it)");
  EXPECT_EQ(catalog.not_found("a\nb").find('\n'), std::string::npos);
}

}  // namespace
}  // namespace flopsight::catalog
