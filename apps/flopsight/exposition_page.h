#pragma once
// A page of Prometheus text (0.0.4), written family by family.

#include <string>
#include <string_view>

namespace flopsight::app {

class ExpositionPage {
 public:
  // Samples that follow are of this family. `type`: "gauge", "counter".
  void family(std::string_view name, std::string_view type, std::string_view help);
  // `labels` as label() gives them, without a comma at the end; empty: none.
  void sample(double value, std::string_view labels = {});
  void one(std::string_view name, std::string_view type, std::string_view help, double value);
  // For people; parsers skip it. One line.
  void comment(std::string_view text);
  void append(const std::string& text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

// NAME="VALUE", with a comma behind it; nothing for an empty value, which is the same as no label.
std::string label(std::string_view name, std::string_view value);
// Without the last comma.
std::string joined(std::string labels);

// Of this process; 0 where the system does not say.
double resident_bytes();

}  // namespace flopsight::app
