#include "serve/slurm_query.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "net/http_client.h"
#include "serve/child_process.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::size_t kProblemsMax = 10;
constexpr std::size_t kTokenBytesMax = 64 * 1024;
// Newest first: v0.0.36 came with Slurm 20.11, v0.0.44 with 25.11.
constexpr std::string_view kVersions[] = {"v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41",
                                          "v0.0.40", "v0.0.39", "v0.0.38", "v0.0.37"};

std::string unix_socket_of(const std::string& url) {
  return url.starts_with("unix:") ? url.substr(url.starts_with("unix://") ? 7 : 5) : "";
}

Result<net::HttpClient> client_of(const SlurmSource& source) {
  net::HttpOptions options;
  options.total_timeout = source.timeout;
  options.connect_timeout = std::min(options.connect_timeout, source.timeout);
  options.retries = 0;  // the next poll comes
  options.body_bytes_max = source.answer_bytes_max;
  if (const std::string path = unix_socket_of(source.rest_url); !path.empty())
    options.unix_socket = path;
  if (!source.rest_user.empty())
    options.auth.headers.emplace_back("X-SLURM-USER-NAME", source.rest_user);
  if (!source.rest_token_file.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string text,
                               base::read_file(source.rest_token_file, kTokenBytesMax));
    // `scontrol token` prints SLURM_JWT=..., which is what people put into a file.
    std::string_view token = base::trim(text);
    if (token.starts_with("SLURM_JWT=")) token.remove_prefix(10);
    options.auth.headers.emplace_back("X-SLURM-USER-TOKEN", std::string(token));
  }
  return net::HttpClient::create(options);
}

}  // namespace

Result<std::string> SlurmQuery::command(std::vector<std::string> arguments) const {
  if (!source_.command_folder.empty()) arguments[0] = source_.command_folder + "/" + arguments[0];
  ChildOptions options;
  options.timeout = source_.timeout;
  options.output_bytes_max = source_.answer_bytes_max;
  options.stop = &stopped_;
  options.environment = {{"TZ", "UTC"}, {"SLURM_TIME_FORMAT", "standard"}, {"LC_ALL", "C"}};
  return run_child(arguments, options);
}

bool SlurmQuery::take(const std::string& what, Result<std::string> text,
                      SlurmAnswer& answer) const {
  const auto failed = [&](std::string line) {
    answer.failures.push_back(std::move(line));
    return false;
  };
  if (!text.ok()) return failed(text.error().message);
  schedulers::SlurmOptions options;
  options.cluster = source_.cluster;
  // Slurm 22.05 does not print an offset even where SLURM_TIME_FORMAT asks for it.
  const base::Zone zone = source_.zone.value_or(base::Zone::utc());
  options.zone = &zone;
  auto parsed = schedulers::read_slurm(*text, options);
  if (!parsed.ok()) return failed(what + ": " + parsed.error().message);
  answer.jobs.insert(answer.jobs.end(), std::make_move_iterator(parsed->jobs.begin()),
                     std::make_move_iterator(parsed->jobs.end()));
  answer.nodes.insert(answer.nodes.end(), std::make_move_iterator(parsed->nodes.begin()),
                      std::make_move_iterator(parsed->nodes.end()));
  answer.problem_count += parsed->problem_count;
  for (const schedulers::Problem& problem : parsed->problems) {
    if (answer.problems.size() < kProblemsMax)
      answer.problems.push_back(what + ": " + problem.where + ": " + problem.what);
  }
  return true;
}

void SlurmQuery::by_commands(units::Instant since, bool nodes, SlurmAnswer& answer) {
  if (source_.accounting) {
    // In the commands' zone, which is UTC, and without the Z that they do not know.
    std::string start = units::to_rfc3339({since.unix_milliseconds / 1000 * 1000});
    start.pop_back();
    std::vector<std::string> arguments = {
        "sacct",       "--allusers",    "--duplicates",
        "--parsable2", "--allocations", "--starttime",
        start,         "--format",      std::string(schedulers::sacct_columns())};
    answer.accounted = take("sacct", command(std::move(arguments)), answer);
  }
  answer.listed = take("scontrol show job", command({"scontrol", "show", "job", "--details"}), answer);
  if (nodes) take("scontrol show node", command({"scontrol", "show", "node", "--details"}), answer);
}

void SlurmQuery::by_rest(units::Instant since, bool nodes, SlurmAnswer& answer) {
  auto client = client_of(source_);
  if (!client.ok()) return answer.failures.push_back(client.error().within("slurmrestd").message);
  const std::string root =
      unix_socket_of(source_.rest_url).empty() ? source_.rest_url : "http://localhost";
  const auto get = [&](const std::string& path) -> Result<std::string> {
    net::HttpRequest request;
    request.url = root + path;
    request.any_status = true;
    FLOPSIGHT_ASSIGN_OR_RETURN(auto response, client->send(request));
    if (response.status == 200) return std::move(response.body);
    return Error{response.status == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
                 request.url + ": HTTP " + response.status_line + ": " +
                     base::printable(response.body)};
  };
  std::vector<std::string> versions = {source_.rest_version.empty() ? version_found_
                                                                    : source_.rest_version};
  if (versions[0].empty()) versions.assign(std::begin(kVersions), std::end(kVersions));
  Result<std::string> jobs = Error{ErrorCode::kNotFound, ""};
  std::string version;
  for (const std::string& candidate : versions) {
    if (stopped_) return;
    version = candidate;
    jobs = get("/slurm/" + version + "/jobs");
    // 404 says that it has no such version; what cannot be reached or is not allowed would not be
    // with another.
    if (jobs.ok() || jobs.error().code != ErrorCode::kNotFound) break;
  }
  if (jobs.ok()) version_found_ = version;
  if (source_.accounting && jobs.ok()) {
    answer.accounted = take("slurmrestd, slurmdb",
                            get("/slurmdb/" + version + "/jobs?start_time=uts" +
                                std::to_string(since.unix_milliseconds / 1000)),
                            answer);
  }
  const bool is_there = jobs.ok();
  answer.listed = take("slurmrestd", std::move(jobs), answer);
  if (nodes && is_there) take("slurmrestd, nodes", get("/slurm/" + version + "/nodes"), answer);
}

SlurmAnswer SlurmQuery::ask(units::Instant since, bool nodes) {
  SlurmAnswer answer;
  if (source_.rest_url.empty()) {
    by_commands(since, nodes, answer);
  } else {
    by_rest(since, nodes, answer);
  }
  return answer;
}

}  // namespace flopsight::app
