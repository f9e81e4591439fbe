#include <array>
#include <utility>

#include "nvml/loaded_internal.h"

namespace flopsight::nvml {
namespace {

using catalog::Metric;

struct GpmMetric {
  abi::GpmId id;
  Metric metric;
  double scale;
};

constexpr double kPercent = 0.01;
constexpr double kMebibyte = 1048576.0;

constexpr std::array<GpmMetric, 12> kMeans = {{
    {abi::kGpmGraphicsUtil, Metric::kGraphicsEngineActive, kPercent},
    {abi::kGpmSmUtil, Metric::kSmActive, kPercent},
    {abi::kGpmSmOccupancy, Metric::kSmOccupancy, kPercent},
    {abi::kGpmAnyTensorUtil, Metric::kTensorActive, kPercent},
    {abi::kGpmDramUtil, Metric::kDramActive, kPercent},
    {abi::kGpmFp64Util, Metric::kFp64Active, kPercent},
    {abi::kGpmFp32Util, Metric::kFp32Active, kPercent},
    {abi::kGpmFp16Util, Metric::kFp16Active, kPercent},
    {abi::kGpmPcieTx, Metric::kPcieTx, kMebibyte},
    {abi::kGpmPcieRx, Metric::kPcieRx, kMebibyte},
    {abi::kGpmNvlinkTx, Metric::kNvlinkTx, kMebibyte},
    {abi::kGpmNvlinkRx, Metric::kNvlinkRx, kMebibyte},
}};

constexpr std::array<GpmMetric, 3> kTotals = {{
    {abi::kGpmSmCyclesElapsed, Metric::kSmCyclesElapsed, 1},
    {abi::kGpmSmCyclesActive, Metric::kSmCyclesActive, 1},
    {abi::kGpmMmaCyclesActive, Metric::kMmaCyclesActive, 1},
}};
static_assert(kMeans.size() <= abi::kGpmRequestMax);

}  // namespace

GpmSample& GpmSample::operator=(GpmSample&& other) noexcept {
  std::swap(functions_, other.functions_);
  std::swap(sample_, other.sample_);
  std::swap(absence_, other.absence_);
  return *this;
}

GpmSample::~GpmSample() {
  if (sample_ != nullptr) call(functions_->nvmlGpmSampleFree, sample_);
}

GpmSample Session::take_sample(const Device& device) {
  GpmSample sample;
  retake(device, nullptr, sample);
  return sample;
}

GpmSample Session::take_sample(const Device& device, const Instance& instance) {
  GpmSample sample;
  retake(device, &instance, sample);
  return sample;
}

void Session::retake(const Device& device, const Instance* instance, GpmSample& sample) {
  const Functions& f = loaded_->functions;
  if (!device.gpm()) {
    sample = GpmSample(*device.gpm_absence);
    return;
  }
  if (!sample.present()) {
    abi::GpmSample allocated = nullptr;
    if (const int code = noted(call(f.nvmlGpmSampleAlloc, &allocated)); code != abi::kSuccess) {
      sample = GpmSample(absence_of(code));
      return;
    }
    sample = GpmSample(&f, allocated);
  }
  const int code = noted(instance == nullptr ? call(f.nvmlGpmSampleGet, device.handle, sample.sample_)
                                             : call(f.nvmlGpmMigSampleGet, device.handle, instance->gpu_instance, sample.sample_));
  if (code != abi::kSuccess) sample = GpmSample(absence_of(code));
}

void Session::add_activity(const GpmSample& before, const GpmSample& after, Values& values) {
  if (!before.present() || !after.present()) {
    const Absence absence = after.present() ? before.absence() : after.absence();
    for (const GpmMetric& metric : kMeans) values[metric.metric] = absence;
    for (const GpmMetric& metric : kTotals) values[metric.metric] = absence;
    return;
  }
  add_metrics(before, after, false, values);
  // Apart, because drivers before CUDA 13.2 do not know these ids, and may refuse the whole call for that.
  add_metrics(before, after, true, values);
}

void Session::add_metrics(const GpmSample& before, const GpmSample& after, bool totals, Values& values) {
  const GpmMetric* const metrics = totals ? kTotals.data() : kMeans.data();
  const std::size_t count = totals ? kTotals.size() : kMeans.size();
  abi::GpmMetricsGet request{};
  request.version = 1;
  request.metric_count = static_cast<std::uint32_t>(count);
  request.before = before.sample_;
  request.after = after.sample_;
  for (std::size_t i = 0; i < count; ++i) {
    request.metrics[i].id = metrics[i].id;
    // So that one that the driver leaves alone is not taken for 0.
    request.metrics[i].result = abi::kNoData;
  }
  int code = abi::kNotSupported;
  if (!totals || !totals_missing_) code = noted(call(loaded_->functions.nvmlGpmMetricsGet, &request));
  if (totals && code == abi::kInvalidArgument) totals_missing_ = true;
  for (std::size_t i = 0; i < count; ++i) {
    const GpmMetric& metric = metrics[i];
    const int result = code == abi::kSuccess ? request.metrics[i].result : code;
    values[metric.metric] = result == abi::kSuccess ? judged(metric.metric, metric.scale, request.metrics[i].value) : Value(absence_of(result));
  }
}

}  // namespace flopsight::nvml
