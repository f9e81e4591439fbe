#include "serve/finding_news.h"

namespace flopsight::app {
namespace {

constexpr units::Seconds kRefresh{10};

NotifySettings settings_of(const ServeConfig& config) { return {config.notify_external_url, config.notify_receivers}; }

}  // namespace

base::Result<std::unique_ptr<FindingNews>> FindingNews::start(const ServeConfig& config, FindingService& findings, ReceiverThread::Now now,
                                                              ReceiverThread::Say say) {
  const units::Instant started = now();
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Notifier> notifier, Notifier::open(config.store, settings_of(config), std::move(now), std::move(say)));
  std::unique_ptr<FindingNews> news(new FindingNews(findings, std::move(notifier)));
  findings.set_told([to = news->notifier_.get()](const std::vector<findings::Transition>& transitions) {
    if (to->empty()) return;
    std::vector<findings::Record> records;
    for (const findings::Transition& transition : transitions) records.push_back(transition.record);
    to->update(records);
  });
  FLOPSIGHT_RETURN_IF_ERROR(news->tell_all(started));
  return news;
}

// Also those that ended while the service, or a receiver, was away.
base::Status FindingNews::tell_all(units::Instant now) {
  refreshed_ = now;
  if (notifier_->empty()) return {};
  findings::Query ended;
  ended.states = {findings::State::kResolved};
  ended.window = units::Window{now - kEndsTold, now + units::Seconds(86'400)};
  ended.limit = kRecordsKeptMax;
  FLOPSIGHT_ASSIGN_OR_RETURN(const findings::Page page, findings_.find(ended));
  notifier_->update(page.records);
  notifier_->update(findings_.open_records());
  return {};
}

void FindingNews::refresh(units::Instant now) {
  // Also when the clock was set back.
  const double passed_seconds = (now - refreshed_).value;
  if (notifier_->empty() || (passed_seconds >= 0 && passed_seconds < kRefresh.value)) return;
  refreshed_ = now;
  notifier_->update(findings_.open_records());
}

void FindingNews::replace(const ServeConfig& config, units::Instant now) {
  notifier_->replace(settings_of(config));
  // A receiver that is new is told what is open; an error is one of reading, which the next refresh makes good for what is open.
  (void)tell_all(now);
}

}  // namespace flopsight::app
