#include "number_options.h"

#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/text.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kShownBytes = 40;

bool is_whole(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool octal = text.size() > 1 && text.front() == '0';
  return error == std::errc() && end == text.data() + text.size() && !octal;
}

// Nothing where the option has another kind of value.
const char* expected_of(const CLI::Option& option, const std::string& text) {
  const std::string kind = option.get_type_name();
  if (kind.starts_with("FLOAT") && !base::parse_number(text)) return "expected a finite number";
  if (kind.starts_with("UINT") && !is_whole(text)) return "expected a whole number, 0 or more, in digits";
  return nullptr;
}

}  // namespace

std::optional<double> ratio_of(std::string_view text) {
  const bool is_percent = text.ends_with('%');
  const auto number = base::parse_number(base::trim(text.substr(0, text.size() - (is_percent ? 1 : 0))));
  return number && is_percent ? std::optional(*number / 100) : number;
}

CLI::Option* in_range(CLI::Option* option, double least, double most) {
  const std::string expected = base::json::number_text(least) + " to " + base::json::number_text(most);
  return option->check(CLI::Validator(
      [least, most, expected](std::string& text) {
        const auto number = base::parse_number(text);
        return number && *number >= least && *number <= most ? std::string() : base::printable(text, kShownBytes) + ": expected a number from " + expected;
      },
      "in [" + expected + "]"));
}

std::optional<std::string> wrong_number(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& text : option->results()) {
      if (const char* expected = expected_of(*option, text)) return option->get_name() + " " + base::printable(text, kShownBytes) + ": " + expected;
    }
  }
  for (const CLI::App* command : app.get_subcommands()) {
    if (auto mistake = wrong_number(*command)) return mistake;
  }
  return std::nullopt;
}

}  // namespace flopsight::app
