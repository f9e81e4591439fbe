#include "serve/tile_overheads.h"

#include "base/json.h"

namespace flopsight::app {
namespace {

constexpr std::string_view kPrefix = "tile_overhead ";

const std::string* text_of(const base::json::Value& value, std::string_view key) {
  const base::json::Value* member = value.find(key);
  return member == nullptr ? nullptr : member->as_string();
}

}  // namespace

base::Status keep_tile_overhead(store::JobBook& book, const std::string& job, const std::string& name_space, const TileOverhead& overhead) {
  const base::json::Object key{{"job", job}, {"namespace", name_space}};
  const base::json::Object value{{"job", job}, {"namespace", name_space}, {"overhead_ratio", overhead.overhead_ratio}, {"source", overhead.source}};
  return book.put_note(std::string(kPrefix) + base::json::dump(key, 0), base::json::dump(value, 0));
}

base::Result<TileOverheads> tile_overheads(store::JobBook& book) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::string> notes, book.notes(kPrefix));
  TileOverheads out;
  for (const std::string& note : notes) {
    const auto value = base::json::parse(note);
    if (!value.ok()) continue;
    const std::string *job = text_of(*value, "job"), *name_space = text_of(*value, "namespace"), *source = text_of(*value, "source");
    const base::json::Value* ratio = value->find("overhead_ratio");
    if (job == nullptr || name_space == nullptr || source == nullptr || ratio == nullptr || ratio->as_number() == nullptr || *ratio->as_number() < 1) continue;
    out[{*job, *name_space}] = {*ratio->as_number(), *source};
  }
  return out;
}

void add_tile_overhead(const TileOverheads& overheads, const std::pair<std::string, std::string>& job, analysis::Summary& summary) {
  const auto at = overheads.find(job);
  if (at != overheads.end()) summary.set_tile_overhead(at->second.overhead_ratio, at->second.source, at->second.is_measured());
}

base::Status add_tile_overheads(store::JobBook& book, analysis::Report& report) {
  if (report.by != analysis::GroupBy::kJob) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(const TileOverheads overheads, tile_overheads(book));
  for (analysis::Group& group : report.groups) {
    add_tile_overhead(overheads, analysis::job_of(group), group.summary);
    analysis::set_below_ofu(group.waterfall, group.summary.tile_overhead_ratio, std::nullopt);
  }
  return {};
}

}  // namespace flopsight::app
