#pragma once
// The waste account: what was paid for and where it went, in GPU-hours and US dollars, by job, user, team, namespace, GPU model or family.
//
//   allocated = delivered + lost by cause + unmeasured        in hours, and in dollars
//
// exactly, for every row and for the total, and the rows add up to the total. The lost part is against the peak, which no program reaches: the best
// GEMM gets 80 % of an H100's, good trainings 38 to 46 %. So it is not what could be saved. Beside it stands what is lost against an attainable
// reference: the target that the user set for the GPU model (and team), else the best run of the job's family in the window, where
// it has another run; else there is none, and that part is not known. A job above its reference has lost nothing against it.
//
// Dollars are there where the price of every GPU of a row is known; unmeasured time costs as much as any other and is never called waste.
// A gain by a clock above the reference is a negative loss, and keeps the sum exact.
//
// Threads: pure.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/families.h"
#include "analysis/model_table.h"
#include "analysis/prices.h"
#include "rollups/integrate.h"
#include "samples/gpu.h"

namespace flopsight::analysis {

enum class WasteBy : std::uint8_t { kJob, kUser, kTeam, kNamespace, kModel, kFamily };
std::optional<WasteBy> parse_waste_by(std::string_view text);
std::string_view waste_by_name(WasteBy by);

// Where allocated time went. The causes are those of the waterfall.
enum class WastePart : std::uint8_t {
  kDelivered,
  kClockPowerCap, kClockThermal, kClockSetting, kClockUnexplained, kClockGain,
  kMemoryBound, kOtherKernels, kSmBusyUnsplit,
  kStalled, kCommunication, kHost, kSmallKernels, kSmIdleUnsplit,
  kTensorIdleUnsplit,
  kUnmeasured,
};
inline constexpr std::size_t kWastePartCount = 16;
std::string_view waste_part_name(WastePart part);      // the key in JSON: "clock_power_cap", …
std::string_view waste_part_meaning(WastePart part);   // a few words for people

// An amount by part, in hours or in dollars.
struct WasteAmounts {
  std::array<double, kWastePartCount> parts{};
  double of(WastePart part) const { return parts[static_cast<std::size_t>(part)]; }
  double allocated() const;
  double lost() const;  // what is neither delivered nor unmeasured
  void add(const WasteAmounts& other, double weight);
};

// Against what could be reached.
struct Attainable {
  double gpu_hours_lost = 0;
  std::optional<double> usd_lost;
  double gpu_hours_measured = 0;  // of the time for which there is a reference
  std::string reference;          // "target 0.50", "best of family … 0.43", "targets and bests of families"
};

struct WasteRow {
  std::vector<std::pair<std::string, std::optional<std::string>>> key;  // absent: nobody, unknown
  std::uint64_t job_count = 0;
  std::string user;                     // of a row by job
  WasteAmounts gpu_hours;
  std::optional<WasteAmounts> usd;
  std::string usd_absent_reason;         // why there are none: the models without a price
  std::optional<Attainable> attainable;
  std::string attainable_absent_reason;  // why there is none
  std::optional<double> ofu_ratio;       // of the measured time
};

struct WasteAccount {
  WasteBy by = WasteBy::kTeam;
  std::optional<units::Window> window;
  std::string source;
  bool simulated = false;
  WasteRow total;
  std::vector<WasteRow> rows;  // by what was lost against the attainable, in dollars or hours, then against the peak, most first
  std::uint64_t rows_omitted_count = 0;
  std::vector<std::string> assumptions;
};

struct WasteOptions {
  WasteBy by = WasteBy::kTeam;
  std::optional<std::uint64_t> top;
  Prices prices;
  ModelTable targets;                     // attainable OFU
  const FamilyRule* families = nullptr;   // borrowed; null: none
  std::string source;
  std::vector<std::string> assumptions;   // of the source, put first
};
base::Result<ModelTable> parse_targets(std::string_view text);

// What a holder had of a model; nobody's is an entry of its own. By holder (-1: nobody) and model, as the exporter prints it where it is not known.
struct HeldOfModel {
  std::optional<samples::HolderId> holder;
  std::string model;  // the catalogue's name; empty: unknown
  std::string model_raw;
  rollups::Totals totals;
  std::uint64_t gpu_count = 0;
};
using WasteHeld = std::map<std::pair<std::int64_t, std::string>, HeldOfModel>;

// One GPU, or all that a job had of a model, after another; then the account.
class WasteBuilder {
 public:
  using HolderOf = std::function<const samples::Holder&(samples::HolderId)>;
  // Both are borrowed. `holder` gives a holder by its id.
  WasteBuilder(HolderOf holder, const WasteOptions& options) : holder_(std::move(holder)), options_(options) {}
  void add(const rollups::GpuTime& gpu);
  WasteAccount finish(const std::optional<units::Window>& window) const;

 private:
  HolderOf holder_;
  const WasteOptions& options_;
  WasteHeld held_;
};

}  // namespace flopsight::analysis
