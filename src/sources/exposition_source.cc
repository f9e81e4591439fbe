#include "sources/exposition_source.h"

#include <vector>

#include "base/text.h"
#include "wire/exposition.h"
#include "wire/gzip.h"

namespace flopsight::sources {
namespace {

class Sink : public wire::ExpositionSink {
 public:
  Sink(const ScrapeText& scrape, Collector& collector, samples::QualityLog& quality)
      : scrape_(scrape), collector_(collector), quality_(quality) {}

  void sample(const wire::ExpositionSample& sample) override {
    if (jobs::OwnerTable::wants(sample.metric)) {
      labels_.clear();
      for (const wire::Label& label : sample.labels->labels) labels_.push_back({label.name, label.value});
      collector_.owners().learn(sample.metric, labels_, sample.value);
      return;
    }
    const Collector::BindingId binding = binding_of(*sample.labels);
    const bool timed = sample.timestamp_milliseconds.has_value();
    collector_.add(binding, sample.metric,
                   units::Instant{timed ? *sample.timestamp_milliseconds : scrape_.ordinal}, timed,
                   sample.value);
  }

  void malformed(const wire::ExpositionError& error) override {
    quality_.add("malformed_line", base::printable(scrape_.place) + ":" + std::to_string(error.line) +
                                       ":" + std::to_string(error.column) + ": expected " +
                                       error.expected);
  }

 private:
  Collector::BindingId bind(const wire::LabelSet& set) {
    labels_.clear();
    for (const wire::Label& label : set.labels) labels_.push_back({label.name, label.value});
    return collector_.bind(labels_, scrape_.place);
  }
  Collector::BindingId binding_of(const wire::LabelSet& set) {
    if (!set.kept()) return bind(set);
    if (set.id >= bindings_.size()) bindings_.resize(set.id + 1, kUnbound);
    if (bindings_[set.id] == kUnbound) bindings_[set.id] = bind(set);
    return bindings_[set.id];
  }

  static constexpr Collector::BindingId kUnbound = ~Collector::BindingId{0};
  const ScrapeText& scrape_;
  Collector& collector_;
  samples::QualityLog& quality_;
  std::vector<Collector::BindingId> bindings_;  // by label set
  std::vector<jobs::LabelView> labels_;
};

}  // namespace

base::Status collect_scrape(const ScrapeText& scrape, Collector& collector,
                            samples::QualityLog& quality) {
  std::string inflated;
  std::string_view text = scrape.bytes;
  if (wire::looks_like_gzip(text)) {
    auto bytes = wire::gunzip(text, kScrapeBytesMax);
    if (!bytes.ok()) return bytes.error().within(scrape.place);
    inflated = std::move(bytes).value();
    text = inflated;
  }
  wire::ExpositionParser::Options options;
  options.format = wire::exposition_format(scrape.content_type, text);
  wire::ExpositionParser parser(options);
  Sink sink(scrape, collector, quality);
  const wire::ExpositionTotals totals = parser.parse(text, sink);
  if (totals.samples == 0 && totals.malformed > 0) {
    return base::Error{base::ErrorCode::kInvalid,
                       scrape.place + ":1: expected Prometheus text or OpenMetrics, found " +
                           std::to_string(totals.malformed) + " lines of something else"};
  }
  if (totals.samples == 0) quality.add("empty_scrape", base::printable(scrape.place));
  return {};
}

}  // namespace flopsight::sources
