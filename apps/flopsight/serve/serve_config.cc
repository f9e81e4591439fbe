#include "serve/serve_config.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "units/time.h"

namespace flopsight::app {
namespace {

using Config = ServeConfig;
// Sets from text; false when the text is not what was expected.
using Setter = std::function<bool(Config&, const std::string&)>;
using Getter = std::function<std::string(const Config&)>;

struct Row {
  SettingInfo info;
  Setter set;
  Getter get;
  // Copies it from the other one; true: it was something else.
  std::function<bool(Config&, const Config&)> copy;
  std::vector<std::string> Config::*items = nullptr;  // of a list
  base::Status (*read)(Config&, const base::yaml::Value&, const std::string& path) = nullptr;  // of what is no text
};

constexpr std::string_view kDuration = "a duration such as 15s or 7d";
constexpr std::string_view kCount = "a whole number";
constexpr std::string_view kBytes = "a number of bytes, also with KiB, MiB, GiB or TiB";

std::optional<std::uint64_t> parse_count(std::string_view text) {
  const auto number = base::parse_number(text);
  if (!number || *number < 0 || *number > 9e15 || *number != static_cast<double>(static_cast<std::uint64_t>(*number))) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*number);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"B", 0}};
  for (const auto& [unit, shift] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto count = parse_count(base::trim(text.substr(0, text.size() - unit.size())));
    if (!count || *count > std::uint64_t{1} << (62 - shift)) return std::nullopt;
    return *count << shift;
  }
  return parse_count(text);
}

template <typename Value>
std::function<bool(Config&, const Config&)> copy_of(Value Config::*field) {
  return [field](Config& to, const Config& from) {
    const bool differs = to.*field != from.*field;
    to.*field = from.*field;
    return differs;
  };
}

Row text(std::string_view key, std::string Config::*field, std::string_view expected, std::string_view meaning) {
  return {{key, expected, meaning},
          [field](Config& c, const std::string& t) {
            if (t.empty()) return false;
            c.*field = t;
            return true;
          },
          [field](const Config& c) { return c.*field; },
          copy_of(field)};
}
Row list(std::string_view key, std::vector<std::string> Config::*field, std::string_view expected,
         std::string_view meaning) {
  return {{key, expected, meaning, true, false},
          [field](Config& c, const std::string& t) {
            if (t.empty()) return false;
            (c.*field).push_back(t);
            return true;
          },
          [](const Config&) { return std::string(); },
          copy_of(field),
          field};
}
Row flag(std::string_view key, bool Config::*field, std::string_view meaning) {
  return {{key, "true or false", meaning, false, true},
          [field](Config& c, const std::string& t) {
            if (t != "true" && t != "false") return false;
            c.*field = t == "true";
            return true;
          },
          [field](const Config& c) { return std::string(c.*field ? "true" : "false"); },
          copy_of(field)};
}
Row duration(std::string_view key, units::Seconds Config::*field, std::string_view meaning) {
  return {{key, kDuration, meaning},
          [field](Config& c, const std::string& t) {
            const auto seconds = units::parse_duration(t);
            if (seconds) c.*field = *seconds;
            return seconds.has_value();
          },
          [field](const Config& c) { return base::json::number_text((c.*field).value) + "s"; },
          copy_of(field)};
}
Row count(std::string_view key, std::uint64_t Config::*field, std::string_view meaning) {
  return {{key, kCount, meaning},
          [field](Config& c, const std::string& t) {
            const auto number = parse_count(t);
            if (number) c.*field = *number;
            return number.has_value();
          },
          [field](const Config& c) { return std::to_string(c.*field); },
          copy_of(field)};
}
Row bytes(std::string_view key, std::uint64_t Config::*field, std::string_view meaning) {
  return {{key, kBytes, meaning},
          [field](Config& c, const std::string& t) {
            const auto number = parse_bytes(t);
            if (number) c.*field = *number;
            return number.has_value();
          },
          [field](const Config& c) { return std::to_string(c.*field); },
          copy_of(field)};
}

