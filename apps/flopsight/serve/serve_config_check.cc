#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/regex.h"
#include "base/text.h"
#include "base/zone.h"
#include "findings/record.h"
#include "serve/notify_channel.h"
#include "serve/serve_config.h"
#include "serve/target_discovery.h"

namespace flopsight::app {
namespace {

// Limits that are held in 32 bits, and those that would let nothing through.
base::Status check_limits(const ServeConfig& c) {
  using Field = std::uint64_t ServeConfig::*;
  constexpr std::uint64_t kMost = 0xFFFF'FFFF;
  constexpr std::pair<std::string_view, Field> kSmall[] = {
      {"limits.gpus", &ServeConfig::limits_gpus}, {"limits.label-sets", &ServeConfig::limits_label_sets},
      {"limits.holders", &ServeConfig::limits_holders}, {"limits.labels", &ServeConfig::limits_labels},
      {"limits.label-name-bytes", &ServeConfig::limits_label_name_bytes},
      {"limits.label-value-bytes", &ServeConfig::limits_label_value_bytes}, {"limits.series", &ServeConfig::limits_series},
      {"limits.connections", &ServeConfig::limits_connections}, {"scrape.targets-max", &ServeConfig::scrape_targets_max},
      {"scrape.shards", &ServeConfig::scrape_shards}};
  for (const auto& [key, field] : kSmall) {
    if (c.*field > kMost) {
      return base::Error{base::ErrorCode::kInvalid, std::string(key) + ": expected at most " + std::to_string(kMost)};
    }
  }
  constexpr std::pair<std::string_view, Field> kNeeded[] = {
      {"limits.page", &ServeConfig::limits_page}, {"limits.connections", &ServeConfig::limits_connections},
      {"limits.body-bytes", &ServeConfig::limits_body_bytes}, {"limits.bodies-bytes", &ServeConfig::limits_bodies_bytes},
      {"limits.query-steps", &ServeConfig::limits_query_steps},
      {"limits.query-cells", &ServeConfig::limits_query_cells}, {"limits.log-bytes", &ServeConfig::limits_log_bytes}};
  for (const auto& [key, field] : kNeeded) {
    if (c.*field < 1) return base::Error{base::ErrorCode::kInvalid, std::string(key) + ": expected at least 1"};
  }
  return {};
}

base::Status check_engine(const ServeConfig& c) {
  const auto wrong = [](const std::string& what) { return base::Error{base::ErrorCode::kInvalid, what}; };
  for (const auto& [key, url] : {std::pair("engine.url", c.engine_url), std::pair("engine.write-url", c.engine_write_url)}) {
    if (url.empty() || ((url.starts_with("http://") || url.starts_with("https://")) && url.find_first_of("?#") == std::string::npos)) {
      continue;
    }
    return wrong(std::string(key) + ": expected a URL such as http://victoria-metrics:8428, without '?' or '#'");
  }
  if (!c.engine_write_url.empty() && c.engine_url.empty()) return wrong("engine.write-url: expected engine.url with it");
  if (!c.engine_url.empty() && c.retention_bytes != 0) {
    return wrong("retention.bytes: with an engine, slots are kept for retention.fine, since late ones are added to them");
  }
  if (c.engine_basic_user.empty() != c.engine_basic_password_file.empty()) {
    return wrong("engine.basic-user and engine.basic-password-file belong together");
  }
  if (c.engine_cert_file.empty() != c.engine_key_file.empty()) {
    return wrong("engine.cert-file and engine.key-file belong together");
  }
  if (c.engine_timeout.value <= 0 || c.engine_timeout.value > 3600) return wrong("engine.timeout: expected up to an hour");
  for (const std::string& header : c.engine_headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || colon == 0) {
      return wrong("engine.headers: found \"" + base::printable(header, 40) + "\", expected Name: value");
    }
  }
  return {};
}

base::Status check_scrape_access(const ServeConfig& c) {
  const auto wrong = [](const std::string& what) { return base::Error{base::ErrorCode::kInvalid, what}; };
  if (c.scrape_basic_user.empty() != c.scrape_basic_password_file.empty()) {
    return wrong("scrape.basic-user and scrape.basic-password-file belong together");
  }
  if (!c.scrape_basic_user.empty() && !c.scrape_bearer_token_file.empty()) {
    return wrong("scrape.basic-user beside scrape.bearer-token-file, expected one of them");
  }
  if (c.scrape_cert_file.empty() != c.scrape_key_file.empty()) {
    return wrong("scrape.cert-file and scrape.key-file belong together");
  }
  return {};
}

// As serve reads them: what it would refuse is said here.
base::Status check_scrape_targets(const ServeConfig& c) {
  DiscoveryOptions options;
  options.targets = c.scrape_targets;
  if (const auto fixed = TargetDiscovery::create(options); !fixed.ok()) return fixed.error().within("scrape.targets");
  options.targets.clear();
  options.dns = c.scrape_dns;
  if (const auto named = TargetDiscovery::create(options); !named.ok()) return named.error().within("scrape.dns");
  return {};
}

// The folder is made where it is not there; what is there already has to be one.
base::Status check_store(const std::string& store) {
  for (std::filesystem::path path = store; !path.empty(); path = path.parent_path()) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::is_directory(status)) break;
    if (std::filesystem::exists(status)) {
      return base::Error{base::ErrorCode::kInvalid, "store: found \"" + base::printable(store, 200) + "\", expected a folder; " +
                                                        base::printable(path.string(), 200) + " is none"};
    }
    if (path == path.parent_path()) break;
  }
  return {};
}

