#include "validate/exporter_counters.h"

#include "jobs/label_rules.h"
#include "sources/exposition_source.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using catalog::Metric;

}  // namespace

base::Result<std::unique_ptr<ExporterCounters>> ExporterCounters::open(Settings settings) {
  FLOPSIGHT_ASSIGN_OR_RETURN(net::HttpClient http, net::HttpClient::create(settings.http));
  std::unique_ptr<ExporterCounters> out(new ExporterCounters(std::move(settings), std::move(http)));
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto reading, out->fetch());
  static_cast<void>(reading);  // that it can be had
  return out;
}

base::Result<std::optional<ExporterCounters::Reading>> ExporterCounters::fetch() {
  const std::string place = net::url_without_credentials(settings_.url);
  net::HttpRequest request;
  request.url = settings_.url;
  request.keep_encoding = true;
  FLOPSIGHT_ASSIGN_OR_RETURN(net::HttpResponse response, http_.send(request));
  const jobs::LabelRules rules = jobs::LabelRules::builtin();
  jobs::HolderTable holders;
  samples::QualityLog quality;
  sources::Collector collector(rules, holders, quality);
  FLOPSIGHT_RETURN_IF_ERROR(sources::collect_scrape({place, response.content_type, std::move(response.body), 0}, collector, quality));
  for (const samples::GpuTimeline& timeline : collector.take()) {
    if (samples::normalized_uuid(timeline.gpu.uuid) != samples::normalized_uuid(settings_.uuid) || timeline.scrapes.empty()) continue;
    if (!timeline.gpu.driver_version.empty()) driver_version_ = timeline.gpu.driver_version;
    const samples::GpuScrape& scrape = timeline.scrapes.back();
    const samples::Reading &tensor = scrape.reading(Metric::kTensorActive), &clock = scrape.reading(Metric::kSmClock);
    if (!scrape.saw(Metric::kTensorActive) || !scrape.saw(Metric::kSmClock)) {
      return Error{ErrorCode::kInvalid, place + ": has no " + (scrape.saw(Metric::kTensorActive) ? "SM clock (DCGM_FI_DEV_SM_CLOCK)" : "tensor activity (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE)") +
                                            " of " + settings_.uuid};
    }
    if (!tensor.present() || !clock.present()) return std::optional<Reading>();
    return std::optional(Reading{tensor.value(), clock.value()});
  }
  return Error{ErrorCode::kInvalid, place + ": has no GPU " + settings_.uuid + ", on which the products run"};
}

base::Status ExporterCounters::start() {
  sums_ = {};
  started_seconds_ = settings_.now_seconds();
  next_seconds_ = started_seconds_ + 2 * settings_.interval.value;
  return {};
}

base::Status ExporterCounters::poll() {
  const double now = settings_.now_seconds();
  if (now < next_seconds_) return {};
  next_seconds_ = now + settings_.interval.value;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<Reading> reading, fetch());
  if (!reading) return {};
  sums_.add(reading->tensor_active_ratio, reading->sm_clock_hertz);
  return {};
}

base::Result<validation::Counted> ExporterCounters::stop() { return sums_.mean(); }

}  // namespace flopsight::app
