#include "engine/remote_writer.h"

#include "base/text.h"
#include "wire/snappy.h"

namespace flopsight::engine {
namespace {

// Requests that one call may spend on finding what is rejected; beyond, what is left of a failing message is given up whole.
constexpr int kSearchRequestsMax = 200;
constexpr std::size_t kReasonBytesMax = 300;

std::size_t sample_count(std::span<const Series> series) {
  std::size_t count = 0;
  for (const Series& one : series) count += one.samples.size();
  return count;
}

std::string body_of(std::span<const Series> series) {
  std::vector<wire::RemoteWriteSeriesOut> out;
  out.reserve(series.size());
  for (const Series& one : series) {
    wire::RemoteWriteSeriesOut& to = out.emplace_back();
    to.labels.reserve(one.labels.size());
    for (const auto& [name, value] : one.labels) to.labels.push_back({name, value});
    to.samples = one.samples;
  }
  return wire::snappy_compress(wire::encode_remote_write(wire::RemoteWriteVersion::kV1, out));
}

bool is_rejection(int status) { return status == 400 || status == 409 || status == 413 || status == 422; }

}  // namespace

RemoteWriter::RemoteWriter(std::string url, net::HttpClient http) : url_(std::move(url)), http_(std::move(http)) {}

base::Result<RemoteWriter> RemoteWriter::create(const std::string& url, net::HttpOptions options) {
  // The outbox is what tries again.
  options.retries = 0;
  options.parallel_max = 1;
  FLOPSIGHT_ASSIGN_OR_RETURN(net::HttpClient http, net::HttpClient::create(std::move(options)));
  return RemoteWriter(url, std::move(http));
}

base::Result<Delivered> RemoteWriter::send(std::span<const Series> series) {
  Delivered delivered;
  int requests_left = kSearchRequestsMax;
  while (!series.empty()) {
    std::size_t count = 0;
    for (std::size_t samples = 0; count < series.size(); ++count) {
      samples += series[count].samples.size();
      if (count > 0 && samples > samples_max) break;
    }
    FLOPSIGHT_RETURN_IF_ERROR(send_part(series.first(count), delivered, requests_left));
    series = series.subspan(count);
  }
  return delivered;
}

base::Status RemoteWriter::send_part(std::span<const Series> series, Delivered& delivered, int& requests_left) {
  net::HttpRequest request;
  request.url = url_;
  request.body = body_of(series);
  request.content_type = "application/x-protobuf";
  request.headers = {{"Content-Encoding", "snappy"}, {"X-Prometheus-Remote-Write-Version", "0.1.0"}};
  request.any_status = true;
  const auto response = http_.send(request);
  if (!response.ok()) return base::Error{base::ErrorCode::kUnavailable, response.error().message};
  if (response->status >= 200 && response->status < 300) {
    delivered.samples += sample_count(series);
    return {};
  }
  const std::string said = response->status_line + ": " + base::printable(base::trim(response->body), kReasonBytesMax);
  if (!is_rejection(response->status)) {
    return base::Error{base::ErrorCode::kUnavailable, net::url_without_credentials(url_) + ": HTTP " + said};
  }
  if (series.size() == 1 || requests_left < 2) {
    delivered.rejected += sample_count(series);
    if (delivered.rejection.empty()) {
      delivered.rejection = base::printable(text_of(series.front()), kReasonBytesMax) +
                            (series.size() > 1 ? " and others" : "") + ": HTTP " + said;
    }
    return {};
  }
  requests_left -= 2;
  const std::size_t half = series.size() / 2;
  FLOPSIGHT_RETURN_IF_ERROR(send_part(series.first(half), delivered, requests_left));
  return send_part(series.subspan(half), delivered, requests_left);
}

}  // namespace flopsight::engine
