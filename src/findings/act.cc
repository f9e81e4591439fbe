#include "findings/act.h"

#include "base/text.h"
#include "findings/json_fields_internal.h"

namespace flopsight::findings {
namespace {

using base::Error;
using base::ErrorCode;

}  // namespace

base::Result<ToldAct> act_from_told(std::string_view text) {
  ToldAct out;
  if (base::trim(text).empty()) return out;
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value value, base::json::parse(text));
  if (value.as_object() == nullptr) return Error{ErrorCode::kInvalid, "expected an object with note"};
  for (const auto& [key, unused] : *value.as_object()) {
    static_cast<void>(unused);
    if (key != "note" && key != "author") return Error{ErrorCode::kInvalid, "\"" + base::printable(key, 40) + "\" is no key here, expected note or author"};
  }
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "note", out.note));
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "author", out.author));
  if (out.note.size() > kNoteBytesMax) return Error{ErrorCode::kLimit, "note: longer than " + std::to_string(kNoteBytesMax) + " bytes"};
  if (out.author.size() > kAuthorBytesMax) return Error{ErrorCode::kLimit, "author: longer than " + std::to_string(kAuthorBytesMax) + " bytes"};
  return out;
}

}  // namespace flopsight::findings