std::vector<Row> slurm_rows() {
  return {
      flag("slurm.commands", &Config::slurm_commands, "ask Slurm for its jobs by scontrol and sacct"),
      text("slurm.command-folder", &Config::slurm_command_folder, "a folder", "where scontrol and sacct are; without it, in PATH"),
      text("slurm.rest-url", &Config::slurm_rest_url, "a URL, or unix:PATH", "slurmrestd to ask for its jobs, instead of commands"),
      text("slurm.rest-user", &Config::slurm_rest_user, "a user", "X-SLURM-USER-NAME for slurmrestd"),
      text("slurm.rest-token-file", &Config::slurm_rest_token_file, "a file", "X-SLURM-USER-TOKEN for slurmrestd, read anew each time"),
      text("slurm.rest-version", &Config::slurm_rest_version, "a version such as v0.0.40", "of slurmrestd's API; without it, the newest it has"),
      text("slurm.cluster", &Config::slurm_cluster, "a name", "the cluster, where Slurm's answer does not name it"),
      text("slurm.zone", &Config::slurm_zone, "a time zone such as Europe/Paris", "of times that a command prints although it was told to print UTC"),
      flag("slurm.accounting", &Config::slurm_accounting, "ask slurmdbd for jobs that ended, too"),
      duration("slurm.interval", &Config::slurm_interval, "between two questions to Slurm"),
      duration("slurm.timeout", &Config::slurm_timeout, "of one question"),
      duration("slurm.history", &Config::slurm_history, "how far back the accounting is read at the start"),
  };
}

std::vector<Row> service_rows() {
  return {
      text("listen", &Config::listen, "ADDRESS:PORT", "where the service listens; anything but loopback needs TLS and users"),
      text("store", &Config::store, "a folder", "folder of the store and of the write-ahead log"),
      text("web-config", &Config::web_config, "a file", "TLS and users, in the format of Prometheus exporters"),
      text("tokens-file", &Config::tokens_file, "a file", "bearer tokens with roles (docs/serve.md)"),
      flag("allow-insecure", &Config::allow_insecure, "listen beyond loopback without TLS or without users"),
      list("allowed-hosts", &Config::allowed_hosts, "a host name",
           "by which a proxy in front of a service on loopback asks that has no users: 421 for other names (docs/serve.md)"),
      list("scrape.targets", &Config::scrape_targets, "HOST:PORT or a URL", "exporters to scrape"),
      list("scrape.files", &Config::scrape_files, "a path, * allowed", "Prometheus file_sd files, JSON or YAML, watched"),
      list("scrape.dns", &Config::scrape_dns, "NAME:PORT", "a name whose addresses are exporters"),
      duration("scrape.interval", &Config::scrape_interval, "between two scrapes of a target"),
      duration("scrape.timeout", &Config::scrape_timeout, "of one scrape"),
      count("scrape.targets-max", &Config::scrape_targets_max, "targets beyond this are left out, and counted"),
      count("scrape.shard", &Config::scrape_shard, "of several processes that share the targets, which this is (from 0)"),
      count("scrape.shards", &Config::scrape_shards, "how many processes share the targets"),
      flag("scrape.discover", &Config::scrape_discover, "look for exporters on this machine"),
      text("scrape.bearer-token-file", &Config::scrape_bearer_token_file, "a file", "bearer token for all targets"),
      text("scrape.basic-user", &Config::scrape_basic_user, "a name", "user of basic authentication, for all targets"),
      text("scrape.basic-password-file", &Config::scrape_basic_password_file, "a file", "its password"),
      text("scrape.ca-file", &Config::scrape_ca_file, "a file", "PEM of the certificate authority of https targets"),
      text("scrape.cert-file", &Config::scrape_cert_file, "a file", "PEM of the client certificate"),
      text("scrape.key-file", &Config::scrape_key_file, "a file", "PEM of its key"),
      flag("scrape.insecure-skip-verify", &Config::scrape_insecure_skip_verify, "do not verify the targets' certificates"),
      text("nvml.use", &Config::nvml_use, "auto, yes or no", "read this machine's GPUs by its NVIDIA driver; auto: where nothing is scraped and no exporter answers"),
      text("nvml.library", &Config::nvml_library, "a file", "libnvidia-ml.so.1; without it, where the system's loader finds it"),
      text("nvml.root", &Config::nvml_root, "a folder", "with the host's proc and var/log, where / is a container's"),
      duration("nvml.interval", &Config::nvml_interval, "between two readings of this machine's GPUs (100ms to 1h)"),
      duration("rollup.slot", &Config::rollup_slot, "length of a rollup; a store keeps the one it was made with"),
      duration("rollup.late", &Config::rollup_late, "how long a slot waits for late samples"),
      duration("rollup.idle", &Config::rollup_idle, "after which a silent GPU is closed out"),
      duration("rollup.future", &Config::rollup_future, "samples further ahead than this are refused"),
      duration("rollup.gap", &Config::rollup_gap, "a longer silence is no unmeasured time: the GPU was away"),
      duration("retention.fine", &Config::retention_fine, "how long slots are kept as they are; then in ten minutes"),
      duration("retention.middle", &Config::retention_middle, "how long ten minutes are kept; then in hours"),
      duration("retention.coarse", &Config::retention_coarse, "how long hours are kept"),
      bytes("retention.bytes", &Config::retention_bytes, "the store's limit, past which the oldest goes; 0: none"),
  };
}

