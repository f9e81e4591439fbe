// simdjson's on-demand reader: one pass over the bytes, no tree between them and the values, and a
// place for every error. Fields may come in any order and unknown ones are skipped, so that
// "stats", "histograms" and whatever a later server adds do no harm.
#include "wire/prometheus_api.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace flopsight::wire {
namespace {

namespace od = simdjson::ondemand;
using base::Error;
using base::ErrorCode;
using base::Status;

constexpr std::size_t kServerTextBytesMax = 500;  // of an error or warning of the server
constexpr double kUnixSecondsMax = 9e12;          // its milliseconds are exact in a double

// What the server says of itself around "data".
struct Envelope {
  std::string status;
  std::string error_type;
  std::string error;
  std::string result_type;
  std::vector<std::string> warnings;
  bool is_partial = false;
};

Error at_byte(std::size_t byte, const std::string& what) {
  return Error{ErrorCode::kInvalid, "JSON at byte " + std::to_string(byte) + ": " + what};
}

// The byte where UTF-8 breaks, near enough to look at: the first byte that no character can begin
// or continue with.
std::size_t invalid_utf8_at(std::string_view text) {
  std::size_t due = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool continues = (byte & 0xc0) == 0x80;
    if (continues != (due > 0) || byte > 0xf4 || byte == 0xc0 || byte == 0xc1) return i;
    due = continues ? due - 1 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
  }
  return text.size();
}

// One JSON text and where the reading of it stands.
class Reader {
 public:
  explicit Reader(std::string_view json) : text_(json), size_(json.size()) {}

  base::Result<od::object> open() {
    if (size_ == 0) return at_byte(0, "empty, expected an object");
    if (auto code = parser_.iterate(text_).get(document_)) return first_pass_failure(code);
    od::object object;
    if (auto code = document_.get_object().get(object)) {
      if (code != simdjson::INCOMPLETE_ARRAY_OR_OBJECT) return broken(code, "an object");
      return at_byte(size_, "expected '}' as the last byte");
    }
    return object;
  }

  Status close() {
    const char* place = nullptr;
    if (document_.current_location().get(place)) return {};  // beyond the end: nothing follows
    return at_byte(offset_of(place), "text after the end");
  }

  Error broken(simdjson::error_code code, std::string_view expected) {
    const char* place = nullptr;
    const std::size_t byte = document_.current_location().get(place) ? size_ : offset_of(place);
    std::string what = "expected " + std::string(expected);
    if (code != simdjson::INCORRECT_TYPE) what += " (" + std::string(error_message(code)) + ")";
    return at_byte(byte, what);
  }

  // visit(key, value) -> Status for each field.
  template <typename Visit>
  Status each_field(od::object object, Visit visit) {
    for (auto result : object) {
      od::field field;
      if (auto code = std::move(result).get(field)) return broken(code, "a field of an object");
      std::string_view key;
      if (auto code = field.unescaped_key().get(key)) return broken(code, "the name of a field");
      od::value value = field.value();
      FLOPSIGHT_RETURN_IF_ERROR(visit(key, value));
    }
    return {};
  }

  // visit(element, index) -> Status for each element; null counts as an empty array.
  template <typename Visit>
  Status each_element(od::value value, std::string_view expected, Visit visit) {
    bool null = false;
    if (auto code = value.is_null().get(null)) return broken(code, expected);
    if (null) return {};
    od::array array;
    if (auto code = value.get_array().get(array)) return broken(code, expected);
    std::size_t index = 0;
    for (auto result : array) {
      od::value element;
      if (auto code = std::move(result).get(element)) return broken(code, expected);
      FLOPSIGHT_RETURN_IF_ERROR(visit(element, index++));
    }
    return {};
  }

  base::Result<std::string_view> text(od::value value, std::string_view expected) {
    std::string_view text;
    if (auto code = value.get_string().get(text)) return broken(code, expected);
    return text;
  }

 private:
  std::size_t offset_of(const char* place) const {
    return std::min(static_cast<std::size_t>(place - text_.data()), size_);
  }

  // Before any value is read, simdjson finds the strings and checks UTF-8, and does not say where.
  Error first_pass_failure(simdjson::error_code code) const {
    std::size_t byte = 0;
    if (code == simdjson::UTF8_ERROR) byte = invalid_utf8_at({text_.data(), size_});
    if (code == simdjson::UNCLOSED_STRING) byte = size_;
    return at_byte(byte, error_message(code));
  }

