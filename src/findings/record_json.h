#pragma once
// A finding as JSON: what the store keeps, what the API answers and what the command reads back from it. docs/findings.md has the keys.
// Errors: kInvalid, naming the key. Threads: pure.

#include "base/json.h"
#include "base/result.h"
#include "findings/record.h"

namespace flopsight::findings {

// `whole`: also series, evidence and suspects, which a list leaves out.
base::json::Object record_json(const Record& record, bool whole = true);
// Of the whole form; of the short one those three are empty.
base::Result<Record> record_from_json(const base::json::Value& value);

}  // namespace flopsight::findings
