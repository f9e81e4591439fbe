#include "exposition_page.h"

#include <fstream>

#include <unistd.h>

#include "base/json.h"
#include "base/text.h"

namespace flopsight::app {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

void ExpositionPage::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void ExpositionPage::sample(double value, std::string_view labels) {
  text_ += name_;
  if (!labels.empty()) text_.append("{").append(labels).append("}");
  text_.append(" ").append(base::json::number_text(value)).append("\n");
}

void ExpositionPage::one(std::string_view name, std::string_view type, std::string_view help, double value) {
  family(name, type, help);
  sample(value);
}

void ExpositionPage::comment(std::string_view text) { text_.append("# ").append(base::printable(text, 1'000)).append("\n"); }

std::string label(std::string_view name, std::string_view value) {
  return value.empty() ? "" : std::string(name) + "=\"" + escaped(value) + "\",";
}

std::string joined(std::string labels) {
  if (!labels.empty()) labels.pop_back();
  return labels;
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  if (!(file >> pages >> resident)) return 0;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace flopsight::app
