#include "catalog/devices.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/csv.h"
#include "base/text.h"
#include "catalog/name_pattern.h"

namespace flopsight::embedded {
extern const std::string_view kGpuCatalogCsv;
}

namespace flopsight::catalog {
namespace {

// Words of a GPU name that tell no model apart.
bool is_noise(std::string_view word) {
  return std::find(kNoiseWords.begin(), kNoiseWords.end(), word) != kNoiseWords.end();
}

// As nvidia-smi prints it ("… MIG 1g.10gb") and as labels of Kubernetes nodes have it ("…-MIG-1g.10gb").
bool is_instance(std::string_view name) {
  std::string text = ' ' + base::to_lower(name) + ' ';
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '-' || c == '_'; }, ' ');
  return text.find(" mig ") != std::string::npos;
}

std::vector<std::string> name_words(std::string_view name) {
  std::string text = base::to_lower(name);
  // "NVIDIA H100 80GB HBM3 MIG 1g.10gb": the instance's profile is not part of the model.
  if (const std::size_t mig = text.find(" mig "); mig != std::string::npos) text.resize(mig);
  for (char& c : text) {
    if (c == '-' || c == '_' || c == '/' || c == '(' || c == ')') c = ' ';
  }
  std::vector<std::string> words;
  for (std::string& word : base::split(text, ' ')) {
    if (!word.empty() && !is_noise(word)) words.push_back(std::move(word));
  }
  std::sort(words.begin(), words.end());
  return words;
}

// No clock in MHz, peak in TFLOP/s, size or count is near it.
constexpr double kCellMax = 1e7;
constexpr std::size_t kColumnBytesMax = 200;

// One row being read: fetches cells by column name and remembers the first that is no number.
class RowReader {
 public:
  RowReader(const base::CsvTable& table, const base::CsvRow& row) : table_(table), row_(row) {}

  std::string text(std::string_view column) const {
    const int i = table_.column(column);
    return i < 0 ? std::string() : row_.fields[static_cast<std::size_t>(i)];
  }
  std::optional<double> number(std::string_view column) {
    const std::string cell = text(column);
    if (base::trim(cell).empty()) return std::nullopt;
    const auto value = base::parse_number(base::trim(cell));
    if ((!value || !(*value > 0 && *value < kCellMax)) && problem.empty()) {
      problem = "line " + std::to_string(row_.line) + ", column " + std::string(column) + ": \"" +
                base::printable(cell, 40) + "\", expected a number above zero and below 1e7, or nothing";
    }
    return problem.empty() ? value : std::nullopt;
  }
  template <typename Unit>
  std::optional<Unit> quantity(std::string_view column, double scale) {
    const auto value = number(column);
    if (!value) return std::nullopt;
    return Unit(*value * scale);
  }

  std::string problem;

 private:
  const base::CsvTable& table_;
  const base::CsvRow& row_;
};

Device read_device(RowReader& row) {
  Device device;
  device.model = std::string(base::trim(row.text("model")));
  device.architecture = row.text("arch");
  if (const auto sms = row.number("sm_count")) device.sm_count = static_cast<int>(*sms);
  device.nvml_max_sm_clock = row.quantity<units::Hertz>("nvml_max_sm_clock_mhz", 1e6);
  device.tensor_peak_clock = row.quantity<units::Hertz>("tensor_peak_clock_mhz", 1e6);
  for (std::size_t i = 0; i < kPrecisionCount; ++i) {
    const std::string column =
        "peak_dense_tflops_" + std::string(precision_name(static_cast<Precision>(i)));
    device.peak_dense[i] = row.quantity<units::FlopsPerSecond>(column, 1e12);
  }
  // "16/32" and "270-288" name two sizes of one model.
  std::string memory = row.text("mem_gb");
  std::replace(memory.begin(), memory.end(), '-', '/');
  for (const std::string& size : base::split(memory, '/')) {
    const auto gigabytes = base::parse_number(size);
    if (gigabytes && *gigabytes > 0 && *gigabytes < kCellMax) {
      device.memory_gigabytes.push_back(static_cast<int>(*gigabytes));
    }
  }
  device.memory_bandwidth = row.quantity<units::BytesPerSecond>("mem_bw_gbs", 1e9);
  device.board_power = row.quantity<units::Watts>("tdp_w", 1);
  device.confidence = row.text("confidence");
  device.notes = row.text("notes");
  device.source = row.text("source");
  return device;
}

