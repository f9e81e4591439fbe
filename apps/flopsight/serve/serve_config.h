#pragma once
// The service's configuration: one table of keys. Each is a key of the YAML file ("scrape.interval" is `interval` under
// `scrape`), a flag ("--scrape-interval"), and a row of docs/configuration.md. Flags win over the file.
// Errors: kInvalid, "FILE:LINE: key: what was found, what was expected".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "notify/receiver.h"
#include "units/units.h"

namespace flopsight::app {

struct ServeConfig {
  std::string listen = "127.0.0.1:9890";
  std::string store = "flopsight-data";
  std::string web_config;   // TLS and users, as Prometheus exporters have it
  std::string tokens_file;
  bool allow_insecure = false;
  std::vector<std::string> allowed_hosts;

  std::vector<std::string> scrape_targets;
  std::vector<std::string> scrape_files;
  std::vector<std::string> scrape_dns;
  units::Seconds scrape_interval{15};
  units::Seconds scrape_timeout{10};
  std::uint64_t scrape_targets_max = 20'000;
  std::uint64_t scrape_shard = 0;
  std::uint64_t scrape_shards = 1;
  bool scrape_discover = false;
  std::string scrape_bearer_token_file;
  std::string scrape_basic_user;
  std::string scrape_basic_password_file;
  std::string scrape_ca_file;
  std::string scrape_cert_file;
  std::string scrape_key_file;
  bool scrape_insecure_skip_verify = false;

  std::string nvml_use = "auto";  // or "yes", "no"
  std::string nvml_library;
  std::string nvml_root;
  units::Seconds nvml_interval{5};

  bool slurm_commands = false;
  std::string slurm_command_folder;
  std::string slurm_rest_url;
  std::string slurm_rest_user;
  std::string slurm_rest_token_file;
  std::string slurm_rest_version;
  std::string slurm_cluster;
  std::string slurm_zone = "UTC";
  bool slurm_accounting = true;
  units::Seconds slurm_interval{30};
  units::Seconds slurm_timeout{60};
  units::Seconds slurm_history{86'400};

  units::Seconds rollup_slot{60};
  units::Seconds rollup_late{60};
  units::Seconds rollup_idle{600};
  units::Seconds rollup_future{600};
  units::Seconds rollup_gap{3600};
  units::Seconds retention_fine{7 * 86'400.0};
  units::Seconds retention_middle{60 * 86'400.0};
  units::Seconds retention_coarse{730 * 86'400.0};
  std::uint64_t retention_bytes = 0;

  std::string engine_url;  // empty: no engine
  std::string engine_write_url;
  bool engine_gpu_cells = true;
  std::uint64_t engine_outbox_bytes = std::uint64_t{2} << 30;
  units::Seconds engine_timeout{30};
  std::string engine_bearer_token_file;
  std::string engine_basic_user;
  std::string engine_basic_password_file;
  std::vector<std::string> engine_headers;
  std::string engine_ca_file;
  std::string engine_cert_file;
  std::string engine_key_file;
  std::string engine_server_name;
  bool engine_insecure_skip_verify = false;

  bool findings_use = true;
  std::vector<std::string> findings_off;
  units::Seconds findings_quiet{300};
  units::Seconds findings_reopen{7'200};
  units::Seconds findings_retention{90 * 86'400.0};
  std::vector<std::string> findings_daily_load;
  std::uint64_t findings_waste_usd_per_day = 1'000;
  std::uint64_t limits_findings = 20'000;
  std::uint64_t limits_findings_kept = 200'000;
  std::uint64_t limits_findings_jobs = 5'000;
  std::uint64_t limits_silences = 1'000;

  std::string rules;
  std::string gpu_catalog;
  std::string prices;
  std::string attainable;
  std::string jobs;
  std::string training_logs;
  std::string training_metrics;
  std::string models;
  std::vector<std::string> groups_patterns;
  bool groups_owners = true;
  std::vector<std::string> families_ignore;
  std::vector<std::string> mfu_known_wrong;
  bool metrics_per_gpu = true;
  std::string notify_external_url;
  std::vector<notify::Receiver> notify_receivers;

  std::uint64_t limits_body_bytes = 32 << 20;
  std::uint64_t limits_bodies_bytes = 512 << 20;
  std::uint64_t limits_decompressed_bytes = 128 << 20;
  std::uint64_t limits_series = 200'000;
  std::uint64_t limits_labels = 64;
  std::uint64_t limits_label_name_bytes = 256;
  std::uint64_t limits_label_value_bytes = 2'048;
  std::uint64_t limits_connections = 10'000;
  std::uint64_t limits_gpus = 2'000'000;
  std::uint64_t limits_label_sets = 8'000'000;
  std::uint64_t limits_holders = 4'000'000;
  std::uint64_t limits_log_bytes = std::uint64_t{32} << 30;
  std::uint64_t limits_disk_free_bytes = 256 << 20;
  units::Seconds limits_query_window{400 * 86'400.0};
  std::uint64_t limits_query_steps = 11'000;
  std::uint64_t limits_query_cells = 500'000;  // GPUs times steps
  std::uint64_t limits_page = 1'000;

  // Where a key, or an item of a list, was given: "FILE:LINE" or "--flag". In their order.
  struct Place {
    std::string key, text, where;
  };
  std::vector<Place> places;
  bool is_given(std::string_view key) const;
};

// A mistake that begins with a key, with the place of that key before it, where it was given.
base::Error placed(const ServeConfig& config, const base::Error& mistake);

struct SettingInfo {
  std::string_view key;
  std::string_view expected;  // "a duration such as 15s"
  std::string_view meaning;
  bool is_list = false;
  bool is_flag = false;  // yes or no
  bool is_in_file_only = false;  // more than a text: no flag
  bool needs_restart = false;    // a running service goes on with what it was started with
};
const std::vector<SettingInfo>& settings();

// Of the keys that need a restart, those in which the two differ; in `next` they become what they are in `running`.
std::vector<std::string> keep_until_restart(const ServeConfig& running, ServeConfig& next);

// "scrape.interval" to "scrape-interval".
std::string flag_of(std::string_view key);

using Setting = std::pair<std::string, std::string>;  // key, text; lists have a pair for each item

// File (may be empty: none) and then flags on top.
base::Result<ServeConfig> read_config(const std::string& path, const std::vector<Setting>& flags);

// What does not fit together; nothing is opened. Files that are named must be readable.
base::Status check_config(const ServeConfig& config);

// "127.0.0.1:9890", "[::1]:9890", ":9890" (all addresses).
struct ListenAddress {
  std::string address;
  std::uint16_t port = 0;
  bool is_loopback = false;
};
std::optional<ListenAddress> parse_listen(std::string_view text);

// docs/configuration.md: every key, flag, default and meaning.
std::string configuration_markdown();

}  // namespace flopsight::app
