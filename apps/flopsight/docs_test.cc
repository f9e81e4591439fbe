#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "base/file.h"
#include "base/regex.h"
#include "catalog/metrics.h"
#include "jobs/owners.h"
#include "run.h"
#include "training_logs/exported_metrics.h"
#include "views/report_views.h"

namespace flopsight::app {
namespace {

std::string printed(const char* page) {
  std::ostringstream out, err;
  const Env env{out, err, [] { return units::Instant{}; }};
  const char* const argv[] = {"flopsight", "docs", page};
  EXPECT_EQ(run(3, argv, env), kExitDone) << err.str();
  return out.str();
}

// FLOPSIGHT_UPDATE_GOLDEN=1 rewrites the pages.
TEST(Docs, generated_pages_are_not_stale) {
  for (const char* page : {"metrics", "attribution", "gpus", "configuration"}) {
    const std::string path = std::string(FLOPSIGHT_SOURCE_DIR "/docs/") + page + ".md";
    const std::string text = printed(page);
    if (std::getenv("FLOPSIGHT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    const auto stored = base::read_file(path);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    EXPECT_EQ(*stored, text) << page;
  }
}

// What the README shows is what the program prints.
TEST(Docs, the_readmes_outputs_are_the_programs) {
  const std::string root = FLOPSIGHT_SOURCE_DIR "/";
  const auto readme = base::read_file(root + "README.md");
  ASSERT_TRUE(readme.ok()) << readme.error().message;
  const std::vector<std::vector<std::string>> commands = {
      {"flopsight", "report", "--file", root + "examples/h100-kubernetes.prom"},
      {"flopsight", "report", "--file", root + "examples/simulated-h100-hour.prom.gz", "--prices",
       root + "examples/prices.csv"}};
  for (const auto& command : commands) {
    std::vector<const char*> argv;
    for (const std::string& word : command) argv.push_back(word.c_str());
    std::ostringstream out, err;
    const Env env{out, err, [] { return units::Instant{}; }};
    ASSERT_EQ(run(static_cast<int>(argv.size()), argv.data(), env), kExitDone) << err.str();
    std::string text = out.str();
    for (std::size_t at = 0; (at = text.find(root, at)) != std::string::npos;) text.erase(at, root.size());
    EXPECT_NE(readme->find(text), std::string::npos) << "the README lacks:\n" << text;
  }
}

// What the page and the documentation give to copy has to let through every name that is read, or the fleet stays empty without a word.
TEST(Docs, the_names_that_prometheus_is_told_to_send_are_all_that_are_read) {
  std::vector<std::string> expressions;
  for (const char* file : {"docs/serve.md", "web/src/pages/connect.ts"}) {
    const std::string text = base::read_file(std::string(FLOPSIGHT_SOURCE_DIR "/") + file).value();
    const std::string begin = "regex: \"";
    const std::size_t at = text.find(begin);
    ASSERT_NE(at, std::string::npos) << file;
    expressions.push_back(text.substr(at + begin.size(), text.find('"', at + begin.size()) - at - begin.size()));
  }
  EXPECT_EQ(expressions[0], expressions[1]);
  // Prometheus anchors expressions at both ends.
  const base::Regex kept = base::Regex::parse("^(?:" + expressions[0] + ")$").value();
  std::vector<std::string> names = {"kube_pod_owner", "kube_replicaset_owner", "kube_job_owner", "kube_pod_labels", "kube_pod_completion_time"};
  for (const std::string& name : names) EXPECT_TRUE(jobs::OwnerTable::wants(name)) << name;
  for (const catalog::MetricAlias& alias : catalog::metric_aliases()) names.emplace_back(alias.raw_name);
  for (const char* means : {"flops_per_gpu", "tokens", "loss", "mfu"}) {
    for (const auto& metric : training_logs::ExportedMetrics::builtin().named(means)) names.push_back(metric.name);
  }
  EXPECT_GT(names.size(), 100U);
  for (const std::string& name : names) EXPECT_TRUE(kept.found_in(name)) << name;
}

// The columns of `report --format csv` as docs/report.md lists them are those that are printed, in their order.
TEST(Docs, the_columns_of_a_report_as_csv_are_those_that_are_printed) {
  const auto page = base::read_file(FLOPSIGHT_SOURCE_DIR "/docs/report.md");
  ASSERT_TRUE(page.ok()) << page.error().message;
  const std::string section = page->substr(page->find("\n## CSV\n") + 1, page->find("\n## Beside the columns\n") - page->find("\n## CSV\n"));
  const std::string columns = section.substr(section.find("| column | meaning |"));
  std::string listed;
  for (std::size_t at = columns.find("\n| `"); at != std::string::npos; at = columns.find("\n| `", at + 1)) {
    listed += "," + columns.substr(at + 4, columns.find('`', at + 4) - at - 4);
  }
  for (const char* by : {"job", "user", "team", "namespace", "host", "gpu", "model", "family"}) {
    std::ostringstream out, err;
    const Env env{out, err, [] { return units::Instant{}; }};
    const char* const argv[] = {"flopsight", "report", "--file", FLOPSIGHT_SOURCE_DIR "/examples/h100-kubernetes.prom", "--by", by, "--format", "csv"};
    ASSERT_EQ(run(8, argv, env), kExitDone) << err.str();
    const std::string row = "\n| `" + std::string(by) + "` | ";
    ASSERT_NE(section.find(row), std::string::npos) << by;
    const std::size_t from = section.find(row) + row.size();
    std::string keys;
    for (const char c : section.substr(from, section.find(" |", from) - from)) {
      if (c != '`' && c != ' ') keys += c;
    }
    EXPECT_EQ(out.str().substr(0, out.str().find('\n')), keys + listed) << by;
    // Also where there is nothing to report.
    analysis::Report empty;
    empty.by = *analysis::parse_group_by(by);
    EXPECT_EQ(views::report_csv(empty), keys + listed + "\n") << by;
  }
}

TEST(Docs, an_unknown_page_is_one_line_and_exit_2) {
  std::ostringstream out, err;
  const Env env{out, err, [] { return units::Instant{}; }};
  const char* const argv[] = {"flopsight", "docs", "nothing"};
  EXPECT_EQ(run(3, argv, env), kExitUsage);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(), "flopsight docs: nothing: expected metrics, attribution, gpus or configuration\n");
}

}  // namespace
}  // namespace flopsight::app