base::Status check_allowed_hosts(const ServeConfig& c) {
  for (const std::string& host : c.allowed_hosts) {
    const bool is_name = std::all_of(host.begin(), host.end(), [](unsigned char byte) {
      return byte >= 0x80 || std::isalnum(byte) != 0 || byte == '-' || byte == '.' || byte == '_';
    });
    if (!is_name) {
      return base::Error{base::ErrorCode::kInvalid, "allowed-hosts: found \"" + base::printable(host, 80) + "\", expected a host name without scheme, port or path"};
    }
  }
  return {};
}

base::Status check_slurm(const ServeConfig& c) {
  const auto wrong = [](const std::string& what) { return base::Error{base::ErrorCode::kInvalid, what}; };
  const std::string& url = c.slurm_rest_url;
  if (c.slurm_commands && !url.empty()) return wrong("slurm.commands: true beside slurm.rest-url, expected one of them");
  if (!url.empty() && !url.starts_with("http://") && !url.starts_with("https://") && !url.starts_with("unix:")) {
    return wrong("slurm.rest-url: found \"" + base::printable(url, 80) + "\", expected http://, https:// or unix:PATH");
  }
  if ((c.slurm_commands || !url.empty()) && c.slurm_cluster.empty()) {
    return wrong("slurm.cluster: missing, expected the name of the cluster, which scontrol does not print");
  }
  if (const auto zone = base::Zone::find(c.slurm_zone); !zone.ok()) return zone.error().within("slurm.zone");
  return {};
}

base::Status check_findings(const ServeConfig& c) {
  for (const std::string& kind : c.findings_off) {
    if (findings::find_kind(kind) != nullptr) continue;
    return base::Error{base::ErrorCode::kInvalid, "findings.off: found \"" + base::printable(kind, 40) + "\", expected a kind of finding (docs/findings.md has all)"};
  }
  for (const std::string& expression : c.findings_daily_load) {
    if (const auto regex = base::Regex::parse(expression); !regex.ok()) return regex.error().within("findings.daily-load");
  }
  return {};
}

base::Status check_notify(const ServeConfig& c) {
  const std::string& url = c.notify_external_url;
  if (!url.empty() && !url.starts_with("http://") && !url.starts_with("https://")) {
    return base::Error{base::ErrorCode::kInvalid, "notify.external-url: found \"" + base::printable(url, 80) + "\", expected http:// or https://"};
  }
  for (const notify::Receiver& receiver : c.notify_receivers) FLOPSIGHT_RETURN_IF_ERROR(check_receiver(receiver));
  return {};
}

}  // namespace