  simdjson::padded_string text_;  // a copy: simdjson reads a little beyond the end
  std::size_t size_;
  od::parser parser_;
  od::document document_;
};

// ---- Parts of an answer

Status read_labels(Reader& reader, od::value value, ApiSeries& series) {
  od::object labels;
  if (auto code = value.get_object().get(labels)) return reader.broken(code, "an object of labels");
  return reader.each_field(labels, [&](std::string_view name, od::value text) -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string_view label, reader.text(text, "a label value"));
    series.labels.emplace_back(name, label);
    return {};
  });
}

// "1.5", "+Inf", "NaN", "1e+06".
std::optional<double> parse_value(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  // Unlike base::parse_number: samples may be anything.
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A text as above; some proxies print numbers as such. Nothing for null.
base::Result<std::optional<double>> read_value(Reader& reader, od::value value) {
  double number = 0;
  bool null = false;
  if (auto code = value.is_null().get(null)) return reader.broken(code, "a sample value");
  if (null) return std::optional<double>();
  od::json_type type{};
  if (auto code = value.type().get(type)) return reader.broken(code, "a sample value");
  if (type == od::json_type::number) {
    if (auto code = value.get_double().get(number)) return reader.broken(code, "a sample value");
    return std::optional<double>(number);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string_view text, reader.text(value, "a sample value"));
  if (const auto parsed = parse_value(text)) return parsed;
  return reader.broken(simdjson::INCORRECT_TYPE,
                       "a number in text form, found \"" + base::printable(text, 40) + "\"");
}

base::Result<std::int64_t> read_time(Reader& reader, od::value value) {
  double seconds = 0;
  if (auto code = value.get_double().get(seconds)) return reader.broken(code, "a time");
  if (!(std::abs(seconds) <= kUnixSecondsMax)) {
    return reader.broken(simdjson::INCORRECT_TYPE, "a time in Unix seconds");
  }
  return std::llround(seconds * 1000.0);
}

// [seconds, "value"]; nothing for null in its place or the value's.
Status read_point(Reader& reader, od::value value, std::vector<ApiPoint>& points) {
  ApiPoint point;
  std::optional<double> number;
  std::size_t parts = 0;
  FLOPSIGHT_RETURN_IF_ERROR(
      reader.each_element(value, "[time, value]", [&](od::value part, std::size_t index) -> Status {
        ++parts;
        if (index == 0) {
          FLOPSIGHT_ASSIGN_OR_RETURN(point.unix_milliseconds, read_time(reader, part));
        } else if (index == 1) {
          FLOPSIGHT_ASSIGN_OR_RETURN(number, read_value(reader, part));
        }
        return {};
      }));
  if (parts == 2 && number) {
    point.value = *number;
    points.push_back(point);
  }
  if (parts == 2 || parts == 0) return {};
  return reader.broken(simdjson::INCORRECT_TYPE, "[time, value] before here");
}

// Ascending, each time once: of points at one time, the last stands.
void put_in_order(std::vector<ApiPoint>& points) {
  const auto not_after = [](const ApiPoint& a, const ApiPoint& b) {
    return a.unix_milliseconds >= b.unix_milliseconds;
  };
  if (std::adjacent_find(points.begin(), points.end(), not_after) == points.end()) return;
  std::stable_sort(points.begin(), points.end(), [](const ApiPoint& a, const ApiPoint& b) {
    return a.unix_milliseconds < b.unix_milliseconds;
  });
  std::size_t kept = 0;
  for (const ApiPoint& point : points) {
    const bool repeats = kept > 0 && points[kept - 1].unix_milliseconds == point.unix_milliseconds;
    points[repeats ? kept - 1 : kept++] = point;
  }
  points.resize(kept);
}

// {"metric": {...}, "value": [...]} or "values": [[...], ...].
Status read_series(Reader& reader, od::value value, std::vector<ApiSeries>& out) {
  od::object object;
  if (auto code = value.get_object().get(object)) return reader.broken(code, "a series");
  ApiSeries series;
  FLOPSIGHT_RETURN_IF_ERROR(
      reader.each_field(object, [&](std::string_view key, od::value part) -> Status {
        if (key == "metric") return read_labels(reader, part, series);
        if (key == "value") return read_point(reader, part, series.points);
        if (key != "values") return {};
        return reader.each_element(
            part, "an array of [time, value]",
            [&](od::value point, std::size_t) { return read_point(reader, point, series.points); });
      }));
  put_in_order(series.points);
  out.push_back(std::move(series));
  return {};
}

// A vector and a matrix are arrays of objects; a scalar is one [time, value] in their place, and so
// is the result of a text in quotes, whose value is left to the check of "resultType".
Status read_result(Reader& reader, od::value value, std::vector<ApiSeries>& out) {
  ApiPoint scalar;
  std::size_t parts = 0;
  FLOPSIGHT_RETURN_IF_ERROR(reader.each_element(
      value, "an array of results", [&](od::value element, std::size_t) -> Status {
        od::json_type type{};
        if (auto code = element.type().get(type)) return reader.broken(code, "a result");
        if (type == od::json_type::object && parts == 0) return read_series(reader, element, out);
        if (++parts == 1) {
          FLOPSIGHT_ASSIGN_OR_RETURN(scalar.unix_milliseconds, read_time(reader, element));
        } else {
          FLOPSIGHT_ASSIGN_OR_RETURN(const std::string_view text, reader.text(element, "a value"));
          scalar.value = parse_value(text).value_or(std::nan(""));
        }
        return {};
      }));
  if (parts == 0) return {};
  if (parts != 2 || !out.empty()) {
    return reader.broken(simdjson::INCORRECT_TYPE, "series or one [time, value] before here");
  }
  ApiSeries series;
  series.points.push_back(scalar);
  out.push_back(std::move(series));
  return {};
}

Status read_data(Reader& reader, od::value value, Envelope& envelope, ApiAnswer& answer) {
  bool null = false;
  if (auto code = value.is_null().get(null)) return reader.broken(code, "the answer's data");
  if (null) return {};
  od::object data;
  if (auto code = value.get_object().get(data)) return reader.broken(code, "the answer's data");
  return reader.each_field(data, [&](std::string_view key, od::value part) -> Status {
    if (key == "resultType") {
      FLOPSIGHT_ASSIGN_OR_RETURN(envelope.result_type, reader.text(part, "the type of the result"));
    } else if (key == "result") {
      answer.series.clear();
      return read_result(reader, part, answer.series);
    }
    return {};
  });
}

// ---- The envelope

Status read_texts(Reader& reader, od::value value, std::vector<std::string>& out) {
  return reader.each_element(
      value, "an array of texts", [&](od::value element, std::size_t) -> Status {
        FLOPSIGHT_ASSIGN_OR_RETURN(const std::string_view text, reader.text(element, "a text"));
        out.emplace_back(text);
        return {};
      });
}

Status read_envelope_field(Reader& reader, std::string_view key, od::value value,
                           Envelope& envelope) {
  if (key == "status") {
    FLOPSIGHT_ASSIGN_OR_RETURN(envelope.status, reader.text(value, "a status"));
  } else if (key == "errorType") {
    FLOPSIGHT_ASSIGN_OR_RETURN(envelope.error_type, reader.text(value, "the type of the error"));
  } else if (key == "error") {
    FLOPSIGHT_ASSIGN_OR_RETURN(envelope.error, reader.text(value, "the text of the error"));
  } else if (key == "warnings" || key == "infos") {
    std::vector<std::string> texts;
    FLOPSIGHT_RETURN_IF_ERROR(read_texts(reader, value, texts));
    for (const std::string& text : texts) {
      envelope.warnings.push_back(base::printable(text, kServerTextBytesMax));
    }
  } else if (key == "isPartial") {
    bool null = false;
    if (auto code = value.is_null().get(null)) return reader.broken(code, "true or false");
    if (null) return {};
    if (auto code = value.get_bool().get(envelope.is_partial)) {
      return reader.broken(code, "true or false");
    }
  }
  return {};
}

Status check_envelope(const Envelope& envelope) {
  if (envelope.status == "success") return {};
  if (envelope.status != "error") {
    return Error{ErrorCode::kInvalid, "JSON without the \"status\" of a Prometheus HTTP API"};
  }
  const std::string type = envelope.error_type.empty() ? "error" : envelope.error_type;
  return Error{
      api_error_code(envelope.error_type, envelope.error),
      base::printable(type, 40) + ": " + base::printable(envelope.error, kServerTextBytesMax)};
}

// One answer: read_data(value) -> Status takes the "data" field, the rest is the envelope's.
template <typename ReadData>
base::Result<Envelope> read_answer(Reader& reader, ReadData read_the_data) {
  Envelope envelope;
  FLOPSIGHT_ASSIGN_OR_RETURN(const od::object root, reader.open());
  FLOPSIGHT_RETURN_IF_ERROR(
      reader.each_field(root, [&](std::string_view key, od::value value) -> Status {
        if (key == "data") return read_the_data(value, envelope);
        return read_envelope_field(reader, key, value, envelope);
      }));
  FLOPSIGHT_RETURN_IF_ERROR(reader.close());
  FLOPSIGHT_RETURN_IF_ERROR(check_envelope(envelope));
  return envelope;
}

}  // namespace

