#include "simulate/simulate_options.h"

#include <algorithm>
#include <charconv>
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "new_files.h"
#include "simulation/metric_list.h"

namespace flopsight::app {
namespace {

using Wrong = std::optional<std::string>;

std::string number(std::int64_t n) { return std::to_string(n); }

Wrong in_range(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return std::nullopt;
  return std::string(option) + " " + number(value) + ": expected " + number(low) + " to " + number(high);
}

Wrong set_times(SimulateArguments& a, const SimulateTexts& t) {
  if (!t.start.empty()) {
    a.start = units::parse_instant(t.start);
    if (!a.start) {
      return "--start " + t.start + ": expected RFC 3339 with an offset (2026-11-29T16:00:00Z) or Unix seconds";
    }
  }
  if (!t.hours.empty()) {
    const auto hours = base::parse_number(t.hours);
    if (!hours || *hours <= 0 || *hours > 24 * 366) return "--hours " + t.hours + ": expected a number up to 8784, such as 0.5";
    a.length = units::Seconds(*hours * 3600);
  }
  // A fleet that goes on for ever begins its course anew every hour.
  const auto course = t.course.empty() ? std::optional(units::Seconds(std::clamp(a.length.value_or(units::Seconds(3600)).value, 600.0, 21'600.0)))
                                       : units::parse_duration(t.course);
  if (!course || course->value < 600 || course->value > 366 * 86'400.0) {
    return "--course " + t.course + ": expected a duration of 10m at least, such as 2h";
  }
  a.fleet.course = *course;
  if (!t.interval.empty()) {
    const auto interval = units::parse_duration(t.interval);
    if (!interval || interval->value < 1 || interval->value > 300) {
      return "--interval " + t.interval + ": expected a duration from 1s to 300s, such as 15s";
    }
    a.fleet.interval = *interval;
  }
  return std::nullopt;
}

Wrong set_target(SimulateArguments& a, const SimulateTexts& t) {
  const int targets = (t.exporter ? 1 : 0) + (a.remote_write.empty() ? 0 : 1) + (a.out.empty() ? 0 : 1);
  if (targets != 1) return "expected one of --out, --exporter or --remote-write";
  if (t.exporter) {
    if (auto wrong = in_range("--exporter", *t.exporter, 0, 65535)) return wrong;
    a.exporter_port = static_cast<std::uint16_t>(*t.exporter);
  }
  if (a.force && a.out.empty()) return "--force needs --out";
  if (!a.remote_write.empty()) return std::nullopt;
  if (t.rounds != 0) return "--samples needs --remote-write";
  if (!t.headers.empty() || !a.bearer_token_path.empty()) return "--header and --bearer-token-file need --remote-write";
  if (a.exporter_port && a.start) return "--start needs --out or --remote-write; an exporter shows the time of the request";
  return std::nullopt;
}

Wrong set_load(SimulateArguments& a, const SimulateTexts& t) {
  if (auto wrong = in_range("--concurrency", t.concurrency, 1, 64)) return wrong;
  if (auto wrong = in_range("--batch", t.batch, 1, 100'000)) return wrong;
  if (auto wrong = in_range("--labels-per-series", t.labels_min, 0, 100)) return wrong;
  if (auto wrong = in_range("--version", t.version, 1, 2)) return wrong;
  const SimulateTexts usual;
  const bool is_changed = t.concurrency != usual.concurrency || t.batch != usual.batch || t.version != usual.version ||
                          t.labels_min != usual.labels_min || a.http.tls.ca_file || a.http.tls.insecure_skip_verify;
  if (is_changed && a.remote_write.empty()) {
    return "--concurrency, --batch, --version, --labels-per-series, --ca-file and --insecure-skip-verify need --remote-write";
  }
  if (t.rounds != 0) {
    if (auto wrong = in_range("--samples", t.rounds, 1, 100'000'000)) return wrong;
    a.rounds = static_cast<std::uint64_t>(t.rounds);
    if (a.length) return "--samples and --hours exclude each other";
  } else if (a.start && !a.remote_write.empty()) {
    return "--start needs --samples or --out; without them --remote-write sends as time goes by";
  }
  a.concurrency = static_cast<unsigned>(t.concurrency);
  a.batch_series = static_cast<std::uint32_t>(t.batch);
  a.labels_min = static_cast<std::uint32_t>(t.labels_min);
  a.version = t.version == 2 ? wire::RemoteWriteVersion::kV2 : wire::RemoteWriteVersion::kV1;
  for (const std::string& header : t.headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || colon == 0) {
      return "--header " + base::printable(header, 40) + ": expected 'Name: value'";
    }
    a.http.auth.headers.emplace_back(header.substr(0, colon), std::string(base::trim(header.substr(colon + 1))));
  }
  return std::nullopt;
}

Wrong set_fleet(SimulateArguments& a, const SimulateTexts& t) {
  auto scenario = simulation::parse_scenario(t.scenario);
  if (!scenario.ok()) return scenario.error().message;
  a.fleet.scenario = *scenario;
  const std::int64_t gpus = t.gpus.value_or(simulation::default_gpus(*scenario));
  if (auto wrong = in_range("--gpus", gpus, 1, simulation::kGpusMax)) return wrong;
  if (auto wrong = in_range("--gpus-per-host", t.gpus_per_host, 1, 16)) return wrong;
  a.fleet.gpus = static_cast<std::uint32_t>(gpus);
  a.fleet.model = t.model.empty() ? std::string(simulation::default_model(*scenario)) : t.model;
  a.fleet.gpus_per_host = static_cast<std::uint32_t>(t.gpus_per_host);
  const auto [end, error] = std::from_chars(t.seed.data(), t.seed.data() + t.seed.size(), a.fleet.seed);
  if (error != std::errc() || end != t.seed.data() + t.seed.size()) {
    return "--seed " + base::printable(t.seed, 40) + ": expected a whole number from 0 to 18446744073709551615";
  }
  const auto most = static_cast<std::int64_t>(simulation::all_metrics().size());
  if (t.metrics == "all") {
    a.fleet.metrics = static_cast<std::uint32_t>(most);
  } else if (t.metrics != "default") {
    const auto count = base::parse_number(t.metrics);
    if (!count || *count < 2 || *count > static_cast<double>(most) || *count != static_cast<double>(static_cast<int>(*count))) {
      return "--metrics " + base::printable(t.metrics, 40) + ": expected default, all, or 2 to " + number(most);
    }
    a.fleet.metrics = static_cast<std::uint32_t>(*count);
  }
  // Where a job reports its MFU it is one by its name, as Slurm names jobs.
  if (t.labels == "slurm" || (t.labels.empty() && a.fleet.reports_mfu())) {
    a.fleet.labels = simulation::LabelStyle::kSlurm;
  } else if (!t.labels.empty() && t.labels != "kubernetes") {
    return "--labels " + base::printable(t.labels, 40) + ": expected kubernetes or slurm";
  }
  return std::nullopt;
}

}  // namespace

void add_simulate(CLI::App& app, SimulateArguments& a, SimulateTexts& t) {
  app.add_option("--scenario", t.scenario, "what happens: " + simulation::scenario_names())->required();
  app.add_option("--gpus", t.gpus, "how many GPUs (default 16; in fleet608 those of all its jobs)");
  app.add_option("--seed", t.seed, "another seed, another fleet; the same seed, the same bytes")->capture_default_str();
  app.add_option("--hours", t.hours, "how long; a fraction is fine (default: 1 with --out, else until stopped)");
  app.add_option("--course", t.course,
                 "how long it takes until what the scenario is about begins anew (default: --hours, at most 6h; without them 1h)");
  app.add_option("--out", a.out, std::string("write samples.prom.gz, truth.json and logs of trainers into this folder").append(kFoldersAreMade))->group("Where to");
  app.add_flag("--force", a.force, "with --out: replace files that are there")->group("Where to");
  app.add_option("--exporter", t.exporter,
                 "serve on this port of 127.0.0.1 (0: any): /metrics, /host/<i>/metrics, /sd.json")->group("Where to");
  app.add_option("--remote-write", a.remote_write, "send to this URL, e.g. http://host:9090/api/v1/write")
      ->group("Where to");
  app.add_option("--start", t.start, "RFC 3339 or Unix seconds (default: 2026-01-01T00:00:00Z with --out)");
  app.add_option("--interval", t.interval, "time between scrapes (default 15s)");
  app.add_option("--gpus-per-host", t.gpus_per_host, "GPUs of one exporter")->capture_default_str();
  app.add_option("--model", t.model, "GPU model as an exporter prints it (default " + std::string(simulation::kDefaultModel) +
                                         "; in mixed_precision NVIDIA GB200)");
  app.add_option("--metrics", t.metrics, "how many metrics of each GPU: default (28), all, or a number")->capture_default_str();
  app.add_option("--labels", t.labels, "kubernetes|slurm: how jobs are named (default kubernetes; slurm where jobs report their MFU)");
  app.add_flag("--quiet", a.quiet, "no progress on the terminal");
  app.add_option("--samples", t.rounds, "send so many scrapes of every GPU as fast as they are taken, then end")
      ->group("Remote write");
  app.add_option("--concurrency", t.concurrency, "requests at once")->capture_default_str()->group("Remote write");
  app.add_option("--batch", t.batch, "series in a request, about")->capture_default_str()->group("Remote write");
  app.add_option("--version", t.version, "1|2: remote write 1.0 or 2.0")->capture_default_str()->group("Remote write");
  app.add_option("--labels-per-series", t.labels_min, "fill up to so many labels")->group("Remote write");
  app.add_option("--header", t.headers, "'Name: value'; may be repeated")->group("Remote write");
  app.add_option("--bearer-token-file", a.bearer_token_path, "file with a bearer token")->group("Remote write");
  app.add_option("--ca-file", a.http.tls.ca_file, "PEM of the certificate authority")->group("Remote write");
  app.add_flag("--insecure-skip-verify", a.http.tls.insecure_skip_verify, "do not verify certificates")
      ->group("Remote write");
}

std::optional<std::string> set_simulate(SimulateArguments& a, const SimulateTexts& t) {
  for (const auto step : {set_fleet, set_times, set_target, set_load}) {
    if (auto wrong = step(a, t)) return wrong;
  }
  simulation::Options fleet = a.fleet;
  auto checked = simulation::check(std::move(fleet));
  if (!checked.ok()) return "--" + checked.error().message;
  a.fleet = *checked;
  return std::nullopt;
}

}  // namespace flopsight::app