std::vector<Row> engine_rows() {
  return {
      text("engine.url", &Config::engine_url, "http://HOST:PORT, https too, with a path where there is one",
           "a Prometheus-compatible engine that keeps the rollups of all processes (docs/engine.md)"),
      text("engine.write-url", &Config::engine_write_url, "a URL", "where it takes remote write; default: engine.url/api/v1/write"),
      flag("engine.gpu-cells", &Config::engine_gpu_cells, "series of every GPU, for answers by GPU and host"),
      bytes("engine.outbox-bytes", &Config::engine_outbox_bytes, "what may wait on the disk for the engine: 503 past it"),
      duration("engine.timeout", &Config::engine_timeout, "of one request to the engine"),
      text("engine.bearer-token-file", &Config::engine_bearer_token_file, "a file", "bearer token for the engine"),
      text("engine.basic-user", &Config::engine_basic_user, "a name", "user of basic authentication"),
      text("engine.basic-password-file", &Config::engine_basic_password_file, "a file", "its password"),
      list("engine.headers", &Config::engine_headers, "Name: value", "sent with each request, e.g. 'X-Scope-OrgID: gpus'"),
      text("engine.ca-file", &Config::engine_ca_file, "a file", "PEM of the engine's certificate authority"),
      text("engine.cert-file", &Config::engine_cert_file, "a file", "PEM of the client certificate"),
      text("engine.key-file", &Config::engine_key_file, "a file", "PEM of its key"),
      text("engine.server-name", &Config::engine_server_name, "a name", "to verify the engine's certificate for"),
      flag("engine.insecure-skip-verify", &Config::engine_insecure_skip_verify, "do not verify the engine's certificate"),
  };
}

std::vector<Row> finding_rows() {
  return {
      flag("findings.use", &Config::findings_use, "look at each minute for findings (docs/findings.md)"),
      list("findings.off", &Config::findings_off, "a kind, such as low_power", "kinds of findings that are not wanted"),
      duration("findings.quiet", &Config::findings_quiet, "no finding is resolved before it has not shown for this long"),
      duration("findings.reopen", &Config::findings_reopen, "what shows again within this time after it went is the same finding"),
      duration("findings.retention", &Config::findings_retention, "how long resolved findings are kept"),
      list("findings.daily-load", &Config::findings_daily_load, "a regular expression",
           "names of jobs whose load has a daily course (inference): compared with the day before"),
      count("findings.waste-usd-per-day", &Config::findings_waste_usd_per_day,
            "a job that loses this much in a day, against what is attainable, is a finding; 0: none is"),
      count("limits.findings", &Config::limits_findings, "open at once; more are counted and left out"),
      count("limits.findings-kept", &Config::limits_findings_kept, "on the disk; past it those that were resolved longest ago go"),
      count("limits.findings-jobs", &Config::limits_findings_jobs, "jobs that are watched at once; of others only their GPUs' faults are found"),
      count("limits.silences", &Config::limits_silences, "silences of findings: 422"),
  };
}

base::Status read_receivers(Config& config, const base::yaml::Value& value, const std::string& path) {
  FLOPSIGHT_ASSIGN_OR_RETURN(config.notify_receivers, notify::parse_receivers(value, path));
  return {};
}

std::vector<Row> notify_rows() {
  Row receivers{{"notify.receivers", "a list, in the file only (docs/notifications.md)", "who is told of findings: Alertmanagers, webhooks, commands"},
                [](Config&, const std::string&) { return false; },
                [](const Config&) { return std::string(); },
                [](Config&, const Config&) { return false; }};
  receivers.info.is_in_file_only = true;
  receivers.read = read_receivers;
  return {
      text("notify.external-url", &Config::notify_external_url, "http:// or https://", "where people reach this service; without it messages have no links"),
      std::move(receivers),
  };
}

