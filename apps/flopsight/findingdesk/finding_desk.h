#pragma once
// Where `flopsight findings` finds and changes them: a store folder, or a service that runs. Both give the same.
//
// Errors: kNotFound for an id, a folder or a file that is not there; kUnavailable for a folder that a service has, naming the way out, and for a
// service that does not answer; kInvalid where a service says so. Threads: one at a time.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "findingdesk/findings_options.h"
#include "findings/ledger.h"
#include "findings/silence.h"

namespace flopsight::app {

class FindingDesk {
 public:
  virtual ~FindingDesk() = default;
  // By the filters of /api/v1/findings.
  virtual base::Result<findings::Page> list(const std::vector<std::pair<std::string, std::string>>& filters, std::uint64_t limit) = 0;
  virtual base::Result<findings::Record> show(const std::string& id) = 0;
  // `what`: "acknowledge", "unacknowledge" or "resolve".
  virtual base::Result<findings::Record> act(const std::string& id, const std::string& what, const std::string& author, const std::string& note) = 0;
  virtual base::Result<std::vector<findings::Silence>> silences() = 0;
  // As /api/v1/silences takes it.
  virtual base::Result<findings::Silence> add_silence(const std::string& told) = 0;
  virtual base::Status end_silence(const std::string& id) = 0;
};

std::unique_ptr<FindingDesk> store_desk(std::string folder, units::Instant now);
// Errors: of the credentials' files.
base::Result<std::unique_ptr<FindingDesk>> server_desk(const FindingsArguments& arguments);

}  // namespace flopsight::app
