#include "validate/nvml_counters.h"

#include "samples/gpu.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using catalog::Metric;

constexpr const char* kElse = "; --exporter URL takes the counters from a dcgm-exporter";

}  // namespace

base::Result<std::unique_ptr<NvmlCounters>> NvmlCounters::open(Settings settings) {
  auto session = nvml::Session::open(settings.library_path);
  if (!session.ok()) return Error{ErrorCode::kUnsupported, session.error().message + kElse};
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<nvml::Device> devices, (*session)->devices());
  for (nvml::Device& device : devices) {
    if (samples::normalized_uuid(device.uuid) != samples::normalized_uuid(settings.uuid)) continue;
    if (device.mig) return Error{ErrorCode::kUnsupported, settings.uuid + " is divided into MIG instances: products of one do not have the GPU's counters"};
    if (!device.gpm()) {
      return Error{ErrorCode::kUnsupported, "NVML has no tensor activity of " + settings.uuid + ": " + std::string(nvml::absence_meaning(*device.gpm_absence)) + kElse};
    }
    return std::unique_ptr<NvmlCounters>(new NvmlCounters(std::move(settings), std::move(session).value(), std::move(device)));
  }
  return Error{ErrorCode::kUnsupported, "NVML lists no GPU " + settings.uuid + ", on which the products run" + kElse};
}

base::Status NvmlCounters::start() {
  sums_ = {};
  before_ = session_->take_sample(device_);
  next_seconds_ = settings_.now_seconds() + settings_.interval.value;
  return {};
}

base::Status NvmlCounters::poll() {
  const double now = settings_.now_seconds();
  if (now < next_seconds_) return {};
  next_seconds_ = now + settings_.interval.value;
  nvml::GpmSample after = session_->take_sample(device_);
  nvml::Values values = session_->read(device_);
  session_->add_activity(before_, after, values);
  before_ = std::move(after);
  const nvml::Value &tensor = values[Metric::kTensorActive], &clock = values[Metric::kSmClock];
  for (const nvml::Value* value : {&tensor, &clock}) {
    if (!value->present() && value->absence() != nvml::Absence::kNotYetSampled && value->absence() != nvml::Absence::kNoData) {
      return Error{ErrorCode::kUnavailable, "NVML, while a product ran: " + std::string(nvml::absence_meaning(value->absence()))};
    }
  }
  if (tensor.present() && clock.present()) sums_.add(tensor.number(), clock.number());
  return {};
}

}  // namespace flopsight::app