// Insertions, removals and replacements of letters between two names.
std::size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = before + (a[i - 1] == b[j - 1] ? 0 : 1);
      before = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// A column that is not known would be a figure that is not used, and nobody would notice.
base::Status check_columns(const base::CsvTable& table) {
  static const std::vector<std::string> known = base::parse_csv(embedded::kGpuCatalogCsv).value().header;
  for (const std::string& column : table.header) {
    const std::string name = std::string(base::trim(column)).substr(0, kColumnBytesMax);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) { return letters_apart(name, a) < letters_apart(name, b); });
    return base::Error{base::ErrorCode::kInvalid, "line 1: no column is called \"" + base::printable(name, 40) + "\"; the nearest is \"" + *nearest + "\" (flopsight docs gpus)"};
  }
  return {};
}

// The size of the device's memory that a word of a name is.
std::optional<int> memory_size(const std::string& word, const Device& device) {
  for (const int gigabytes : device.memory_gigabytes) {
    const std::string size = std::to_string(gigabytes);
    if (word == size + "gb" || word == size + "g") return gigabytes;
  }
  return std::nullopt;
}

bool is_memory_size(const std::string& word, const Device& device) { return memory_size(word, device).has_value(); }

}  // namespace

std::string_view precision_name(Precision precision) {
  constexpr std::array<std::string_view, kPrecisionCount> kNames = {
      "fp64", "fp64_tc", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "int8", "fp4"};
  return kNames[static_cast<std::size_t>(precision)];
}

std::optional<Precision> find_precision(std::string_view name) {
  constexpr std::pair<std::string_view, Precision> kOthers[] = {
      {"bfloat16", Precision::kBf16}, {"float16", Precision::kFp16}, {"float32", Precision::kFp32},
      {"float64", Precision::kFp64},  {"mxfp8", Precision::kFp8},    {"mxfp6", Precision::kFp6}, {"mxfp4", Precision::kFp4},
      {"nvfp4", Precision::kFp4},
  };
  const std::string lower = base::to_lower(name);
  for (std::size_t i = 0; i < kPrecisionCount; ++i) {
    if (precision_name(static_cast<Precision>(i)) == lower) return static_cast<Precision>(i);
  }
  for (const auto& [other, precision] : kOthers) {
    if (other == lower) return precision;
  }
  if (lower.starts_with("fp8_")) return Precision::kFp8;  // "fp8_mx", "fp8_cs": recipes of Megatron-Bridge
  return std::nullopt;
}

int Device::mig_slices() const {
  return model == "A30" || architecture.find("GB202") != std::string::npos ? 4 : 7;
}

Device Device::as_named(std::string_view name) const {
  Device out = *this;
  for (const std::string& word : name_words(name)) {
    if (const auto gigabytes = memory_size(word, *this)) out.memory_gigabytes = {*gigabytes};
  }
  return out;
}

const DeviceCatalog& DeviceCatalog::builtin() {
  static const DeviceCatalog catalog = [] {
    DeviceCatalog built;
    const base::Status status = built.add_csv(embedded::kGpuCatalogCsv, false);
    FLOPSIGHT_CHECK(status.ok());
    return built;
  }();
  return catalog;
}

base::Result<DeviceCatalog> DeviceCatalog::with_user_rows(std::string_view csv) {
  DeviceCatalog catalog = builtin();
  FLOPSIGHT_RETURN_IF_ERROR(catalog.add_csv(csv, true));
  return catalog;
}