base::ErrorCode api_error_code(std::string_view error_type, std::string_view error) {
  const auto says = [text = base::to_lower(error)](const auto&... words) {
    return ((text.find(words) != std::string::npos) || ...);
  };
  if (says("parse error"))
    return ErrorCode::kInvalid;  // it quotes the query, which may say anything
  // A full queue, not a large query.
  if (says("too many requests", "too many outstanding requests", "-search.maxconcurrentrequests",
           "-search.maxqueueduration")) {
    return ErrorCode::kUnavailable;
  }
  if (says("too many", "exceeded maximum resolution", "-search.max", "exceeds limit",
           "exceeds the limit", "exceeded limit", "limit exceeded", "series limit", "sample limit",
           "err-mimir-max-")) {
    return ErrorCode::kLimit;
  }
  // VictoriaMetrics puts the HTTP status where Prometheus has a word.
  for (const std::string_view type :
       {"timeout", "unavailable", "internal", "429", "500", "502", "503", "504"}) {
    if (error_type == type) return ErrorCode::kUnavailable;
  }
  return ErrorCode::kInvalid;
}

base::Result<ApiAnswer> parse_api_query(std::string_view json) {
  Reader reader(json);
  ApiAnswer answer;
  FLOPSIGHT_ASSIGN_OR_RETURN(Envelope envelope,
                             read_answer(reader, [&](od::value value, Envelope& so_far) {
                               return read_data(reader, value, so_far, answer);
                             }));
  if (envelope.result_type == "string") {
    return Error{ErrorCode::kUnsupported, "the query's result is a text, expected numbers"};
  }
  answer.warnings = std::move(envelope.warnings);
  answer.is_partial = envelope.is_partial;
  return answer;
}

