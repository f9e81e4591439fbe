#include "net/http_options.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/file.h"
#include "net/http_text.h"

namespace flopsight::net {
namespace {

constexpr std::size_t kTlsFileBytesMax = 16 * 1024 * 1024;  // a CA bundle is about 200 KB
constexpr std::chrono::milliseconds kPauseMax{30'000};      // promised in the header

base::Status check_pem(const std::optional<std::string>& path, std::string_view what) {
  if (!path) return {};
  auto bytes = base::read_file(*path, kTlsFileBytesMax);
  if (!bytes.ok()) return bytes.error().within(what);
  if (bytes->find("-----BEGIN ") == std::string::npos) {
    return base::Error{base::ErrorCode::kInvalid,
                       std::string(what) + ": " + *path + ": expected a PEM file (-----BEGIN ...)"};
  }
  return {};
}

}  // namespace

base::Status check_options(const HttpOptions& options) {
  const HttpTls& tls = options.tls;
  FLOPSIGHT_RETURN_IF_ERROR(check_pem(tls.ca_file, "TLS CA file"));
  FLOPSIGHT_RETURN_IF_ERROR(check_pem(tls.cert_file, "TLS certificate file"));
  FLOPSIGHT_RETURN_IF_ERROR(check_pem(tls.key_file, "TLS key file"));
  if (tls.key_file && !tls.cert_file) {
    return base::Error{base::ErrorCode::kInvalid, "a TLS key file without a TLS certificate file"};
  }
  FLOPSIGHT_RETURN_IF_ERROR(check_headers(options.auth.headers));
  if (options.auth.bearer_token) {
    const base::Status token = check_headers({{"Authorization", *options.auth.bearer_token}});
    if (!token.ok()) {
      return base::Error{base::ErrorCode::kInvalid,
                         "the bearer token has a line break or control character"};
    }
  }
  if (options.auth.bearer_token && options.auth.basic) {
    return base::Error{base::ErrorCode::kInvalid,
                       "both a bearer token and a user with a password, expected one of them"};
  }
  FLOPSIGHT_RETURN_IF_ERROR(check_headers({{"User-Agent", options.user_agent}}));
  return {};
}

std::chrono::milliseconds retry_pause(const HttpOptions& options, int attempts,
                                      std::optional<std::chrono::seconds> retry_after) {
  std::chrono::milliseconds pause = options.retry_backoff;
  for (int i = 1; i < attempts && pause < kPauseMax; ++i) pause *= 2;
  if (retry_after) pause = std::max<std::chrono::milliseconds>(pause, *retry_after);
  return std::min(pause, kPauseMax);
}

}  // namespace flopsight::net
