#pragma once
// Typed units: a number that knows what it measures, so that watts plus joules does not compile.
// The value inside is always in the SI base unit of the name (hertz, not megahertz; seconds, bytes).
// Only products and quotients that the program uses exist; add one here when a formula needs it.
// Ratios are 0 to 1; nothing here clamps.

#include <compare>

namespace flopsight::units {

template <typename Tag>
struct Quantity {
  double value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double raw) : value(raw) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity other) const { return Quantity(value + other.value); }
  constexpr Quantity operator-(Quantity other) const { return Quantity(value - other.value); }
  constexpr Quantity operator*(double factor) const { return Quantity(value * factor); }
  constexpr Quantity operator/(double divisor) const { return Quantity(value / divisor); }
  constexpr double operator/(Quantity other) const { return value / other.value; }
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
};

using Seconds = Quantity<struct SecondsTag>;
using Hertz = Quantity<struct HertzTag>;
using Watts = Quantity<struct WattsTag>;
using Joules = Quantity<struct JoulesTag>;
using Bytes = Quantity<struct BytesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;
using Usd = Quantity<struct UsdTag>;
using GpuHours = Quantity<struct GpuHoursTag>;
using UsdPerGpuHour = Quantity<struct UsdPerGpuHourTag>;
using Ratio = Quantity<struct RatioTag>;

constexpr Joules operator*(Watts power, Seconds time) { return Joules(power.value * time.value); }
constexpr Watts operator/(Joules energy, Seconds time) { return Watts(energy.value / time.value); }
constexpr Usd operator*(GpuHours hours, UsdPerGpuHour price) {
  return Usd(hours.value * price.value);
}

constexpr Hertz megahertz(double mhz) { return Hertz(mhz * 1e6); }
constexpr GpuHours gpu_hours(Seconds gpu_time) { return GpuHours(gpu_time.value / 3600.0); }

}  // namespace flopsight::units
