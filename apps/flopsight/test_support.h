#pragma once
// For tests of the whole program: files in a folder that disappears, the program run with string streams, and its
// JSON looked up by path. Not part of the program.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "env.h"
#include "run.h"
#include "units/time.h"

namespace flopsight::app::test {

using base::json::Value;

// 2026-11-29T10:00:00Z.
inline constexpr std::int64_t kStartMilliseconds = 1795946400000;

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "flopsight-test-XXXXXX").string();
    path_ = mkdtemp(name.data()) == nullptr ? "" : name;
  }
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

 private:
  std::string path_;
};

struct Answer {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// The whole program. The clock stands at 2026-11-29T12:00:00Z.
inline Answer run_program(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"flopsight"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out, err;
  const Env env{out, err, [] { return units::Instant{kStartMilliseconds + 7'200'000}; }, false};
  Answer answer;
  answer.exit_code = run(static_cast<int>(argv.size()), argv.data(), env);
  answer.out = out.str();
  answer.err = err.str();
  return answer;
}

// Command lines, and what is said of each: in one line, with exit code 2 and nothing on stdout.
using Refusals = std::vector<std::pair<std::vector<std::string>, std::string>>;
inline void expect_refused(const Refusals& cases) {
  for (const auto& [arguments, said] : cases) {
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2) << said;
    EXPECT_EQ(answer.out, "") << said;
    EXPECT_NE(answer.err.find(said), std::string::npos) << said << " in " << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  }
}

// `flopsight report` on these scrapes, each in a file of its own; `options` may name files by "@name", which `extra`
// provides.
struct Input {
  std::vector<std::string> scrapes;
  std::vector<std::string> options;
  std::vector<std::pair<std::string, std::string>> files;  // name, text
};

inline Answer run_report_on(const Input& input) {
  const TempFolder folder;
  std::vector<std::string> arguments = {"report"};
  int number = 0;
  for (const std::string& scrape : input.scrapes) {
    arguments.push_back("--file");
    arguments.push_back(folder.write("scrape" + std::to_string(++number) + ".prom", scrape));
  }
  for (const auto& [name, text] : input.files) folder.write(name, text);
  for (const std::string& option : input.options) {
    arguments.push_back(option.starts_with('@') ? folder.path() + "/" + option.substr(1) : option);
  }
  return run_program(arguments);
}

// The report as JSON; a string with the complaint when the program failed or its output is no JSON.
inline Value report(Input input) {
  input.options.insert(input.options.end(), {"--format", "json"});
  const Answer answer = run_report_on(input);
  if (answer.exit_code != 0) return Value("exit " + std::to_string(answer.exit_code) + ": " + answer.err);
  auto json = base::json::parse(answer.out);
  if (!json.ok()) return Value("not JSON: " + json.error().message);
  return std::move(json).value();
}
inline Value report(const std::string& scrape) { return report(Input{{scrape}, {}, {}}); }

// "fleet.ofu_ratio", "gpus.0.uuid". What is not there is a string that says so, and equals no expectation.
inline Value at(const Value& root, std::string_view path) {
  const Value* value = &root;
  for (const std::string& step : base::split(path, '.')) {
    const Value* next = value->find(step);
    if (const base::json::Array* array = value->as_array()) {
      const auto index = base::parse_number(step);
      if (index && *index < static_cast<double>(array->size())) {
        next = &(*array)[static_cast<std::size_t>(*index)];
      }
    }
    if (next == nullptr) {
      return Value("(no " + std::string(path) + " in " + base::json::dump(root, 0).substr(0, 400) + ")");
    }
    value = next;
  }
  return *value;
}

// NaN for null and for what is not there, so that no comparison holds.
inline double number(const Value& root, std::string_view path) {
  const Value value = at(root, path);
  return value.as_number() != nullptr ? *value.as_number() : std::numeric_limits<double>::quiet_NaN();
}

// null as "null", so that it cannot be taken for a text.
inline std::string text(const Value& root, std::string_view path) {
  const Value value = at(root, path);
  return value.as_string() != nullptr ? *value.as_string() : base::json::dump(value, 0);
}

inline std::size_t count(const Value& root, std::string_view path) {
  const Value value = at(root, path);
  return value.as_array() != nullptr ? value.as_array()->size() : 9999;
}

// The element of the list at `path` whose member `key` reads `wanted` ("null" for null).
inline Value find(const Value& root, std::string_view path, std::string_view key, std::string_view wanted) {
  const Value list = at(root, path);
  if (const base::json::Array* array = list.as_array()) {
    for (const Value& item : *array) {
      if (text(item, key) == wanted) return item;
    }
  }
  return Value("(no " + std::string(key) + " " + std::string(wanted) + " in " +
               base::json::dump(list, 0).substr(0, 400) + ")");
}
inline Value job(const Value& root, std::string_view name) { return find(root, "groups", "key.job", name); }
inline Value gpu(const Value& root, std::string_view uuid) { return find(root, "gpus", "uuid", uuid); }

// How often the report complains of `code`; 0 when it does not.
inline double quality(const Value& root, std::string_view code) {
  const Value entry = find(root, "quality", "code", code);
  return entry.as_object() != nullptr ? number(entry, "count") : 0;
}

// Whether any assumption of the report contains `part`.
inline bool assumes(const Value& root, std::string_view part) {
  const Value list = at(root, "assumptions");
  if (list.as_array() == nullptr) return false;
  for (const Value& line : *list.as_array()) {
    if (line.as_string() != nullptr && line.as_string()->find(part) != std::string::npos) return true;
  }
  return false;
}

// One sample without a time.
inline std::string sample(std::string_view metric, std::string_view labels, std::string_view value) {
  return std::string(metric) + "{" + std::string(labels) + "} " + std::string(value) + "\n";
}

// Samples from 10:00:00 on, `step_seconds` apart; "-" leaves one out.
inline std::string series(std::string_view metric, std::string_view labels, int step_seconds,
                          const std::vector<std::string>& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == "-") continue;
    const std::int64_t time = kStartMilliseconds + static_cast<std::int64_t>(i) * step_seconds * 1000;
    out += std::string(metric) + "{" + std::string(labels) + "} " + values[i] + " " + std::to_string(time) +
           "\n";
  }
  return out;
}

inline std::vector<std::string> times(std::size_t n, const std::string& value) {
  return std::vector<std::string>(n, value);
}

// Labels of an H100 SXM (tensor peak at 1830 MHz) of dcgm-exporter.
inline std::string h100(const std::string& uuid, const std::string& host, const std::string& index,
                        const std::string& more = "") {
  return "gpu=\"" + index + "\",UUID=\"" + uuid + "\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"" +
         host + "\"" + (more.empty() ? "" : "," + more);
}

inline constexpr std::string_view kTensor = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE";
inline constexpr std::string_view kClock = "DCGM_FI_DEV_SM_CLOCK";
inline constexpr std::string_view kUtil = "DCGM_FI_DEV_GPU_UTIL";
inline constexpr std::string_view kPower = "DCGM_FI_DEV_POWER_USAGE";
inline constexpr std::string_view kEngine = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
inline constexpr std::string_view kTemperature = "DCGM_FI_DEV_GPU_TEMP";

}  // namespace flopsight::app::test
