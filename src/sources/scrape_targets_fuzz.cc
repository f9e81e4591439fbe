// Any bytes as a file_sd document and as a plain entry. What is read is a URL of one line without blanks, once each.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "sources/scrape_targets.h"

namespace {

void check_target(const flopsight::sources::ScrapeTarget& target) {
  FLOPSIGHT_CHECK(target.url.starts_with("http://") || target.url.starts_with("https://"));
  FLOPSIGHT_CHECK(target.url.find_first_of(" \n\r\t") == std::string::npos);
  for (const auto& [name, value] : target.labels) {
    FLOPSIGHT_CHECK(!name.starts_with("__") && name.find('=') == std::string::npos);
    FLOPSIGHT_CHECK(value.find_first_of("\n\x1f") == std::string::npos);
  }
}

void check_error(const flopsight::base::Error& error) {
  FLOPSIGHT_CHECK(!error.message.empty() && error.message.find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kTargetsMax = 100;
  const auto targets = flopsight::sources::parse_file_sd(text, "t.yml", kTargetsMax);
  if (!targets.ok()) check_error(targets.error());
  if (targets.ok()) {
    FLOPSIGHT_CHECK(targets->size() <= kTargetsMax);
    std::set<std::string> urls;
    for (const auto& target : *targets) {
      check_target(target);
      FLOPSIGHT_CHECK(urls.insert(target.url).second);
    }
  }
  const auto one = flopsight::sources::parse_scrape_target(text);
  if (!one.ok()) check_error(one.error());
  if (one.ok()) check_target(*one);
  return 0;
}