base::Result<std::vector<std::string>> parse_api_strings(std::string_view json) {
  Reader reader(json);
  std::vector<std::string> strings;
  FLOPSIGHT_ASSIGN_OR_RETURN(const Envelope envelope,
                             read_answer(reader, [&](od::value value, Envelope&) {
                               return read_texts(reader, value, strings);
                             }));
  (void)envelope;
  return strings;
}

base::Result<std::vector<ApiSeries>> parse_api_series(std::string_view json) {
  Reader reader(json);
  std::vector<ApiSeries> out;
  FLOPSIGHT_ASSIGN_OR_RETURN(
      const Envelope envelope, read_answer(reader, [&](od::value value, Envelope&) {
        return reader.each_element(value, "an array of series",
                                   [&](od::value element, std::size_t) {
                                     out.emplace_back();
                                     return read_labels(reader, element, out.back());
                                   });
      }));
  (void)envelope;
  return out;
}

base::Result<ApiSeries> parse_export_line(std::string_view json) {
  Reader reader(json);
  ApiSeries series;
  std::vector<std::optional<double>> values;
  std::vector<std::int64_t> times;
  FLOPSIGHT_ASSIGN_OR_RETURN(const od::object root, reader.open());
  FLOPSIGHT_RETURN_IF_ERROR(reader.each_field(root, [&](std::string_view key, od::value value) -> Status {
    if (key == "metric") return read_labels(reader, value, series);
    if (key == "values") {
      return reader.each_element(value, "an array of values", [&](od::value element, std::size_t) -> Status {
        FLOPSIGHT_ASSIGN_OR_RETURN(values.emplace_back(), read_value(reader, element));
        return {};
      });
    }
    if (key != "timestamps") return {};
    return reader.each_element(value, "an array of times", [&](od::value element, std::size_t) -> Status {
      if (auto code = element.get_int64().get(times.emplace_back())) return reader.broken(code, "milliseconds");
      return {};
    });
  }));
  FLOPSIGHT_RETURN_IF_ERROR(reader.close());
  if (values.size() != times.size()) {
    return at_byte(0, "expected as many \"values\" as \"timestamps\", found " + std::to_string(values.size()) + " and " +
                          std::to_string(times.size()));
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (values[i]) series.points.push_back({times[i], *values[i]});
  }
  put_in_order(series.points);
  return series;
}

}  // namespace flopsight::wire
