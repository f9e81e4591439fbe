#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"

namespace flopsight::base::yaml {
namespace {

constexpr int kDepthMax = 100;
constexpr std::size_t kValuesMax = 100'000;

struct Converter {
  std::size_t values = 0;

  static Error at(const YAML::Mark& mark, const std::string& what) {
    // The library counts from 0; -1 where it does not know.
    return {ErrorCode::kInvalid, "line " + std::to_string(mark.line + 1) + ", column " +
                                     std::to_string(mark.column + 1) + ": " + printable(what)};
  }

  Result<Value> convert(const YAML::Node& node, int depth) {
    if (++values > kValuesMax) {
      return Error{ErrorCode::kLimit, "more than " + std::to_string(kValuesMax) + " values"};
    }
    if (depth >= kDepthMax) {
      return Error{ErrorCode::kLimit, "nested deeper than " + std::to_string(kDepthMax) + " levels"};
    }
    Value value;
    value.line = node.Mark().line + 1;
    if (node.IsScalar()) {
      value.kind = Kind::kScalar;
      value.text = node.Scalar();
      value.quoted = node.Tag() == "!";
    } else if (node.IsSequence()) {
      value.kind = Kind::kList;
      for (const YAML::Node& item : node) {
        FLOPSIGHT_ASSIGN_OR_RETURN(Value converted, convert(item, depth + 1));
        value.items.push_back(std::move(converted));
      }
    } else if (node.IsMap()) {
      value.kind = Kind::kMap;
      for (const auto& field : node) {
        if (!field.first.IsScalar()) return at(field.first.Mark(), "a key that is no text");
        const std::string key = field.first.Scalar();
        if (value.find(key) != nullptr) return at(field.first.Mark(), "the key " + key + " stands there twice");
        FLOPSIGHT_ASSIGN_OR_RETURN(Value converted, convert(field.second, depth + 1));
        // Of an empty value the library does not know the place.
        if (converted.kind == Kind::kNull) converted.line = field.first.Mark().line + 1;
        value.fields.push_back({key, std::move(converted)});
      }
    }
    return value;
  }
};

// Whether a document has anything, and where.
class Anything : public YAML::EventHandler {
 public:
  bool is_there = false;
  YAML::Mark mark;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& at, YAML::anchor_t) override { see(at); }
  void OnScalar(const YAML::Mark& at, const std::string&, YAML::anchor_t, const std::string&) override { see(at); }
  void OnSequenceStart(const YAML::Mark& at, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { see(at); }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& at, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { see(at); }
  void OnMapEnd() override {}

 private:
  void see(const YAML::Mark& at) {
    if (!is_there) mark = at;
    is_there = true;
  }
};

}  // namespace

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kNull: return "nothing";
    case Kind::kScalar: return "a value";
    case Kind::kList: return "a list";
    case Kind::kMap: return "a mapping";
  }
  return "";
}

const Value* Value::find(std::string_view key) const {
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
  return at == fields.end() ? nullptr : &at->value;
}

Result<Value> parse(std::string_view text) {
  try {
    Converter converter;
    const std::string whole(text);
    const YAML::Node document = YAML::Load(whole);
    // Read by nobody, and whoever wrote it would not be told. LoadAll() does not come back from some texts, as what is left of them is always more.
    std::istringstream stream(whole);
    YAML::Parser parser(stream);
    Anything first, second;
    if (parser.HandleNextDocument(first) && parser.HandleNextDocument(second) && second.is_there) {
      return Converter::at(second.mark, "a second document, expected one");
    }
    return converter.convert(document, 0);
  } catch (const YAML::Exception& error) {
    return Converter::at(error.mark, error.msg);
  }
}

}  // namespace flopsight::base::yaml
