#include "training_logs/table_internal.h"

#include <algorithm>

#include "base/text.h"

namespace flopsight::training_logs {
namespace {

constexpr std::size_t kColumnsMax = 4096;

}  // namespace

bool Table::header(std::string_view text) {
  const std::vector<std::string> names = base::split(text, ',');
  if (names.size() < 2 || names.size() > kColumnsMax) return false;
  bool step = false;
  bool figure = false;
  std::vector<std::optional<Field>> found;
  for (const std::string& name : names) {
    const Field* field = column_field(base::trim(name));
    found.push_back(field == nullptr ? std::optional<Field>() : *field);
    if (field == nullptr) continue;
    (field->meaning == Meaning::kStep ? step : figure) = true;
  }
  if (!step || !figure) return false;
  columns_ = std::move(found);
  return true;
}

Extract Table::row(std::string_view text) const {
  Extract extract;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin <= text.size() && column < columns_.size(); ++column) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view cell = base::trim(text.substr(begin, end - begin));
    begin = end + 1;
    const std::optional<Field>& field = columns_[column];
    if (!field || cell.empty()) continue;
    const Printed number = read_number(cell);
    if (number.value && number.size == cell.size() &&
        put(extract.step, field->meaning, *number.value, *parse_unit(field->unit))) {
      if (field->meaning != Meaning::kStep) ++extract.figures;
    } else {
      ++extract.unparsable;
      extract.about = std::string(field->key);
    }
  }
  return extract;
}

}  // namespace flopsight::training_logs
