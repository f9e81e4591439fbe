#pragma once
// A YAML document as plain values with the lines they stand on: configuration, Prometheus file_sd files, web configuration.
// Scalars stay text; what they mean is for the reader to say, who can name the line.
//
// Errors: kInvalid, "line L, column C: …"; kLimit for more than 100,000 values (aliases count each time they are used) or
// nesting deeper than 100. Empty text is a null. Duplicate keys are an error. Only the first document is read.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::base::yaml {

enum class Kind { kNull, kScalar, kList, kMap };
std::string_view kind_name(Kind kind);  // "nothing", "a value", "a list", "a mapping"

struct Field;

struct Value {
  Kind kind = Kind::kNull;
  int line = 1;
  std::string text;                                  // of a scalar
  bool quoted = false;                               // "5" is text where 5 may be a number
  std::vector<Value> items;                          // of a list
  std::vector<Field> fields;                         // of a mapping, in order

  const Value* find(std::string_view key) const;
};

struct Field {
  std::string key;
  Value value;
};

Result<Value> parse(std::string_view text);

}  // namespace flopsight::base::yaml
