#pragma once
// Series to an engine by remote write 1.0, and what the engine says of them.
//
// What may be accepted later (no connection, 5xx, 429, and also 401, 403 and 404, which a changed configuration heals) is kUnavailable:
// the caller sends the same again, which is harmless. What never will be (400, 409, 422: out of order, too old, over the
// engine's limits) is looked for by halves, so that the good series of a message arrive, and counted. 413 is sent in halves as well.
// Threads: one.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/series.h"
#include "net/http_client.h"

namespace flopsight::engine {

struct Delivered {
  std::uint64_t samples = 0;   // accepted
  std::uint64_t rejected = 0;  // samples that the engine will never take
  std::string rejection;       // the first one: series and what the engine said
};

class RemoteWriter {
 public:
  // `url` with the path, e.g. "http://vm:8428/api/v1/write".
  static base::Result<RemoteWriter> create(const std::string& url, net::HttpOptions options);

  // All of them, in messages of at most samples_max.
  base::Result<Delivered> send(std::span<const Series> series);

  std::size_t samples_max = 10'000;

 private:
  RemoteWriter(std::string url, net::HttpClient http);
  base::Status send_part(std::span<const Series> series, Delivered& delivered, int& requests_left);
  std::string url_;
  net::HttpClient http_;
};

}  // namespace flopsight::engine
