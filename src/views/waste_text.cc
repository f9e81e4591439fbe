#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/html.h"
#include "base/text.h"
#include "views/text_table.h"
#include "views/waste_views.h"

namespace flopsight::views {
namespace {

using analysis::WasteAccount;
using analysis::WasteAmounts;
using analysis::WastePart;
using analysis::WasteRow;
using text_table::Column;

// How a text from outside is written in a form.
using Escape = std::string (*)(std::string_view);

std::string plain(std::string_view text) { return base::printable(text, 200); }

// CommonMark takes a backslash before any ASCII punctuation for the character itself.
std::string markdown(std::string_view text) {
  std::string out;
  for (const char c : base::printable(text, 200)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && std::ispunct(byte) != 0) out += '\\';
    out += c;
  }
  return out;
}

std::string html(std::string_view text) { return base::html_escaped(base::printable(text, 200)); }

std::string name_of(const WasteRow& row, analysis::WasteBy by, Escape escape) {
  if (row.key.empty()) return "total";
  std::string out = row.key[0].second ? escape(*row.key[0].second) : fmt::format("(no {})", analysis::waste_by_name(by));
  if (row.key.size() > 1 && row.key[1].second) out += escape("@" + *row.key[1].second);
  return out;
}

std::string hours(double value) { return fmt::format("{:.{}f}", value, std::abs(value) < 10 ? 2 : 0); }
std::string dollars(const std::optional<double>& value) {
  return value ? fmt::format("{:.{}f}", *value, std::abs(*value) < 10 ? 2 : 0) : std::string(text_table::kUnknownCell);
}
std::string percent(double part, double whole) { return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : std::string(text_table::kUnknownCell); }

std::string window_text(const WasteAccount& account) {
  if (!account.window) return "an instant";
  return units::to_rfc3339(account.window->start) + " to " + units::to_rfc3339(account.window->end);
}

std::optional<double> usd_of(const WasteRow& row, double (*part)(const WasteAmounts&)) {
  if (!row.usd) return std::nullopt;
  return part(*row.usd);
}
double lost(const WasteAmounts& amounts) { return amounts.lost(); }
double allocated(const WasteAmounts& amounts) { return amounts.allocated(); }
double unmeasured(const WasteAmounts& amounts) { return amounts.of(WastePart::kUnmeasured); }

// The losses of a row, largest first, without those that round to nothing.
std::vector<std::pair<WastePart, double>> losses(const WasteRow& row) {
  std::vector<std::pair<WastePart, double>> out;
  const double whole = row.gpu_hours.allocated();
  for (std::size_t i = 0; i < analysis::kWastePartCount; ++i) {
    const auto part = static_cast<WastePart>(i);
    if (part == WastePart::kDelivered || part == WastePart::kUnmeasured) continue;
    // A clock above the reference is a loss below zero: with it they add up.
    if (whole > 0 && std::abs(row.gpu_hours.of(part)) >= 0.0005 * whole) out.emplace_back(part, row.gpu_hours.of(part));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

std::string main_loss(const WasteRow& row) {
  const auto list = losses(row);
  return list.empty() || list.front().second <= 0 ? std::string(text_table::kUnknownCell) : std::string(analysis::waste_part_meaning(list.front().first));
}

struct Cells {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;  // the total is the last
};

Cells cells_of(const WasteAccount& account, Escape escape) {
  Cells out;
  out.heads = {std::string(analysis::waste_by_name(account.by)), "jobs", "GPU-h", "delivered", "lost", "unmeasured", "most lost to",
               "attainable: lost", "USD", "USD lost", "USD unmeasured", "USD attainable"};
  const auto add = [&](const WasteRow& row) {
    const WasteAmounts& h = row.gpu_hours;
    out.rows.push_back({name_of(row, account.by, escape), std::to_string(row.job_count), hours(h.allocated()),
                        percent(h.of(WastePart::kDelivered), h.allocated()), percent(h.lost(), h.allocated()),
                        percent(h.of(WastePart::kUnmeasured), h.allocated()), main_loss(row),
                        row.attainable ? hours(row.attainable->gpu_hours_lost) : std::string(text_table::kUnknownCell),
                        dollars(usd_of(row, allocated)), dollars(usd_of(row, lost)), dollars(usd_of(row, unmeasured)),
                        dollars(row.attainable ? row.attainable->usd_lost : std::nullopt)});
  };
  for (const WasteRow& row : account.rows) add(row);
  add(account.total);
  return out;
}

// "4,120 GPU-hours: 34.2 % delivered …", the sentence that leads a summary.
std::string lead(const WasteAccount& account) {
  const WasteRow& t = account.total;
  const WasteAmounts& h = t.gpu_hours;
  std::string out = fmt::format("{} GPU-hours", hours(h.allocated()));
  if (t.usd) out += fmt::format(" ({} US dollars)", dollars(t.usd->allocated()));
  out += fmt::format(": {} delivered, {} lost against the peak, {} unmeasured.", percent(h.of(WastePart::kDelivered), h.allocated()),
                     percent(h.lost(), h.allocated()), percent(h.of(WastePart::kUnmeasured), h.allocated()));
  if (!t.usd && !t.usd_absent_reason.empty()) out += " It is not in dollars: " + t.usd_absent_reason + ".";
  if (t.attainable) {
    out += fmt::format(" Against what is attainable, {} GPU-hours", hours(t.attainable->gpu_hours_lost));
    if (t.attainable->usd_lost) out += fmt::format(" ({} US dollars)", dollars(t.attainable->usd_lost));
    out += fmt::format(" were lost, of {} for which there is a reference.", hours(t.attainable->gpu_hours_measured));
  } else {
    out += " What was attainable is not known: " + t.attainable_absent_reason + ".";
  }
  return out;
}

std::string cause_list(const WasteRow& row, std::string_view before, std::string_view after) {
  std::string out;
  for (const auto& [part, value] : losses(row)) {
    out += fmt::format("{}{}: {} GPU-hours, {}", before, analysis::waste_part_meaning(part), hours(value), percent(value, row.gpu_hours.allocated()));
    if (row.usd) out += fmt::format(", {} US dollars", dollars(row.usd->of(part)));
    out += after;
  }
  return out;
}

std::string title(const WasteAccount& account) {
  return std::string(account.simulated ? "SIMULATED: " : "") + "Where GPU time went, " + window_text(account);
}

}  // namespace

std::string waste_table(const WasteAccount& account) {
  const Cells cells = cells_of(account, plain);
  std::vector<Column> columns;
  for (std::size_t c = 0; c < cells.heads.size(); ++c) {
    Column column{cells.heads[c], {}, c == 0 || c == 6};
    for (const auto& row : cells.rows) column.cells.push_back(row[c]);
    columns.push_back(std::move(column));
  }
  if (account.rows_omitted_count > 0) {
    const auto at = static_cast<std::ptrdiff_t>(cells.rows.size() - 1);
    for (Column& column : columns) column.cells.insert(column.cells.begin() + at, "");
    columns[0].cells[static_cast<std::size_t>(at)] = fmt::format("... {} more", account.rows_omitted_count);
  }
  const std::size_t total_row = columns[0].cells.size() - 1;
  text_table::drop_unknown(columns, 7);
  std::string out = base::printable(account.source) + ", " + window_text(account) + "\n\n" + text_table::render(columns, total_row) + "\n";
  out += lead(account) + "\n\nLost, by cause\n" + cause_list(account.total, "  ", "\n");
  if (account.total.attainable) out += "\nAttainable: " + base::printable(account.total.attainable->reference, 300) + "\n";
  out += "\nAssumed\n";
  for (const std::string& line : account.assumptions) out += "  " + base::printable(line, 600) + "\n";
  return out;
}

std::string waste_csv(const WasteAccount& account) {
  std::string out = account.rows.empty() || account.by != analysis::WasteBy::kJob ? std::string(analysis::waste_by_name(account.by)) : "job,namespace";
  out += ",job_count,ofu_ratio,gpu_hours_allocated";
  for (const char* unit : {"gpu_hours", "usd"}) {
    for (std::size_t i = 0; i < analysis::kWastePartCount; ++i) {
      out += fmt::format(",{}_{}", unit, analysis::waste_part_name(static_cast<WastePart>(i)));
    }
  }
  out += ",attainable_gpu_hours_lost,attainable_usd_lost,attainable_reference,simulated\n";
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : std::string(); };
  const auto amounts = [&](const WasteAmounts* of) {
    for (std::size_t i = 0; i < analysis::kWastePartCount; ++i) out += "," + (of != nullptr ? number(of->parts[i]) : std::string());
  };
  for (const WasteRow& row : account.rows) {
    std::string key;
    for (const auto& [name, value] : row.key) key += (key.empty() && name == row.key.front().first ? "" : ",") + base::csv_cell(value.value_or(""));
    out += key + fmt::format(",{},{},{}", row.job_count, number(row.ofu_ratio), number(row.gpu_hours.allocated()));
    amounts(&row.gpu_hours);
    amounts(row.usd ? &*row.usd : nullptr);
    out += "," + (row.attainable ? number(row.attainable->gpu_hours_lost) : "") + "," +
           (row.attainable ? number(row.attainable->usd_lost) : "") + "," + (row.attainable ? base::csv_cell(row.attainable->reference) : "") + (account.simulated ? ",true\n" : ",false\n");
  }
  return out;
}

std::string waste_markdown(const WasteAccount& account) {
  const Cells cells = cells_of(account, markdown);
  std::string out = "# " + title(account) + "\n\n" + lead(account) + "\n\n" + cause_list(account.total, "* ", "\n") + "\n";
  const auto line = [&](const std::vector<std::string>& row) {
    out += "|";
    for (const std::string& cell : row) out += " " + cell + " |";
    out += "\n";
  };
  line(cells.heads);
  line(std::vector<std::string>(cells.heads.size(), "---"));
  for (const auto& row : cells.rows) line(row);
  if (account.rows_omitted_count > 0) out += fmt::format("\nand {} more\n", account.rows_omitted_count);
  out += "\nAssumed:\n\n";
  for (const std::string& text : account.assumptions) out += "* " + markdown(base::printable(text, 600)) + "\n";
  return out;
}

std::string waste_html(const WasteAccount& account) {
  const Cells cells = cells_of(account, html);
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + html(title(account)) +
                    "</title><style>body{font-family:sans-serif;max-width:75em;margin:2em auto}table{border-collapse:collapse}"
                    "td,th{border:1px solid #bbb;padding:.2em .5em;text-align:left}</style></head><body>\n<h1>" +
                    html(title(account)) + "</h1>\n<p>" + html(lead(account)) + "</p>\n<ul>\n" + cause_list(account.total, "<li>", "</li>\n") +
                    "</ul>\n<table>\n";
  const auto line = [&](const std::vector<std::string>& row, const char* tag) {
    out += "<tr>";
    for (const std::string& cell : row) out += fmt::format("<{0}>{1}</{0}>", tag, cell);
    out += "</tr>\n";
  };
  line(cells.heads, "th");
  for (const auto& row : cells.rows) line(row, "td");
  out += "</table>\n";
  if (account.rows_omitted_count > 0) out += fmt::format("<p>and {} more</p>\n", account.rows_omitted_count);
  out += "<p>Assumed:</p>\n<ul>\n";
  for (const std::string& text : account.assumptions) out += "<li>" + html(base::printable(text, 600)) + "</li>\n";
  return out + "</ul>\n</body></html>\n";
}

std::vector<UserMessage> waste_messages(const WasteAccount& by_job, std::uint64_t jobs_max) {
  std::vector<UserMessage> out;
  std::map<std::string, std::vector<const WasteRow*>> by_user;
  std::vector<std::string> order;
  for (const WasteRow& row : by_job.rows) {
    if (row.user.empty()) continue;
    auto& rows = by_user[row.user];
    if (rows.empty()) order.push_back(row.user);
    rows.push_back(&row);
  }
  for (const std::string& user : order) {
    WasteAccount mine;
    mine.by = by_job.by;
    mine.window = by_job.window;
    mine.simulated = by_job.simulated;
    WasteRow& sum = mine.total;
    sum.attainable_absent_reason = "no target, and no other run of their families";
    bool has_prices = true;
    for (const WasteRow* row : by_user[user]) {
      sum.gpu_hours.add(row->gpu_hours, 1);
      sum.job_count += row->job_count;
      has_prices = has_prices && row->usd.has_value();
      if (!sum.usd) sum.usd = WasteAmounts{};
      if (row->usd) sum.usd->add(*row->usd, 1);
      if (!row->attainable) continue;
      if (!sum.attainable) sum.attainable = analysis::Attainable{0, 0.0, 0, ""};
      sum.attainable->gpu_hours_lost += row->attainable->gpu_hours_lost;
      sum.attainable->gpu_hours_measured += row->attainable->gpu_hours_measured;
      if (sum.attainable->usd_lost && row->attainable->usd_lost) *sum.attainable->usd_lost += *row->attainable->usd_lost;
      else sum.attainable->usd_lost.reset();
    }
    if (!has_prices) sum.usd.reset();
    std::string text = fmt::format("{}Your {} {} held ", by_job.simulated ? "SIMULATED. " : "", sum.job_count, sum.job_count == 1 ? "job" : "jobs") +
                       lead(mine) + "\n" + window_text(by_job) + "\n\nMost was lost to\n" + cause_list(sum, "  ", "\n") + "\nYour jobs, by what they lost\n";
    for (std::size_t i = 0; i < std::min<std::uint64_t>(jobs_max, by_user[user].size()); ++i) {
      const WasteRow& row = *by_user[user][i];
      text += fmt::format("  {}: {} GPU-hours, {} lost, most to: {}\n", name_of(row, by_job.by, plain), hours(row.gpu_hours.allocated()),
                          percent(row.gpu_hours.lost(), row.gpu_hours.allocated()), main_loss(row));
    }
    if (by_user[user].size() > jobs_max) text += fmt::format("  and {} more\n", by_user[user].size() - jobs_max);
    text += "\nLost is against the tensor peak, which no program reaches.\n";
    out.push_back({user, std::move(text)});
  }
  return out;
}

}  // namespace flopsight::views
