#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "views/report_views.h"

namespace flopsight::views {
namespace {

constexpr std::size_t kNameWidthMax = 52;
constexpr std::string_view kUnknown = "-";

struct Column {
  std::string head;
  std::vector<std::string> cells;
  bool left = false;
};

// Columns on screen, counting characters and not bytes.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string percent(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.1f} %", *ratio * 100) : std::string(kUnknown);
}
std::string number(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : std::string(kUnknown);
}
std::string dollars(const std::optional<double>& usd) {
  return usd ? fmt::format("{:.2f}", *usd) : std::string(kUnknown);
}

// "41.2 % (40.9-42.0)".
std::string with_band(const analysis::Summary& s) {
  if (!s.ofu_ratio) return std::string(kUnknown);
  if (!s.ofu_ratio_low) return percent(s.ofu_ratio) + " (no band)";
  return fmt::format("{} ({:.1f}-{:.1f})", percent(s.ofu_ratio), *s.ofu_ratio_low * 100,
                     *s.ofu_ratio_high * 100);
}

// Cut in the middle, as names differ at both ends.
std::string short_name(std::string_view text) {
  if (width(text) <= kNameWidthMax) return base::printable(text, text.size());
  const std::string head = base::printable(text, kNameWidthMax / 2 - 2);
  std::string_view tail = text.substr(text.size() - (kNameWidthMax / 2 - 2));
  while (!tail.empty() && (static_cast<unsigned char>(tail[0]) & 0xC0) == 0x80) tail.remove_prefix(1);
  return head + base::printable(tail, tail.size());
}

std::string group_name(const analysis::Group& group, analysis::GroupBy by) {
  std::string name;
  for (const auto& [key, value] : group.key) {
    if (!value || (by == analysis::GroupBy::kJob && key != "job" && key != "namespace") ||
        (by == analysis::GroupBy::kGpu && (key == "host" || key == "index"))) {
      continue;
    }
    name += (name.empty() ? "" : ", ") + *value;
  }
  if (!name.empty()) return short_name(name);
  return by == analysis::GroupBy::kModel ? "(unknown model)"
                                         : fmt::format("(no {})", analysis::group_by_name(by));
}

void add_row(std::vector<Column>& columns, const std::string& name, const analysis::Summary& s, int decimals) {
  const std::string cells[] = {name,
                               std::to_string(s.gpu_count),
                               with_band(s),
                               percent(s.tensor_active_ratio),
                               s.sm_clock_hertz_mean ? fmt::format("{:.0f}", *s.sm_clock_hertz_mean / 1e6)
                                                     : std::string(kUnknown),
                               percent(s.clock_loss_ratio),
                               percent(s.coverage_ratio),
                               number(s.gpu_hours_allocated, decimals),
                               number(s.gpu_hours_delivered, decimals),
                               number(s.gpu_hours_lost, decimals),
                               number(s.gpu_hours_unmeasured, decimals),
                               dollars(s.cost_usd),
                               dollars(s.cost_lost_usd),
                               dollars(s.cost_unmeasured_usd)};
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
}

// Hours and dollars that nobody can know are left out rather than shown as columns of dashes.
void drop_unknown(std::vector<Column>& columns, std::size_t first) {
  for (std::size_t i = columns.size(); i-- > first;) {
    const auto& cells = columns[i].cells;
    if (std::all_of(cells.begin(), cells.end(), [](const auto& c) { return c.empty() || c == kUnknown; })) {
      columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

std::string render(const std::vector<Column>& columns, std::size_t rule_before) {
  std::vector<std::size_t> widths;
  for (const Column& column : columns) {
    std::size_t most = width(column.head);
    for (const std::string& cell : column.cells) most = std::max(most, width(cell));
    widths.push_back(most);
  }
  std::string out;
  const auto line = [&](auto cell_of) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = cell_of(columns[i]);
      const std::string pad(widths[i] - width(cell), ' ');
      text += (i == 0 ? "" : "  ") + (columns[i].left ? cell + pad : pad + cell);
    }
    text.resize(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  const auto rule = [&] {
    std::size_t total = 2 * (columns.size() - 1);
    for (const std::size_t w : widths) total += w;
    out += std::string(total, '-') + "\n";
  };
  line([](const Column& c) -> const std::string& { return c.head; });
  rule();
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
    if (row == rule_before) rule();
    line([&](const Column& c) -> const std::string& { return c.cells[row]; });
  }
  return out;
}

// "where the time went: 31.8 % delivered, 4.5 % clock, …", of the allocated time.
std::string waterfall_text(const analysis::Waterfall& w, bool has_window) {
  std::string out;
  const auto part = [&](const std::optional<double>& ratio, std::string_view name) {
    if (ratio) out += fmt::format("{}{:.1f} % {}", out.empty() ? "" : ", ", *ratio * 100, name);
  };
  part(w.ofu_ratio, "delivered");
  if (w.clock_loss_ratio && *w.clock_loss_ratio < 0) {
    part(-*w.clock_loss_ratio, "gained by a clock above the reference");
  } else {
    part(w.clock_loss_ratio, "lost to the clock");
  }
  part(w.tensor_idle_sm_busy_ratio, "tensor pipe idle while SMs were busy");
  part(w.sm_idle_ratio, "SMs idle");
  part(w.tensor_idle_unsplit_ratio, "tensor pipe idle (SM activity not known)");
  part(w.unmeasured_ratio, "unmeasured");
  return fmt::format("Of the fleet's {}: ", has_window ? "allocated time" : "capacity at that instant") + out + "\n\n";
}

// What a reader of an empty OFU column wants to know first.
std::string unmeasured_text(const analysis::Report& report) {
  std::string out;
  for (const auto& [reason, ratio] : report.fleet_absent_ratios) {
    out += fmt::format("  {:.1f} % {}: {}\n", ratio * 100, reason, samples::quality_meaning(reason));
  }
  return out.empty() ? out : "Unmeasured\n" + out;
}

}  // namespace

std::string report_table(const analysis::Report& report) {
  std::vector<Column> columns = {{std::string(analysis::group_by_name(report.by)), {}, true},
                                 {"GPUs", {}},       {"OFU (band)", {}},  {"tensor", {}},
                                 {"MHz", {}},        {"clock loss", {}},  {"coverage", {}},
                                 {"GPU-h", {}},      {"delivered", {}},   {"lost", {}},
                                 {"unmeasured", {}}, {"USD", {}},         {"USD lost", {}},
                                 {"USD unmeas.", {}}};
  // A short window's hours would all round to 0.01.
  const int decimals = report.fleet.gpu_hours_allocated.value_or(100) < 1 ? 5 : 2;
  for (const analysis::Group& group : report.groups) {
    add_row(columns, group_name(group, report.by), group.summary, decimals);
  }
  if (report.groups_omitted_count > 0) {
    for (Column& column : columns) column.cells.emplace_back("");
    columns[0].cells.back() = fmt::format("... {} more", report.groups_omitted_count);
  }
  const std::size_t fleet_row = columns[0].cells.size();
  add_row(columns, "fleet", report.fleet, decimals);
  drop_unknown(columns, 7);
  std::string out = fmt::format("{}, {}\n\n", base::printable(report.source),
                                report.window ? units::to_rfc3339(report.window->start) + " to " +
                                                    units::to_rfc3339(report.window->end)
                                              : std::string("an instant"));
  out += render(columns, fleet_row) + "\n";
  if (report.fleet.ofu_ratio) out += waterfall_text(report.fleet_waterfall, report.window.has_value());
  out += unmeasured_text(report);
  out += "Assumed\n";
  for (const std::string& line : report.assumptions) out += "  " + base::printable(line, 400) + "\n";
  if (!report.quality.empty()) out += "Data\n";
  for (const samples::QualityEntry& entry : report.quality) {
    out += fmt::format("  {} x {}: {}{}\n", entry.count, entry.code, entry.meaning,
                       entry.where.empty() ? "" : " [" + base::printable(entry.where, 300) + "]");
  }
  return out;
}

}  // namespace flopsight::views
