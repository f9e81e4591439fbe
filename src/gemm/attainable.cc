#include "gemm/attainable.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/csv.h"
#include "base/text.h"
#include "gemm/tile_choice.h"

namespace flopsight::gemm {
namespace {

using base::Error;
using base::ErrorCode;
using catalog::Precision;

struct Attainable {
  std::string_view model;  // a beginning of the catalogue's
  double sixteen_bit;
  double eight_bit;  // 0: none published
};
constexpr std::array<Attainable, 6> kAttainable = {{
    {"A100-SXM4", 0.869, 0}, {"H100-SXM5", 0.803, 0.709}, {"H200-SXM", 0.803, 0.734},
    {"B200-SXM", 0.776, 0.763}, {"GB200", 0.729, 0.723},  {"B300-SXM", 0.786, 0},
}};

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const std::size_t low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

}  // namespace

std::optional<double> attainable_ratio(const catalog::Device& device, Precision precision) {
  const double bytes = element_bytes(precision);
  for (const Attainable& row : kAttainable) {
    if (!device.model.starts_with(row.model)) continue;
    if (precision == Precision::kTf32 || bytes == 2) return row.sixteen_bit;
    if (precision == Precision::kFp8 && row.eight_bit > 0) return row.eight_bit;
  }
  return std::nullopt;
}

base::Result<units::Seconds> predicted_time(const Shape& shape, const Tile& tile, std::uint64_t splits, Precision precision, const catalog::Device& device,
                                            double share_ratio) {
  const auto peak = device.peak(precision);
  if (!peak || !device.memory_bandwidth || !device.sm_count) {
    return Error{ErrorCode::kUnsupported, device.model + ", " + std::string(catalog::precision_name(precision)) + ": peak, bandwidth or SM count is not known"};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const Quantized quantized, quantize(shape, tile, device.sm_count));
  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const double in = element_bytes(precision), out = std::max(in, 2.0);
  const double bytes = static_cast<double>(shape.batch) * ((m * k + k * n) * in + m * n * out);
  const double sms = *device.sm_count, ctas = static_cast<double>(quantized.ctas) * static_cast<double>(splits);
  const double wave_efficiency = ctas / (std::ceil(ctas / sms) * sms);
  const double compute = quantized.executed_flops / (peak->value * share_ratio * wave_efficiency);
  const double memory = bytes / (device.memory_bandwidth->value * kBandwidthRatio);
  return units::Seconds(std::max(compute, memory) + kStartSeconds);
}

base::Result<units::FlopsPerSecond> predicted_rate(const Shape& shape, const Tile& tile, std::uint64_t splits, Precision precision, const catalog::Device& device) {
  const auto share = attainable_ratio(device, precision);
  if (!share) {
    return Error{ErrorCode::kUnsupported, device.model + ", " + std::string(catalog::precision_name(precision)) + ": no attainable share of the peak is published"};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const units::Seconds time, predicted_time(shape, tile, splits, precision, device, *share));
  const double flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  return units::FlopsPerSecond(flops / time.value);
}

base::Result<std::vector<MeasuredRate>> read_measured_rates(std::string_view csv) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::CsvTable table, base::parse_csv(csv));
  constexpr std::array<std::string_view, 4> kSides = {"m", "n", "k", "batch"};
  std::vector<MeasuredRate> out;
  for (const std::string_view column : {"m", "n", "k", "precision", "tflops"}) {
    if (table.column(column) < 0) return Error{ErrorCode::kInvalid, "line 1: no column " + std::string(column) + ", expected m, n, k, precision, tflops and perhaps batch"};
  }
  for (const base::CsvRow& row : table.rows) {
    const auto cell = [&](std::string_view column) { return base::trim(row.fields[static_cast<std::size_t>(table.column(column))]); };
    const auto mistake = [&](std::string_view column, std::string_view expected) {
      return Error{ErrorCode::kInvalid, "line " + std::to_string(row.line) + ", column " + std::string(column) + ": \"" + base::printable(cell(column), 40) + "\", expected " + std::string(expected)};
    };
    MeasuredRate rate;
    rate.line = row.line;
    std::uint64_t* const sides[] = {&rate.shape.m, &rate.shape.n, &rate.shape.k, &rate.shape.batch};
    for (std::size_t i = 0; i < kSides.size(); ++i) {
      if (table.column(kSides[i]) < 0) continue;
      const auto value = base::parse_number(cell(kSides[i]));
      if (!value || *value < 1 || *value > static_cast<double>(kDimensionMax) || *value != std::floor(*value)) return mistake(kSides[i], "a whole number of 1 to " + std::to_string(kDimensionMax));
      *sides[i] = static_cast<std::uint64_t>(*value);
    }
    const auto precision = catalog::find_precision(cell("precision"));
    if (!precision) return mistake("precision", "a number format such as bf16");
    rate.precision = *precision;
    const auto tflops = base::parse_number(cell("tflops"));
    if (!tflops || *tflops <= 0 || *tflops > 1e9) return mistake("tflops", "a rate above zero");
    rate.rate = units::FlopsPerSecond(*tflops * 1e12);
    out.push_back(rate);
  }
  if (out.empty()) return Error{ErrorCode::kInvalid, "no row, expected measured rates"};
  return out;
}

base::Result<std::vector<RateCheck>> check_rates(const std::vector<MeasuredRate>& rates, const catalog::Device& device) {
  std::vector<RateCheck> out;
  out.reserve(rates.size());
  for (const MeasuredRate& rate : rates) {
    RateCheck check{rate, std::nullopt, false};
    const auto peak = device.peak(rate.precision);
    if (!peak) return Error{ErrorCode::kUnsupported, "line " + std::to_string(rate.line) + ": " + device.model + " has no known peak in " + std::string(catalog::precision_name(rate.precision))};
    check.impossible = rate.rate > *peak;
    const ChosenTile chosen = choose_tile(rate.shape, rate.precision, device, device.sm_count);
    const auto predicted = predicted_rate(rate.shape, chosen.tile, 1, rate.precision, device);
    if (!predicted.ok() && predicted.error().code != ErrorCode::kUnsupported) return predicted.error().within("line " + std::to_string(rate.line));
    if (predicted.ok()) check.predicted = *predicted;
    out.push_back(check);
  }
  return out;
}

std::optional<RateErrors> rate_errors(const std::vector<RateCheck>& checks, double flops_least) {
  std::vector<double> errors;
  for (const RateCheck& check : checks) {
    const Shape& s = check.measured.shape;
    const double flops = 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    if (check.impossible || !check.predicted || flops < flops_least) continue;
    errors.push_back(check.predicted->value / check.measured.rate.value - 1);
  }
  if (errors.empty()) return std::nullopt;
  std::vector<double> absolute;
  for (const double e : errors) absolute.push_back(std::abs(e));
  std::sort(errors.begin(), errors.end());
  std::sort(absolute.begin(), absolute.end());
  const auto near = std::upper_bound(absolute.begin(), absolute.end(), 0.25) - absolute.begin();
  return RateErrors{errors.size(), quantile(errors, 0.5), quantile(errors, 0.1), quantile(errors, 0.9), quantile(absolute, 0.5),
                    static_cast<double>(near) / static_cast<double>(absolute.size())};
}

}  // namespace flopsight::gemm