std::optional<ListenAddress> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = base::parse_number(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65'535 || *port != static_cast<double>(static_cast<std::uint16_t>(*port))) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  ListenAddress out;
  out.address = host.empty() ? "0.0.0.0" : host == "localhost" ? "127.0.0.1" : std::string(host);
  out.port = static_cast<std::uint16_t>(*port);
  // Digits only: a name such as 127.example.org may be anywhere.
  out.is_loopback = out.address == "::1" || (out.address.starts_with("127.") &&
                                             out.address.find_first_not_of("0123456789.") == std::string::npos);
  return out;
}

base::Status check_config(const ServeConfig& c) {
  const auto wrong = [](const std::string& what) { return base::Error{base::ErrorCode::kInvalid, what}; };
  const auto listen = parse_listen(c.listen);
  if (!listen) return wrong("listen: found \"" + base::printable(c.listen, 80) + "\", expected ADDRESS:PORT");
  if (!listen->is_loopback && !c.allow_insecure && c.web_config.empty()) {
    return wrong("listen: " + c.listen + " is not loopback; give web-config with TLS and users, or allow-insecure");
  }
  if (c.nvml_use != "auto" && c.nvml_use != "yes" && c.nvml_use != "no") {
    return wrong("nvml.use: found \"" + base::printable(c.nvml_use, 40) + "\", expected auto, yes or no");
  }
  if (c.nvml_interval.value < 0.1 || c.nvml_interval.value > 3600) return wrong("nvml.interval: expected 100ms to 1h");
  const double slot = c.rollup_slot.value;
  if (slot < 10 || slot > 600 || 600 != static_cast<int>(600 / slot) * slot) {
    return wrong("rollup.slot: expected 10s to 600s, a divisor of ten minutes");
  }
  if (c.scrape_timeout.value > c.scrape_interval.value) {
    const auto shown = [&](std::string_view key, units::Seconds value) {
      return base::json::number_text(value.value) + "s" + (c.is_given(key) ? "" : " (the default)");
    };
    // Begun with the key that was given.
    const std::string interval = "scrape.interval: " + shown("scrape.interval", c.scrape_interval);
    const std::string timeout = "scrape.timeout: " + shown("scrape.timeout", c.scrape_timeout);
    return wrong(c.is_given("scrape.timeout") ? timeout + " is longer than " + interval : interval + " is shorter than " + timeout);
  }
  if (c.scrape_shards < 1 || c.scrape_shard >= c.scrape_shards) {
    return wrong("scrape.shard: expected 0 to scrape.shards - 1, which is " + std::to_string(c.scrape_shards) + " - 1");
  }
  if (c.retention_fine.value > c.retention_middle.value || c.retention_middle.value > c.retention_coarse.value) {
    return wrong("retention: expected fine <= middle <= coarse");
  }
  FLOPSIGHT_RETURN_IF_ERROR(check_store(c.store));
  FLOPSIGHT_RETURN_IF_ERROR(check_limits(c));
  FLOPSIGHT_RETURN_IF_ERROR(check_scrape_access(c));
  FLOPSIGHT_RETURN_IF_ERROR(check_scrape_targets(c));
  FLOPSIGHT_RETURN_IF_ERROR(check_allowed_hosts(c));
  FLOPSIGHT_RETURN_IF_ERROR(check_slurm(c));
  FLOPSIGHT_RETURN_IF_ERROR(check_engine(c));
  FLOPSIGHT_RETURN_IF_ERROR(check_notify(c));
  FLOPSIGHT_RETURN_IF_ERROR(check_findings(c));
  for (const std::string& path : {c.web_config, c.tokens_file, c.rules, c.gpu_catalog, c.prices, c.attainable, c.jobs, c.slurm_rest_token_file,
                                  c.training_logs, c.training_metrics, c.scrape_bearer_token_file,
                                  c.scrape_basic_password_file, c.scrape_ca_file, c.scrape_cert_file, c.scrape_key_file,
                                  c.engine_bearer_token_file, c.engine_basic_password_file, c.engine_ca_file, c.engine_cert_file,
                                  c.engine_key_file}) {
    if (path.empty()) continue;
    if (const auto readable = base::read_file(path); !readable.ok()) return readable.error();
  }
  return {};
}

}  // namespace flopsight::app