std::vector<Row> other_rows() {
  return {
      text("rules", &Config::rules, "a file", "attribution rules (docs/attribution.md)"),
      text("gpu-catalog", &Config::gpu_catalog, "a file", "CSV rows that add to or replace the GPU catalogue"),
      text("prices", &Config::prices, "a file", "US dollars per GPU-hour by model and team (CSV or JSON)"),
      text("attainable", &Config::attainable, "a file", "attainable OFU by model and team (CSV or JSON), for the waste account"),
      text("jobs", &Config::jobs, "a file", "jobs file for GPUs whose labels name no job"),
      text("training-logs", &Config::training_logs, "a file", "which logs of training jobs to follow (docs/training-logs.md)"),
      text("training-metrics", &Config::training_metrics, "a file",
           "metrics in which trainers export their speed, besides those known (docs/training-logs.md)"),
      text("models", &Config::models, "a file", "which models jobs train, by names of jobs, to audit what they report (docs/audit.md)"),
      list("groups.patterns", &Config::groups_patterns, "a regular expression",
           "makes one job of those whose names give the same group `name`, or first group; without a capture group the whole match is the name"),
      flag("groups.owners", &Config::groups_owners, "pods of one owner (kube_pod_owner, kube_pod_labels) are one job"),
      list("families.ignore", &Config::families_ignore, "a regular expression",
           "what does not matter in the name of a run, instead of numbers, dates and hashes"),
      list("mfu.known-wrong", &Config::mfu_known_wrong, "a regular expression",
           "jobs whose reported MFU is known to be wrong, left out where it is compared"),
      flag("metrics.per-gpu", &Config::metrics_per_gpu, "a series per GPU in /metrics"),
      bytes("limits.body-bytes", &Config::limits_body_bytes, "of a request's body: 413"),
      bytes("limits.bodies-bytes", &Config::limits_bodies_bytes, "of all bodies in flight: 503"),
      bytes("limits.decompressed-bytes", &Config::limits_decompressed_bytes, "of a remote-write message: 413"),
      count("limits.series", &Config::limits_series, "in a remote-write message: 400"),
      count("limits.labels", &Config::limits_labels, "of a series: it is rejected"),
      bytes("limits.label-name-bytes", &Config::limits_label_name_bytes, "of a label's name: its series is rejected"),
      bytes("limits.label-value-bytes", &Config::limits_label_value_bytes, "of a label's value: its series is rejected"),
      count("limits.connections", &Config::limits_connections, "open at once: 503"),
      count("limits.gpus", &Config::limits_gpus, "GPUs and MIG instances; samples of more are refused"),
      count("limits.label-sets", &Config::limits_label_sets, "distinct label sets; samples of more are refused"),
      count("limits.holders", &Config::limits_holders, "jobs in memory; GPUs of more are shown without a job"),
      bytes("limits.log-bytes", &Config::limits_log_bytes, "of the write-ahead log: 503"),
      bytes("limits.disk-free-bytes", &Config::limits_disk_free_bytes, "kept free on the disk: 503 below it"),
      duration("limits.query-window", &Config::limits_query_window, "of a query: 422"),
      count("limits.query-steps", &Config::limits_query_steps, "of a series: 422"),
      count("limits.query-cells", &Config::limits_query_cells, "GPUs times steps of an answer about single GPUs: 422"),
      count("limits.page", &Config::limits_page, "rows of one answer"),
  };
}

