#include "catalog/name_pattern.h"

#include <algorithm>

#include "base/csv.h"
#include "base/text.h"

namespace flopsight::embedded {
extern const std::string_view kGpuCatalogCsv;
}

namespace flopsight::catalog {
namespace {

constexpr std::string_view kSeparators = " -_/()";

base::Status add_names(std::string_view csv, std::map<std::string, std::vector<std::string>>& out) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::CsvTable table, base::parse_csv(csv));
  const int model_column = table.column("model"), names_column = table.column("name_match");
  if (model_column < 0) return base::Error{base::ErrorCode::kInvalid, "line 1: no column \"model\""};
  for (const base::CsvRow& row : table.rows) {
    const std::string model(base::trim(row.fields[static_cast<std::size_t>(model_column)]));
    std::vector<std::string> names;
    if (names_column >= 0) names = base::split(row.fields[static_cast<std::size_t>(names_column)], '|');
    names.push_back(model);
    out[model] = std::move(names);
  }
  return {};
}

std::vector<std::string> telling_words(std::string_view name) {
  std::string text = base::to_lower(name);
  for (char& c : text) {
    if (kSeparators.find(c) != std::string_view::npos) c = ' ';
  }
  std::vector<std::string> words;
  for (std::string& word : base::split(text, ' ')) {
    const bool is_noise = std::find(kNoiseWords.begin(), kNoiseWords.end(), word) != kNoiseWords.end();
    if (!word.empty() && !is_noise) words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

std::string regex_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(".+*?()[]{}|^$\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

base::Result<std::map<std::string, std::vector<std::string>>> written_names(std::string_view user_csv) {
  std::map<std::string, std::vector<std::string>> out;
  FLOPSIGHT_RETURN_IF_ERROR(add_names(embedded::kGpuCatalogCsv, out));
  if (!user_csv.empty()) FLOPSIGHT_RETURN_IF_ERROR(add_names(user_csv, out));
  return out;
}

std::string name_pattern(const Device& device, const std::vector<std::string>& names) {
  std::string skipped;
  for (const std::string_view word : kNoiseWords) skipped += (skipped.empty() ? "" : "|") + std::string(word);
  for (const int gigabytes : device.memory_gigabytes) skipped += "|" + std::to_string(gigabytes) + "gb?";
  std::vector<std::string> written;
  for (const std::string& name : names) {
    std::string one;
    for (const std::string& word : telling_words(name)) one += (one.empty() ? "" : "S") + regex_escaped(word);
    // Digits and small letters only so far, and S where words part.
    std::string expression;
    for (const char c : one) {
      if (c == 'S') {
        expression += "[ _/()-]+(?:(?:" + skipped + ")[ _/()-]+)*";
      } else {
        expression += c;
      }
    }
    if (!expression.empty() && std::find(written.begin(), written.end(), expression) == written.end()) {
      written.push_back(std::move(expression));
    }
  }
  if (written.empty()) return {};
  std::string alternatives;
  for (const std::string& expression : written) alternatives += (alternatives.empty() ? "" : "|") + expression;
  return "(?i)[ _/()-]*(?:(?:" + skipped + ")[ _/()-]+)*(?:" + alternatives + ")(?:[ _/()-]+(?:" + skipped +
         "))*[ _/()-]*(?: mig .*)?";
}

}  // namespace flopsight::catalog
