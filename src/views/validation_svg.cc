#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/html.h"
#include "base/text.h"
#include "views/validation_views.h"

namespace flopsight::views {
namespace {

using validation::Point;

constexpr double kLeft = 70, kTop = 60, kSide = 520, kWidth = 760, kHeight = 650;

// Paul Tol's bright scheme: told apart also by those who do not see all colours.
constexpr std::array<std::string_view, 7> kColours = {"#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB"};

std::string escaped(std::string_view text) { return base::html_escaped(base::printable(text)); }

struct Scale {
  double most_ratio = 1;
  double x(double ratio) const { return kLeft + kSide * ratio / most_ratio; }
  double y(double ratio) const { return kTop + kSide * (1 - ratio / most_ratio); }
};

Scale scale_of(const std::vector<Point>& points) {
  double most = 0.1;
  for (const Point& point : points) most = std::max({most, point.mfu_ratio, point.ofu_ratio});
  return {std::ceil(most * 10 - 1e-9) / 10};
}

std::string axes(const Scale& scale) {
  std::string out = fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#666\"/>\n", kLeft, kTop, kSide, kSide);
  const int steps = static_cast<int>(std::lround(scale.most_ratio * 10));
  for (int i = 0; i <= steps; ++i) {
    const double ratio = i / 10.0;
    out += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/>\n", scale.x(ratio), kTop, kTop + kSide);
    out += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", kLeft, scale.y(ratio), kLeft + kSide, scale.y(ratio));
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{} %</text>\n", scale.x(ratio), kTop + kSide + 18, i * 10);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{} %</text>\n", kLeft - 6, scale.y(ratio) + 4, i * 10);
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">MFU from time</text>\n", kLeft + kSide / 2, kTop + kSide + 42);
  out += fmt::format("<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">OFU from counters</text>\n", kTop + kSide / 2);
  // Equality, and two points to either side.
  const double most = scale.most_ratio;
  out += fmt::format("<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"#eee\"/>\n", scale.x(0),
                     scale.y(0), scale.x(0), scale.y(0.02), scale.x(most - 0.02), scale.y(most), scale.x(most), scale.y(most), scale.x(most),
                     scale.y(most - 0.02), scale.x(0.02), scale.y(0));
  return out + fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#333\"/>\n", scale.x(0), scale.y(0), scale.x(most), scale.y(most));
}

}  // namespace

std::string validation_svg(const ExperimentHead& head, const std::vector<Point>& points) {
  const Scale scale = scale_of(points);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  out += fmt::format("<text x=\"{}\" y=\"24\" font-size=\"15\">{}OFU and MFU of matrix products, {}</text>\n", kLeft, head.simulated ? "SIMULATED: " : "",
                     escaped(head.gpu));
  out += fmt::format("<text x=\"{}\" y=\"44\">{}{}, counters: {}</text>\n", kLeft,
                     head.driver_version.empty() ? "" : "driver " + escaped(head.driver_version) + ", ", units::to_rfc3339(head.start), escaped(head.counters));
  out += axes(scale);
  double legend = kTop + 12;
  const auto rows = validation::agreement_by_precision(points);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    for (const Point& point : points) {
      if (point.what.precision != rows[i].precision) continue;
      const double x = scale.x(point.mfu_ratio);
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"none\" stroke=\"{}\"/>\n", x, scale.y(point.ofu_ratio), colour);
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, scale.y(point.ofu_adjusted_ratio()), colour);
    }
    out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>\n", kLeft + kSide + 24, legend, colour,
                       kLeft + kSide + 34, legend + 4, catalog::precision_name(rows[i].precision));
    legend += 20;
  }
  for (const std::string_view line : {"ring: OFU", "disc: OFU_adj", "grey: within 2 points"}) {
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft + kSide + 18, legend + 14, line);
    legend += 18;
  }
  return out + "</svg>\n";
}

}  // namespace flopsight::views
