// Scrapes to timelines: the input, cut at form feeds, is read as so many scrapes of one collector. Whatever they
// say, each GPU has one timeline that ascends in time, whose readings are within their physical range and
// whose holders exist.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "sources/exposition_source.h"

namespace {

using flopsight::samples::GpuScrape;
using flopsight::samples::GpuTimeline;
namespace catalog = flopsight::catalog;

void check_scrape(const GpuScrape& scrape, std::size_t holder_count) {
  for (std::size_t m = 0; m < catalog::kMetricCount; ++m) {
    const auto& info = catalog::metrics()[m];
    const auto& reading = scrape.reading(info.metric);
    if (!reading.present() || info.kind == catalog::MetricKind::kLabel) continue;
    FLOPSIGHT_CHECK(reading.value() >= info.value_min);
    // The parts of a shared GPU add up, so only the device's own value is bounded.
    if (info.metric != catalog::Metric::kGpuUtil) FLOPSIGHT_CHECK(reading.value() <= info.value_max);
  }
  std::set<std::uint32_t> distinct;
  for (const auto id : scrape.holders) {
    FLOPSIGHT_CHECK(id < holder_count);
    FLOPSIGHT_CHECK(distinct.insert(id).second);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  flopsight::jobs::HolderTable holders;
  flopsight::samples::QualityLog quality;
  flopsight::sources::Collector collector(flopsight::jobs::LabelRules::builtin(), holders, quality);
  std::int64_t ordinal = 0;
  while (ordinal < 8) {
    const std::string_view one = text.substr(0, text.find('\f'));
    const auto status = flopsight::sources::collect_scrape(
        {ordinal % 2 == 0 ? "a.prom" : "b.prom", "", std::string(one), ordinal}, collector, quality);
    if (!status.ok()) FLOPSIGHT_CHECK(status.error().message.find('\n') == std::string::npos);
    ++ordinal;
    if (one.size() == text.size()) break;
    text.remove_prefix(one.size() + 1);
  }
  std::set<std::pair<std::string, std::string>> identities;
  for (const GpuTimeline& timeline : collector.take()) {
    FLOPSIGHT_CHECK(!timeline.scrapes.empty());
    for (std::size_t i = 0; i < timeline.scrapes.size(); ++i) {
      if (i > 0) FLOPSIGHT_CHECK(timeline.scrapes[i - 1].time < timeline.scrapes[i].time);
      check_scrape(timeline.scrapes[i], holders.size());
    }
    if (!timeline.gpu.uuid.empty()) {
      FLOPSIGHT_CHECK(identities
                          .insert({flopsight::samples::normalized_uuid(timeline.gpu.uuid),
                                   timeline.gpu.mig_instance})
                          .second);
    }
  }
  for (const auto& entry : quality.entries()) FLOPSIGHT_CHECK(entry.count > 0 && !entry.meaning.empty());
  return 0;
}