// What the fleet, the engine and the listening socket are made with.
bool is_made_with(std::string_view key) {
  constexpr std::string_view kSections[] = {"rollup.", "engine.", "nvml."};
  constexpr std::string_view kKeys[] = {
      "listen", "store", "rules", "gpu-catalog", "training-metrics", "limits.body-bytes", "limits.bodies-bytes", "limits.decompressed-bytes",
      "limits.series", "limits.labels", "limits.label-name-bytes", "limits.label-value-bytes", "limits.connections", "limits.gpus",
      "limits.label-sets", "limits.holders", "limits.log-bytes", "limits.disk-free-bytes", "limits.findings-kept"};
  return std::any_of(std::begin(kSections), std::end(kSections), [&](std::string_view section) { return key.starts_with(section); }) ||
         std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = [] {
    std::vector<Row> all = service_rows();
    // Beside the other sources of what is known.
    const auto at = std::find_if(all.begin(), all.end(), [](const Row& row) { return row.info.key == "rollup.slot"; });
    const std::vector<Row> slurm = slurm_rows();
    all.insert(at, slurm.begin(), slurm.end());
    for (std::vector<Row> more : {engine_rows(), finding_rows(), notify_rows(), other_rows()}) std::move(more.begin(), more.end(), std::back_inserter(all));
    for (Row& row : all) row.info.needs_restart = is_made_with(row.info.key);
    return all;
  }();
  return kRows;
}

const Row* find_row(std::string_view key) {
  const auto at = std::find_if(rows().begin(), rows().end(), [&](const Row& row) { return row.info.key == key; });
  return at == rows().end() ? nullptr : &*at;
}

struct Found {
  std::string key;
  std::string text;
  int line = 0;
  const base::yaml::Value* value = nullptr;  // of what is no text; borrowed
};

base::Error mistake(const std::string& where, const std::string& what) {
  return {base::ErrorCode::kInvalid, where + ": " + what};
}

base::Status flatten(const base::yaml::Value& value, const std::string& prefix, const std::string& path,
                     std::vector<Found>& found) {
  for (const auto& [name, field] : value.fields) {
    const std::string key = prefix.empty() ? name : prefix + "." + name;
    const std::string where = path + ":" + std::to_string(field.line);
    const Row* row = find_row(key);
    if (row == nullptr) {
      const bool is_section = std::any_of(rows().begin(), rows().end(),
                                          [&](const Row& r) { return r.info.key.starts_with(key + "."); });
      if (!is_section) return mistake(where, base::printable(key, 80) + ": no such key (docs/configuration.md has all)");
      if (field.kind == base::yaml::Kind::kNull) continue;
      if (field.kind != base::yaml::Kind::kMap) return mistake(where, key + ": expected keys under it");
      FLOPSIGHT_RETURN_IF_ERROR(flatten(field, key, path, found));
      continue;
    }
    if (row->read != nullptr) {
      found.push_back({key, "", field.line, &field});
      continue;
    }
    if (row->info.is_list && field.kind == base::yaml::Kind::kList) {
      for (const base::yaml::Value& item : field.items) {
        if (item.kind != base::yaml::Kind::kScalar) {
          return mistake(path + ":" + std::to_string(item.line), key + ": expected a list of " + std::string(row->info.expected));
        }
        found.push_back({key, item.text, item.line});
      }
      continue;
    }
    if (field.kind != base::yaml::Kind::kScalar) {
      return mistake(where, key + ": found " + std::string(base::yaml::kind_name(field.kind)) + ", expected " +
                                std::string(row->info.expected));
    }
    found.push_back({key, field.text, field.line});
  }
  return {};
}

base::Status apply(Config& config, const std::string& where, const std::string& key, const std::string& value) {
  const Row* row = find_row(key);
  if (row == nullptr) return mistake(where, key + ": no such key");
  config.places.push_back({key, value, where});
  if (!row->set(config, value)) {
    return mistake(where, key + ": found \"" + base::printable(value, 80) + "\", expected " + std::string(row->info.expected));
  }
  return {};
}

}  // namespace

const std::vector<SettingInfo>& settings() {
  static const std::vector<SettingInfo> kInfos = [] {
    std::vector<SettingInfo> infos;
    for (const Row& row : rows()) infos.push_back(row.info);
    return infos;
  }();
  return kInfos;
}

std::vector<std::string> keep_until_restart(const ServeConfig& running, ServeConfig& next) {
  std::vector<std::string> keys;
  for (const Row& row : rows()) {
    if (row.info.needs_restart && row.copy(next, running)) keys.emplace_back(row.info.key);
  }
  return keys;
}

std::string flag_of(std::string_view key) {
  std::string flag(key);
  std::replace(flag.begin(), flag.end(), '.', '-');
  return flag;
}

bool ServeConfig::is_given(std::string_view key) const {
  return std::any_of(places.begin(), places.end(), [&](const Place& place) { return place.key == key; });
}

