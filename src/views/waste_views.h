#pragma once
// The waste account as JSON, a table, CSV, a summary to mail or to post (Markdown, HTML), and a message for each user.
// Names come from outside and are escaped for each form: no name can become markup, a link or an order to a terminal.
// Threads: pure.

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/waste.h"
#include "views/service_json.h"

namespace flopsight::views {

// `head`: of an answer of the service, whose window and quality come first.
std::string waste_json(const analysis::WasteAccount& account, const AnswerHead& head);
std::string waste_table(const analysis::WasteAccount& account);
std::string waste_csv(const analysis::WasteAccount& account);
std::string waste_markdown(const analysis::WasteAccount& account);
std::string waste_html(const analysis::WasteAccount& account);

struct UserMessage {
  std::string user;
  std::string text;  // plain, lines of at most 100 characters or so
};
// `by_job`: an account by job, of all jobs, as sums are made of it; so many of a user's are listed, those that lost most; of jobs without a user nothing is said. In order of what users lost.
inline constexpr std::uint64_t kMessageJobs = 10;
std::vector<UserMessage> waste_messages(const analysis::WasteAccount& by_job, std::uint64_t jobs_max = kMessageJobs);

}  // namespace flopsight::views
