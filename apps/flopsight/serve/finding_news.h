#pragma once
// Joins the findings of the service with those who are told of them: what changes is handed on at once, silences and figures every ten seconds.
// Threads: any.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/finding_service.h"
#include "serve/notifier.h"
#include "serve/serve_config.h"

namespace flopsight::app {

class FindingNews {
 public:
  // `findings` is borrowed; before its first round. Errors: those of the ledger of notifications.
  static base::Result<std::unique_ptr<FindingNews>> start(const ServeConfig& config, FindingService& findings, ReceiverThread::Now now, ReceiverThread::Say say);

  // Cheap unless it is time.
  void refresh(units::Instant now);
  void replace(const ServeConfig& config, units::Instant now);
  std::vector<ReceiverHealth> health() const { return notifier_->health(); }

 private:
  FindingNews(FindingService& findings, std::unique_ptr<Notifier> notifier) : findings_(findings), notifier_(std::move(notifier)) {}
  base::Status tell_all(units::Instant now);

  FindingService& findings_;
  std::unique_ptr<Notifier> notifier_;
  units::Instant refreshed_;
};

}  // namespace flopsight::app
