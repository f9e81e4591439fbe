#pragma once
// A job as one word of a path or a command line: "train", or "train@ml" where it has a namespace (or cluster). Other characters than
// letters, digits, '-', '_' and '.' are "~" and two hexadecimal digits. Every job has one text. Threads: pure.

#include <optional>
#include <string>
#include <string_view>

#include "samples/gpu.h"

namespace flopsight::jobs {

std::string job_text(const samples::Holder& holder);
// Job and namespace of it; nothing for a text that no job has. Without '@' the namespace is empty, which may mean "whichever".
std::optional<samples::Holder> parse_job_text(std::string_view text);

}  // namespace flopsight::jobs
