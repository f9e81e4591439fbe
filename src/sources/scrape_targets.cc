#include "sources/scrape_targets.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "base/yaml.h"
#include "net/http_client.h"
#include "units/time.h"

namespace flopsight::sources {
namespace {

using base::Error;
using base::ErrorCode;
using base::yaml::Kind;

constexpr std::size_t kEntryBytesMax = 4096;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

bool is_label_name(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), is_word);
}

bool is_printable(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (base::control_bytes(text.substr(i)) > 0) return false;
  }
  return true;
}

bool is_port(std::string_view text) {
  const auto port = base::parse_number(text);
  return port && *port >= 1 && *port <= 65535 && text.find_first_not_of("0123456789") == text.npos;
}

// host:port or [IPv6]:port; in a URL, which has a port by its scheme, also without one.
enum class Port : std::uint8_t { kNeeded, kMayBeMissing };
bool is_address(std::string_view text, Port needs) {
  std::string_view host = text, port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos || end < 3) return false;
    host = text.substr(1, end - 1);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.") != host.npos) return false;
    has_port = end + 1 < text.size();
    if (has_port && text[end + 1] != ':') return false;
    port = has_port ? text.substr(end + 2) : "";
  } else {
    const std::size_t colon = text.find(':');
    has_port = colon != text.npos;
    host = text.substr(0, colon);
    port = has_port ? text.substr(colon + 1) : "";
    const bool is_name = std::all_of(host.begin(), host.end(), [](char c) { return is_word(c) || c == '.' || c == '-'; });
    if (host.empty() || !is_name) return false;
  }
  return has_port ? is_port(port) : needs == Port::kMayBeMissing;
}

Error wrong(std::string_view what, std::string_view expected) {
  return {ErrorCode::kInvalid, base::printable(what, 120) + ": expected " + std::string(expected)};
}

// What the labels of a group say about all its scrapes.
struct Settings {
  std::string scheme = "http";
  std::string path = "/metrics";
  std::string query;
  std::string address;
  ScrapeTarget target;  // labels and times
};

base::Status set_time(std::optional<units::Seconds>& time, std::string_view name, std::string_view text) {
  time = units::parse_duration(text);
  if (!time || time->value > 86'400) return wrong(std::string(name) + " " + std::string(text), "a duration up to 24h, such as 15s");
  return {};
}

base::Status take_label(Settings& settings, const std::string& name, const std::string& value) {
  if (!is_label_name(name)) return wrong("label \"" + name + "\"", "a label name: letters, digits and _");
  if (!is_printable(value) || value.size() > kEntryBytesMax) return wrong("label " + name, "a value of one line");
  if (name == "__scheme__") {
    if (value != "http" && value != "https") return wrong("__scheme__ " + value, "http or https");
    settings.scheme = value;
  } else if (name == "__metrics_path__") {
    const bool is_path = value.starts_with('/') && value.find_first_of(" #") == value.npos;
    if (!is_path) return wrong("__metrics_path__ " + value, "a path such as /metrics");
    settings.path = value;
  } else if (name == "__address__") {
    if (!is_address(value, Port::kNeeded)) return wrong("__address__ " + value, "host:port");
    settings.address = value;
  } else if (name == "__scrape_interval__") {
    return set_time(settings.target.interval, name, value);
  } else if (name == "__scrape_timeout__") {
    return set_time(settings.target.timeout, name, value);
  } else if (name.starts_with("__param_") && name.size() > 8) {
    settings.query += (settings.query.empty() ? "" : "&") + name.substr(8) + "=" + net::url_encode(value);
  } else if (!name.starts_with("__")) {
    settings.target.labels.emplace_back(name, value);
  }
  return {};
}

base::Result<Settings> settings_of(const base::yaml::Value* labels, const std::string& place) {
  Settings settings;
  if (labels == nullptr || labels->kind == Kind::kNull) return settings;
  const auto at = [&](int line) { return place + ":" + std::to_string(line); };
  if (labels->kind != Kind::kMap) {
    return wrong("labels", "a mapping, found " + std::string(base::yaml::kind_name(labels->kind))).within(at(labels->line));
  }
  for (const auto& [name, value] : labels->fields) {
    if (value.kind != Kind::kScalar && value.kind != Kind::kNull) {
      return wrong("label " + name, "a value, found " + std::string(base::yaml::kind_name(value.kind))).within(at(value.line));
    }
    FLOPSIGHT_RETURN_IF_ERROR(take_label(settings, name, value.text).within(at(value.line)));
  }
  ScrapeTarget& target = settings.target;
  if (target.interval && target.timeout && target.timeout->value > target.interval->value) {
    return wrong("__scrape_timeout__", "no more than __scrape_interval__").within(at(labels->line));
  }
  std::sort(target.labels.begin(), target.labels.end());
  return settings;
}

ScrapeTarget target_of(const Settings& settings, const std::string& address) {
  ScrapeTarget target = settings.target;
  const std::string query = settings.query.empty()
                                ? ""
                                : (settings.path.find('?') == std::string::npos ? "?" : "&") + settings.query;
  target.url = settings.scheme + "://" + (settings.address.empty() ? address : settings.address) + settings.path + query;
  return target;
}

}  // namespace

