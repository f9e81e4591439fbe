#include "serve/engine_settings.h"

#include <cmath>

#include "base/file.h"
#include "base/text.h"

namespace flopsight::app {
namespace {

base::Result<std::string> text_of(const std::string& path) {
  if (path.empty()) return std::string();
  return base::read_file(path);
}

}  // namespace

base::Result<std::optional<EngineSettings>> engine_settings(const ServeConfig& c) {
  if (c.engine_url.empty()) return std::optional<EngineSettings>();
  EngineSettings settings;
  net::HttpOptions& http = settings.reader.http;
  const auto path = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string token, text_of(c.engine_bearer_token_file));
  if (!c.engine_bearer_token_file.empty()) http.auth.bearer_token = std::string(base::trim(token));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string password, text_of(c.engine_basic_password_file));
  if (!c.engine_basic_user.empty()) http.auth.basic = {c.engine_basic_user, std::string(base::trim(password))};
  for (const std::string& header : c.engine_headers) {
    const std::size_t colon = header.find(':');
    http.auth.headers.emplace_back(header.substr(0, colon), base::trim(header.substr(colon + 1)));
  }
  http.tls = {path(c.engine_ca_file), path(c.engine_cert_file), path(c.engine_key_file), path(c.engine_server_name),
              c.engine_insecure_skip_verify};
  http.total_timeout = std::chrono::milliseconds(std::llround(c.engine_timeout.value * 1000));
  // A question is asked again by who asked it, and the outbox tries again by itself.
  http.retries = 0;
  http.body_bytes_max = std::size_t{256} << 20;
  settings.reader.url = c.engine_url;
  settings.reader.gpu_cells = c.engine_gpu_cells;
  settings.reader.history = c.limits_query_window;
  std::string base_url = c.engine_url;
  while (base_url.ends_with('/')) base_url.pop_back();
  settings.write_url = c.engine_write_url.empty() ? base_url + "/api/v1/write" : c.engine_write_url;
  settings.store.shard = c.scrape_shard;
  settings.store.gpu_cells = c.engine_gpu_cells;
  settings.store.outbox_bytes_max = c.engine_outbox_bytes;
  settings.store.late_max = c.retention_fine;
  return std::optional(std::move(settings));
}

}  // namespace flopsight::app
