#include <filesystem>

#include "base/text.h"
#include "findingdesk/finding_desk.h"
#include "serve/finding_query.h"
#include "serve/finding_service.h"
#include "store/disk.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using findings::Record;

class StoreDesk : public FindingDesk {
 public:
  StoreDesk(std::string folder, units::Instant now) : folder_(std::move(folder)), now_(now) {}

  Result<findings::Page> list(const std::vector<std::pair<std::string, std::string>>& filters, std::uint64_t limit) override {
    findings::Query query;
    std::string since, start, end;
    for (const auto& [name, text] : filters) {
      if (name == "since") since = text;
      if (name == "start") start = text;
      if (name == "end") end = text;
    }
    FLOPSIGHT_RETURN_IF_ERROR(read_finding_query([&](std::string_view name) -> std::optional<std::string_view> {
      for (const auto& [key, text] : filters) {
        if (key == name) return text;
      }
      return std::nullopt;
    }, query));
    if (!since.empty() || !start.empty() || !end.empty()) {
      const units::Instant until = end.empty() ? now_ : *units::parse_instant(end);
      const units::Seconds length = since.empty() ? units::Seconds(86'400) : *units::parse_duration(since);
      query.window = units::Window{start.empty() ? until - length : *units::parse_instant(start), until};
    }
    query.limit = limit;
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<findings::Ledger> ledger, read());
    return ledger->find(query);
  }
  Result<Record> show(const std::string& id) override {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<findings::Ledger> ledger, read());
    FLOPSIGHT_ASSIGN_OR_RETURN(std::optional<Record> record, ledger->record(id));
    if (!record) return Error{ErrorCode::kNotFound, "no finding with the id " + base::printable(id, 60)};
    return std::move(*record);
  }
  Result<Record> act(const std::string& id, const std::string& what, const std::string& author, const std::string& note) override {
    FLOPSIGHT_RETURN_IF_ERROR(take());
    return service_->act(FindingService::act_of(what), id, author, note, now_).within(base::printable(id, 60));
  }
  Result<std::vector<findings::Silence>> silences() override {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<findings::Ledger> ledger, read());
    FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<findings::Silence> all, ledger->silences());
    std::erase_if(all, [&](const findings::Silence& silence) { return silence.end <= now_; });
    return all;
  }
  Result<findings::Silence> add_silence(const std::string& told) override {
    FLOPSIGHT_ASSIGN_OR_RETURN(const findings::Silence silence, findings::silence_from_told(told, "", now_));
    FLOPSIGHT_RETURN_IF_ERROR(take());
    FLOPSIGHT_RETURN_IF_ERROR(service_->add_silence(silence, now_));
    return silence;
  }
  base::Status end_silence(const std::string& id) override {
    FLOPSIGHT_RETURN_IF_ERROR(take());
    return service_->remove_silence(id, now_);
  }

 private:
  Result<std::unique_ptr<findings::Ledger>> read() const {
    if (!std::filesystem::exists(findings::Ledger::path_in(folder_))) {
      return Error{ErrorCode::kNotFound, folder_ + ": no findings in it; expected the store of flopsight serve"};
    }
    return findings::Ledger::open(folder_, {true});
  }
  // A service that runs has the findings in memory, and would not see what is written beside it.
  base::Status take() {
    FLOPSIGHT_RETURN_IF_ERROR([&]() -> base::Status {
      const auto readable = read();
      return readable.ok() ? base::Status() : base::Status(readable.error());
    }());
    auto lock = store::FolderLock::take(folder_);
    if (!lock.ok()) return Error{lock.error().code, lock.error().message + "; tell that service: --server URL"};
    lock_.emplace(std::move(lock).value());
    FLOPSIGHT_ASSIGN_OR_RETURN(service_, FindingService::open(folder_, {}, {}, now_));
    return {};
  }

  std::string folder_;
  units::Instant now_;
  std::optional<store::FolderLock> lock_;
  std::unique_ptr<FindingService> service_;
};

}  // namespace

std::unique_ptr<FindingDesk> store_desk(std::string folder, units::Instant now) { return std::make_unique<StoreDesk>(std::move(folder), now); }

}  // namespace flopsight::app