base::Error placed(const ServeConfig& config, const base::Error& mistake) {
  const std::string& message = mistake.message;
  const ServeConfig::Place* best = nullptr;
  bool best_is_quoted = false;
  for (const ServeConfig::Place& place : config.places) {
    const std::string_view key = place.key;
    // "scrape.interval: …", "scrape.basic-user beside …", or "retention: …" of several keys of a section.
    const std::size_t end = std::min(message.find_first_of(": "), message.size());
    const std::string_view named = std::string_view(message).substr(0, end);
    if (named.empty() || (key != named && !(key.starts_with(named) && key.substr(named.size()).starts_with('.')))) continue;
    // Of a list the item that the mistake quotes; of a key that is given again, what counts.
    const bool is_quoted = message.find("\"" + base::printable(place.text, 80) + "\"") != std::string::npos;
    if (best != nullptr && best_is_quoted && !is_quoted) continue;
    const Row* row = find_row(key);
    if (best != nullptr && best->key == key && best_is_quoted == is_quoted && row != nullptr && row->info.is_list) continue;
    best = &place;
    best_is_quoted = is_quoted;
  }
  return best == nullptr ? mistake : base::Error{mistake.code, best->where + ": " + message};
}

base::Result<ServeConfig> read_config(const std::string& path, const std::vector<Setting>& flags) {
  ServeConfig config;
  if (!path.empty()) {
    constexpr std::size_t kConfigBytesMax = 4 << 20;
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string text, base::read_file(path, kConfigBytesMax));
    FLOPSIGHT_ASSIGN_OR_RETURN(const base::yaml::Value root, base::yaml::parse(text).within(path));
    if (root.kind != base::yaml::Kind::kNull && root.kind != base::yaml::Kind::kMap) {
      return mistake(path, "found " + std::string(base::yaml::kind_name(root.kind)) + ", expected keys");
    }
    std::vector<Found> found;
    FLOPSIGHT_RETURN_IF_ERROR(flatten(root, "", path, found));
    for (const Found& f : found) {
      if (f.value != nullptr) {
        FLOPSIGHT_RETURN_IF_ERROR(find_row(f.key)->read(config, *f.value, path));
        continue;
      }
      FLOPSIGHT_RETURN_IF_ERROR(apply(config, path + ":" + std::to_string(f.line), f.key, f.text));
    }
  }
  std::vector<std::string> cleared;  // a list given by flags replaces the file's
  for (const auto& [key, text] : flags) {
    const Row* row = find_row(key);
    if (row != nullptr && row->info.is_list && std::find(cleared.begin(), cleared.end(), key) == cleared.end()) {
      cleared.push_back(key);
      (config.*(row->items)).clear();
      std::erase_if(config.places, [&, name = key](const ServeConfig::Place& place) { return place.key == name; });
    }
    FLOPSIGHT_RETURN_IF_ERROR(apply(config, "--" + flag_of(key), key, text));
  }
  return config;
}

std::string configuration_markdown() {
  std::string out =
      "# Configuration\n\n"
      "Printed by `flopsight docs configuration`. `flopsight serve --config FILE` reads a YAML file; a key `a.b` stands as `b:` "
      "under `a:`, and is the flag `--a-b` as well, which wins. `flopsight check-config FILE` says whether a file is right, "
      "and if not, where. SIGHUP makes a running service read its file again; keys with a † need a restart.\n\n"
      "| key | default | expected | meaning |\n| --- | --- | --- | --- |\n";
  const ServeConfig defaults;
  for (const Row& row : rows()) {
    const std::string value = row.get(defaults);
    out += "| `" + std::string(row.info.key) + "`" + (row.info.needs_restart ? " †" : "") + " | " + (value.empty() ? "" : "`" + value + "`") + " | " +
           std::string(row.info.expected) + " | " + std::string(row.info.meaning) + " |\n";
  }
  out += "\n## A receiver of findings\n\nAn item of `notify.receivers` ([notifications.md](notifications.md)). Lists may be one text where they have one item.\n\n"
         "| key | of | expected | meaning |\n| --- | --- | --- | --- |\n";
  for (const notify::ReceiverKey& key : notify::receiver_keys()) {
    out += "| `" + std::string(key.key) + "` | " + std::string(key.of.empty() ? "all" : key.of) + " | " + std::string(key.expected) + " | " + std::string(key.meaning) + " |\n";
  }
  return out;
}

}  // namespace flopsight::app