base::Status DeviceCatalog::add_csv(std::string_view csv, bool from_user) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::CsvTable table, base::parse_csv(csv));
  if (table.column("model") < 0) {
    return base::Error{base::ErrorCode::kInvalid, "line 1: no column \"model\""};
  }
  if (from_user) FLOPSIGHT_RETURN_IF_ERROR(check_columns(table));
  for (const base::CsvRow& row : table.rows) {
    RowReader reader(table, row);
    Device device = read_device(reader);
    if (!reader.problem.empty()) return base::Error{base::ErrorCode::kInvalid, reader.problem};
    if (device.model.empty()) {
      return base::Error{base::ErrorCode::kInvalid,
                         "line " + std::to_string(row.line) + ", column model: empty"};
    }
    device.from_user = from_user;
    const auto same = std::find_if(devices_.begin(), devices_.end(),
                                   [&](const Device& d) { return d.model == device.model; });
    const std::size_t index = static_cast<std::size_t>(same - devices_.begin());
    std::vector<std::string> alternatives = base::split(reader.text("name_match"), '|');
    alternatives.push_back(device.model);
    if (same == devices_.end()) {
      devices_.push_back(std::move(device));
    } else {
      *same = std::move(device);
    }
    for (const std::string& alternative : alternatives) {
      if (auto words = name_words(alternative); !words.empty()) {
        // A user's row is searched first, so that it can take a name over.
        patterns_.insert(from_user ? patterns_.begin() : patterns_.end(),
                         Pattern{std::move(words), index});
      }
    }
  }
  return {};
}

const Device* DeviceCatalog::find(std::string_view name) const {
  const std::vector<std::string> words = name_words(name);
  if (words.empty()) return nullptr;
  for (const Pattern& pattern : patterns_) {
    if (words == pattern.words) return &devices_[pattern.device];
  }
  for (const Pattern& pattern : patterns_) {
    if (words.size() != pattern.words.size() + 1) continue;
    std::vector<std::string> extra;
    std::set_difference(words.begin(), words.end(), pattern.words.begin(), pattern.words.end(),
                        std::back_inserter(extra));
    if (extra.size() == 1 && is_memory_size(extra[0], devices_[pattern.device])) {
      return &devices_[pattern.device];
    }
  }
  return nullptr;
}

const Device* DeviceCatalog::find_whole(std::string_view name) const { return is_instance(name) ? nullptr : find(name); }

std::string DeviceCatalog::similar(std::string_view name) const {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string> words = name_words(name);
  const auto has_digit = [](const std::string& word) { return word.find_first_of("0123456789") != std::string::npos; };
  // "h100" is a word of all of them; "h10" begins one.
  const auto is_like = [&](const std::string& known, const std::string& word) { return word.size() > 1 && has_digit(word) && known.starts_with(word); };
  std::vector<std::size_t> found;
  for (const Pattern& pattern : patterns_) {
    const bool fits = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::any_of(pattern.words.begin(), pattern.words.end(), [&](const std::string& known) { return is_like(known, word); });
    });
    if (fits && std::find(found.begin(), found.end(), pattern.device) == found.end()) found.push_back(pattern.device);
  }
  std::string list;
  for (std::size_t i = 0; i < found.size() && i < kShown; ++i) list += (i > 0 ? ", " : "") + devices_[found[i]].model;
  if (found.size() > kShown) list += " and " + std::to_string(found.size() - kShown) + " more";
  return list;
}

std::string DeviceCatalog::not_found(std::string_view name) const {
  if (is_instance(name)) {
    const Device* whole = find(name);
    return base::printable(name, 80) + ": a MIG instance, which has a part of its GPU's peak and memory; expected a whole GPU" + (whole == nullptr ? "" : ", such as " + whole->model);
  }
  const std::string models = similar(name);
  return base::printable(name, 80) + ": not in the catalogue" + (models.empty() ? "" : ", which has " + models) + " (flopsight docs gpus lists it)";
}

}  // namespace flopsight::catalog
