#pragma once
// What can be said of HttpOptions before any connection is made. Reads the TLS files, to name a missing one.

#include <chrono>
#include <optional>

#include "base/result.h"
#include "net/http_client.h"

namespace flopsight::net {

// Errors: as HttpClient::create.
base::Status check_options(const HttpOptions& options);

// How long to wait after `attempts` failed attempts: the back-off, doubled each time, or what the server
// asked for if that is longer; at most 30 s.
std::chrono::milliseconds retry_pause(const HttpOptions& options, int attempts,
                                      std::optional<std::chrono::seconds> retry_after);

}  // namespace flopsight::net
