#pragma once
// The filters of a question about findings, as the API and the command have them: state, kind, severity (words parted by commas), job, host, gpu, user,
// team. Without a state, what is open or acknowledged; "all" is any. Errors: kInvalid, as Parameters has them. Threads: pure.

#include <functional>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "findings/ledger.h"

namespace flopsight::app {

base::Status read_finding_query(const std::function<std::optional<std::string_view>(std::string_view name)>& parameter, findings::Query& query);

}  // namespace flopsight::app
