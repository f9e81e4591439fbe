#include "serve/paths.h"

#include "serve/page.h"

namespace flopsight::app {
namespace {

constexpr PathRule kPaths[] = {
    {"POST", "/api/v1/write", "", Role::kIngest},
    {"GET", "/api/v1/fleet", "", Role::kRead},
    {"GET", "/api/v1/fleet/series", "", Role::kRead},
    {"GET", "/api/v1/gpus", "", Role::kRead},
    {"GET", "/api/v1/gpus/series", "", Role::kRead},
    {"GET", "/api/v1/search", "", Role::kRead},
    {"GET", "/api/v1/jobs", "", Role::kRead},
    {"POST", "/api/v1/jobs", "", Role::kIngest},
    {"POST", "/api/v1/jobs/", "/mfu", Role::kIngest},
    {"POST", "/api/v1/jobs/", "/model", Role::kIngest},
    {"GET", "/api/v1/jobs/", "", Role::kRead},
    {"GET", "/api/v1/mfu", "", Role::kRead},
    {"GET", "/api/v1/waste", "", Role::kRead},
    {"GET", "/api/v1/findings", "", Role::kRead},
    {"GET", "/api/v1/findings/", "", Role::kRead},
    {"POST", "/api/v1/findings/", "/acknowledge", Role::kAdmin},
    {"POST", "/api/v1/findings/", "/unacknowledge", Role::kAdmin},
    {"POST", "/api/v1/findings/", "/resolve", Role::kAdmin},
    {"GET", "/api/v1/silences", "", Role::kRead},
    {"POST", "/api/v1/silences", "", Role::kAdmin},
    {"POST", "/api/v1/silences/", "/end", Role::kAdmin},
    {"DELETE", "/api/v1/silences/", "", Role::kAdmin},
    {"GET", "/api/v1/targets", "", Role::kAdmin},
    {"GET", "/metrics", "", Role::kRead},
    {"GET", "/api/v1/openapi.json"},
    {"GET", "/healthz"},
    {"GET", "/readyz"},
    {"GET", "/assets/"},
};

// The views of the page, which are for anybody: what they show they ask the API for.
constexpr PathRule kPage{"GET", ""};

bool is_of(const PathRule& rule, std::string_view path) {
  if (rule.path.size() < 2 || !rule.path.ends_with('/')) return path == rule.path;
  return path.starts_with(rule.path) && path.ends_with(rule.suffix) &&
         path.size() > rule.path.size() + rule.suffix.size();
}

}  // namespace

FoundPath find_path(std::string_view method, std::string_view path) {
  FoundPath found;
  if (method == "HEAD") method = "GET";
  if (is_page_path(path)) {
    found.allowed = kPage.method;
    if (method == kPage.method) found.rule = &kPage;
    return found;
  }
  bool is_of_suffix = false;  // "/api/v1/jobs/ID/mfu" is no job of the name "ID/mfu"
  for (const PathRule& rule : kPaths) {
    if (!is_of(rule, path) || (is_of_suffix && rule.suffix.empty())) continue;
    is_of_suffix = is_of_suffix || !rule.suffix.empty();
    if (rule.method == method && found.rule == nullptr) found.rule = &rule;
    if (!found.allowed.empty()) found.allowed += ", ";
    found.allowed += rule.method;
  }
  return found;
}

}  // namespace flopsight::app