base::Result<ScrapeTarget> parse_scrape_target(std::string_view entry) {
  const std::string_view text = base::trim(entry);
  const std::string shown = net::url_without_credentials(text);
  ScrapeTarget target;
  if (text.empty() || text.size() > kEntryBytesMax || !is_printable(text) || text.find(' ') != text.npos) {
    return wrong("target \"" + shown + "\"", "host:port or an http:// or https:// URL");
  }
  const std::size_t scheme = text.find("://");
  if (scheme == text.npos) {
    if (!is_address(text, Port::kNeeded)) return wrong("target \"" + shown + "\"", "host:port or an http:// or https:// URL");
    target.url = "http://" + std::string(text) + "/metrics";
    return target;
  }
  const std::string_view name = text.substr(0, scheme);
  const std::string_view rest = text.substr(scheme + 3);
  const std::size_t path = rest.find_first_of("/?#");
  const std::string_view authority = rest.substr(0, path);
  const std::size_t at = authority.rfind('@');
  if ((name != "http" && name != "https") || !is_address(at == authority.npos ? authority : authority.substr(at + 1), Port::kMayBeMissing)) {
    return wrong("target \"" + shown + "\"", "host:port or an http:// or https:// URL");
  }
  target.url = text.substr(0, text.find('#'));
  const bool has_path = path != rest.npos && rest[path] == '/';
  if (!has_path) target.url.insert(scheme + 3 + authority.size(), "/metrics");
  return target;
}

base::Result<std::vector<ScrapeTarget>> parse_file_sd(std::string_view text, const std::string& place,
                                                      std::size_t targets_max) {
  auto document = base::yaml::parse(text);
  if (!document.ok()) {
    // The parser's own words may quote the text.
    return Error{document.error().code, place + ": " + base::printable(document.error().message, 300)};
  }
  std::vector<ScrapeTarget> out;
  const auto at = [&](int line) { return place + ":" + std::to_string(line); };
  const std::string groups = "a list of groups {\"targets\": [\"host:port\"], \"labels\": {}}";
  // Nothing is YAML, and no JSON: a file that is about to be written.
  if (document->kind == Kind::kNull && place.ends_with(".json")) return Error{ErrorCode::kInvalid, at(1) + ": found nothing, expected " + groups};
  if (document->kind == Kind::kNull) return out;
  if (document->kind != Kind::kList) return wrong(at(document->line), groups);
  std::unordered_set<std::string> seen;
  for (const base::yaml::Value& group : document->items) {
    const base::yaml::Value* targets = group.find("targets");
    if (group.kind != Kind::kMap || targets == nullptr || targets->kind != Kind::kList) {
      return wrong(at(group.line), groups);
    }
    for (const auto& [key, value] : group.fields) {
      if (key != "targets" && key != "labels") return wrong(at(value.line) + ": \"" + key + "\"", "targets or labels");
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(const Settings settings, settings_of(group.find("labels"), place));
    for (const base::yaml::Value& item : targets->items) {
      // Of one that a label stands instead of, the name alone is enough.
      if (item.kind != Kind::kScalar || !is_address(item.text, settings.address.empty() ? Port::kNeeded : Port::kMayBeMissing)) {
        return wrong(at(item.line) + ": target \"" + item.text + "\"", "host:port");
      }
      ScrapeTarget target = target_of(settings, item.text);
      if (!seen.insert(target.url).second) continue;
      if (out.size() == targets_max) {
        return Error{ErrorCode::kLimit, at(item.line) + ": more than " + std::to_string(targets_max) + " targets"};
      }
      out.push_back(std::move(target));
    }
  }
  return out;
}

// FNV-1a, finished with the mixer of MurmurHash3: names that differ in one digit must fall far apart.
std::uint64_t target_hash(std::string_view url) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : url) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return hash ^ (hash >> 33);
}

}  // namespace flopsight::sources
