#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/file.h"
#include "base/text.h"
#include "import/import_sources.h"
#include "wire/exposition.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

using base::Status;

constexpr std::size_t kFileBytesMax = std::size_t{4} << 30;
constexpr std::int64_t kStretchMilliseconds = 3'600'000;

}  // namespace

class ImportFiles::Sink : public wire::ExpositionSink {
 public:
  explicit Sink(ImportFiles& files) : files_(files) {}

  void sample(const wire::ExpositionSample& sample) override {
    ++samples;
    if (!sample.timestamp_milliseconds) {
      ++files_.untimed_;
      return;
    }
    ++timed;
    key_ = std::string(sample.metric) + '\0' + std::to_string(sample.labels->id);
    const auto [at, is_new] = index_.emplace(key_, files_.series_.size());
    if (is_new || !sample.labels->kept()) {
      at->second = files_.series_.size();
      wire::ApiSeries& series = files_.series_.emplace_back();
      series.labels.emplace_back("__name__", sample.metric);
      for (const wire::Label& label : sample.labels->labels) series.labels.emplace_back(label.name, label.value);
    }
    files_.series_[at->second].points.push_back({*sample.timestamp_milliseconds, sample.value});
  }
  void malformed(const wire::ExpositionError& error) override {
    ++files_.malformed_;
    if (first_error.empty()) {
      first_error = std::to_string(error.line) + ":" + std::to_string(error.column) + ": expected " + error.expected;
    }
  }

  std::uint64_t samples = 0;
  std::uint64_t timed = 0;
  std::string first_error;

 private:
  ImportFiles& files_;
  std::string key_;
  std::unordered_map<std::string, std::size_t> index_;
};

Status ImportFiles::read_exposition(const std::string& path, std::string_view text) {
  wire::ExpositionParser::Options options;
  options.format = wire::exposition_format("", text);
  wire::ExpositionParser parser(options);
  Sink sink(*this);
  parser.parse(text, sink);
  if (sink.samples == 0 && !sink.first_error.empty()) {
    return base::Error{base::ErrorCode::kInvalid, path + ":" + sink.first_error};
  }
  if (sink.samples > 0 && sink.timed == 0) {
    return base::Error{base::ErrorCode::kInvalid,
                       path + ": no sample has a time, so it has no place in history; `flopsight report --file` reads it"};
  }
  return {};
}

Status ImportFiles::read_export(const std::string& path, std::string_view text) {
  for (std::uint64_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = base::trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty()) continue;
    auto series = wire::parse_export_line(one);
    if (!series.ok()) return series.error().within(path + ":" + std::to_string(line));
    series_.push_back(std::move(series).value());
  }
  return {};
}

Status ImportFiles::read(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::string bytes, base::read_file(path, kFileBytesMax));
    if (wire::looks_like_gzip(bytes)) {
      auto inflated = wire::gunzip(bytes, kFileBytesMax);
      if (!inflated.ok()) return inflated.error().within(path);
      bytes = std::move(inflated).value();
    }
    // Prometheus' quoted form of names also begins with a brace.
    const bool is_export = base::trim(std::string_view(bytes).substr(0, 100)).starts_with("{\"metric\":");
    const std::size_t before = series_.size();
    FLOPSIGHT_RETURN_IF_ERROR(is_export ? read_export(path, bytes) : read_exposition(path, bytes));
    const bool any = std::any_of(series_.begin() + static_cast<std::ptrdiff_t>(before), series_.end(),
                                 [](const wire::ApiSeries& series) { return !series.points.empty(); });
    if (!any) return base::Error{base::ErrorCode::kInvalid, path + ": no samples"};
  }
  const auto earlier = [](const wire::ApiPoint& a, const wire::ApiPoint& b) { return a.unix_milliseconds < b.unix_milliseconds; };
  std::erase_if(series_, [](const wire::ApiSeries& series) { return series.points.empty(); });
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for (wire::ApiSeries& series : series_) {
    std::stable_sort(series.points.begin(), series.points.end(), earlier);
    first = std::min(first, series.points.front().unix_milliseconds);
    last = std::max(last, series.points.back().unix_milliseconds);
  }
  window_ = {{first}, {last + 1}};
  return {};
}

Status ImportFiles::feed(const ImportContext& c, units::Window window) {
  std::vector<std::size_t> at(series_.size(), 0);  // next point of each
  const auto skip_to = [&](std::size_t i, std::int64_t time) {
    const auto& points = series_[i].points;
    while (at[i] < points.size() && points[at[i]].unix_milliseconds < time) ++at[i];
  };
  for (std::size_t i = 0; i < series_.size(); ++i) skip_to(i, window.start.unix_milliseconds);
  for (;;) {
    std::int64_t start = window.end.unix_milliseconds;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      if (at[i] < series_[i].points.size()) start = std::min(start, series_[i].points[at[i]].unix_milliseconds);
    }
    if (start >= window.end.unix_milliseconds) return {};
    start = start / kStretchMilliseconds * kStretchMilliseconds;
    const std::int64_t end = std::min(start + kStretchMilliseconds, window.end.unix_milliseconds);
    std::vector<FeedSeries> feed;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const std::size_t first = at[i];
      skip_to(i, end);
      if (at[i] > first) feed.push_back({&series_[i].labels, std::span(series_[i].points).subspan(first, at[i] - first)});
    }
    c.bar.show("at " + units::to_rfc3339({start}), static_cast<std::size_t>(start - window.start.unix_milliseconds < 0 ? 0 : start - window.start.unix_milliseconds),
               static_cast<std::size_t>(window.end.unix_milliseconds - window.start.unix_milliseconds));
    FLOPSIGHT_RETURN_IF_ERROR(c.feed.feed(std::move(feed), window));
    FLOPSIGHT_RETURN_IF_ERROR(c.feed.close_some());
  }
}

}  // namespace flopsight::app
