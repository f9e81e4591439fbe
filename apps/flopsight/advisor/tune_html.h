#pragma once
// One page without scripts or links to elsewhere, for a report that is sent around. Everything that comes from a user is escaped.

#include <string>
#include <string_view>
#include <vector>

#include "advisor/tune_answer.h"

namespace flopsight::app {

struct HtmlPage {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<BreakdownPart> parts;  // drawn as one bar, with their shares
  std::string parts_title;
  tuning::Memory memory;
  const tuning::Findings* findings = nullptr;
  std::vector<std::string> assumptions;
};
std::string html_page(const HtmlPage& page);

}  // namespace flopsight::app
