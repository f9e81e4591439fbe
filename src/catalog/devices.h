#pragma once
// What is known of each GPU model: the clock at which its tensor peak is quoted, its peaks, its size. One
// table, compiled in from gpu_catalog.csv (every row with its source and how certain it is); a user's file
// of the same columns adds rows or replaces rows of the same `model`.
//
// A name that the table does not know has no entry: there is no default GPU and no nearest neighbour.
// Units: as the types say; TFLOPS of the file become FLOP/s. Absent cells are std::nullopt.
// Threads: immutable after construction.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "units/units.h"

namespace flopsight::catalog {

enum class Precision { kFp64, kFp64Tensor, kFp32, kTf32, kFp16, kBf16, kFp8, kFp6, kInt8, kFp4 };
inline constexpr std::size_t kPrecisionCount = 10;
std::string_view precision_name(Precision precision);  // "fp64", "fp64_tc", "tf32", …
// Of such a name, or of another that is in use for it ("bfloat16", "nvfp4"), in any case.
std::optional<Precision> find_precision(std::string_view name);

struct Device {
  std::string model;  // our name: "H100-SXM5-80GB"
  std::string architecture;
  std::optional<int> sm_count;
  std::optional<units::Hertz> nvml_max_sm_clock;
  std::optional<units::Hertz> tensor_peak_clock;
  std::array<std::optional<units::FlopsPerSecond>, kPrecisionCount> peak_dense;
  std::vector<int> memory_gigabytes;  // "16/32" is two
  std::optional<units::BytesPerSecond> memory_bandwidth;
  std::optional<units::Watts> board_power;
  std::string confidence;  // "high", "medium", "low", "unknown"
  std::string notes;
  std::string source;
  bool from_user = false;

  std::optional<units::FlopsPerSecond> peak(Precision precision) const {
    return peak_dense[static_cast<std::size_t>(precision)];
  }
  // Into how many compute slices MIG divides the whole GPU: 4 for A30 and GB202 boards, otherwise 7.
  // Source: NVIDIA MIG user guide, "Supported GPUs" and "Supported MIG Profiles" (fractions of SMs).
  int mig_slices() const;
  // As `name`, by which it was found, says: with the one memory size that is in the name, where it is one of the model's.
  Device as_named(std::string_view name) const;
};

class DeviceCatalog {
 public:
  // The compiled-in table.
  static const DeviceCatalog& builtin();

  // The compiled-in table with a user's CSV on top. The user's file needs the column `model`; any other
  // column of the built-in file may be there (a new model wants name_match and tensor_peak_clock_mhz).
  // Errors: kInvalid with line and column name.
  static base::Result<DeviceCatalog> with_user_rows(std::string_view csv);

  // The model of a name as exporters print it, or nullptr. "NVIDIA-H100-80GB-HBM3" and
  // "NVIDIA H100 80GB HBM3" are one; a " MIG 1g.10gb" suffix is ignored; vGPU names are unknown.
  const Device* find(std::string_view name) const;

  // The same for those who count with the peak and the memory of a whole GPU: nullptr also for the name of a MIG instance, which has a part of them.
  const Device* find_whole(std::string_view name) const;

  // For a name that find() or find_whole() does not know: what to write instead, in a sentence. "H100: not in the catalogue, which has H100-SXM5-80GB, …".
  std::string not_found(std::string_view name) const;

  const std::vector<Device>& devices() const { return devices_; }

 private:
  struct Pattern {
    std::vector<std::string> words;  // sorted
    std::size_t device;
  };
  std::string similar(std::string_view name) const;
  base::Status add_csv(std::string_view csv, bool from_user);
  std::vector<Device> devices_;
  std::vector<Pattern> patterns_;
};

}  // namespace flopsight::catalog
