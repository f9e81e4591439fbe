#include "serve/notifier.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

#include "base/text.h"

namespace flopsight::app {
namespace {

using Kind = SendOutcome::Kind;

// Times on the wall are looked at again at least so often, since the clock may have been set.
constexpr units::Seconds kLookAgain{30};
constexpr units::Seconds kLedgerPause{10};
constexpr units::Seconds kForgetEvery{3600};
constexpr std::chrono::seconds kCommandGrace{10};
constexpr std::size_t kIdsShown = 5;

double chance() {
  static thread_local std::minstd_rand generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

}  // namespace

ReceiverThread::ReceiverThread(notify::Receiver receiver, std::string external_url, store::NotifyLedger& ledger, Now now, Say say)
    : receiver_(std::move(receiver)),
      external_url_(std::move(external_url)),
      ledger_(ledger),
      now_(std::move(now)),
      say_(std::move(say)),
      channel_(receiver_),
      pace_(receiver_),
      thread_([this] { run(); }) {}

ReceiverThread::~ReceiverThread() {
  stop();
  if (receiver_.is_command()) {
    // What it does should not be left half done.
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kCommandGrace, [this] { return ended_; });
  }
  channel_.stop();
  thread_.join();
}

void ReceiverThread::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  if (!receiver_.is_command()) channel_.stop();
  wake_.notify_all();
}

void ReceiverThread::look(std::shared_ptr<const notify::Records> records) {
  {
    const std::scoped_lock lock(mutex_);
    records_ = std::move(records);
    is_news_ = true;
  }
  wake_.notify_all();
}

ReceiverHealth ReceiverThread::health() const {
  const std::scoped_lock lock(mutex_);
  ReceiverHealth health = health_;
  health.name = receiver_.name;
  health.type = receiver_.type;
  return health;
}

void ReceiverThread::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::shared_ptr<const notify::Records> records = records_;
    is_news_ = false;
    lock.unlock();
    const std::optional<units::Seconds> wait = records == nullptr ? kLookAgain : step(*records);
    lock.lock();
    const auto until = std::chrono::duration<double>(std::min(wait.value_or(units::Seconds(0)).value, kLookAgain.value));
    if (wait) wake_.wait_for(lock, until, [this] { return stopping_ || is_news_; });
  }
  ended_ = true;
  lock.unlock();
  wake_.notify_all();
}

base::Status ReceiverThread::read_ledger() {
  if (is_read_) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(since_, ledger_.since(receiver_.name, now_()));
  FLOPSIGHT_ASSIGN_OR_RETURN(told_, ledger_.told(receiver_.name));
  is_read_ = true;
  return {};
}

std::optional<units::Seconds> ReceiverThread::step(const notify::Records& records) {
  const units::Instant now = now_();
  if (const base::Status read = read_ledger(); !read.ok()) {
    say_trouble("cannot read what it was told: " + read.error().message);
    return kLedgerPause;
  }
  if ((now - forgotten_).value > kForgetEvery.value) {
    forgotten_ = now;
    const units::Instant before = now - units::Seconds(2 * kEndsTold.value);
    if (ledger_.forget(receiver_.name, before).ok()) std::erase_if(told_, [&](const auto& row) { return !row.second.is_open && row.second.told < before; });
  }
  const notify::Plan plan = notify::plan(receiver_, records, told_, since_, now);
  {
    const std::scoped_lock lock(mutex_);
    health_.waiting = plan.due.size();
  }
  if (plan.due.empty()) {
    pace_.nothing_due();
    return plan.next ? *plan.next - now : kLookAgain;
  }
  const units::Instant ready = pace_.ready_at(now);
  const bool is_hour_full = pace_.is_hour_full();
  if (is_hour_full && !is_hour_full_) {
    say_("notify: " + receiver_.name + ": its limit of " + std::to_string(receiver_.per_hour) + " an hour is reached, " + std::to_string(plan.due.size()) + " findings wait");
  }
  is_hour_full_ = is_hour_full;
  if (now < ready) return ready - now;
  // All of it, message after message, unless something comes in between.
  for (std::span<const notify::Due> due = plan.due; !due.empty();) {
    const std::size_t taken = send(due);
    due = due.subspan(taken);
    const std::scoped_lock lock(mutex_);
    if (taken == 0 || stopping_ || is_news_ || pace_.is_hour_full()) break;
  }
  return std::nullopt;
}

std::size_t ReceiverThread::send(std::span<const notify::Due> all) {
  const std::size_t count = std::min(all.size(), pace_.batch());
  const std::span<const notify::Due> due = all.first(count);
  const SendOutcome outcome = channel_.send({receiver_.name, external_url_, now_(), due, all.size() - count, false}, told_);
  {
    const std::scoped_lock lock(mutex_);
    if (outcome.exit_code) ++health_.exits[*outcome.exit_code];
    if (stopping_ && outcome.kind != Kind::kTaken) return 0;
  }
  if (outcome.kind != Kind::kTaken) {
    failed(due, outcome);
    return 0;
  }
  failing_attempts_ = 0;
  note(due, false);
  pace_.taken(now_());
  {
    const std::scoped_lock lock(mutex_);
    ++health_.taken;
    health_.failures_in_a_row = 0;
    health_.last_taken = now_();
    health_.waiting = all.size() - count;
    for (const notify::Due& told : due) ++health_.told[static_cast<std::size_t>(told.telling)];
  }
  say_trouble("");
  return count;
}

void ReceiverThread::note(std::span<const notify::Due> due, bool is_given_up) {
  std::vector<store::ToldFinding> rows;
  const units::Instant now = now_();
  for (const notify::Due& told : due) rows.push_back(notify::noted(told, receiver_, told_, now, is_given_up));
  if (const base::Status put = ledger_.put(receiver_.name, rows); !put.ok()) {
    say_("notify: " + receiver_.name + ": was told, which cannot be noted, and is told again after a restart: " + put.error().message);
  }
  for (store::ToldFinding& row : rows) told_.insert_or_assign(row.finding, std::move(row));
}

void ReceiverThread::failed(std::span<const notify::Due> due, const SendOutcome& outcome) {
  if (outcome.kind == Kind::kRefused) {
    if (pace_.halve(due.size())) return;
    return give_up(due, outcome.why);
  }
  pace_.failed(now_(), outcome.retry_after, chance());
  {
    const std::scoped_lock lock(mutex_);
    ++health_.failed;
    health_.failures_in_a_row = pace_.failures_in_a_row();
  }
  if (receiver_.is_command()) {
    const std::string& id = due.front().record->id;
    failing_attempts_ = std::exchange(failing_id_, id) == id ? failing_attempts_ + 1 : 1;
    if (failing_attempts_ >= receiver_.attempts) {
      failing_attempts_ = 0;
      return give_up(due, outcome.why);
    }
  }
  // An Alertmanager is sent what is open again and again in any case.
  const bool is_too_long = pace_.failing_for(now_()).value >= receiver_.give_up.value;
  if (outcome.kind == Kind::kDenied && !receiver_.is_alertmanager() && is_too_long) return give_up(due, outcome.why);
  say_trouble(outcome.why + "; what is due waits");
}

void ReceiverThread::give_up(std::span<const notify::Due> due, const std::string& why) {
  std::string ids;
  for (std::size_t i = 0; i < std::min(due.size(), kIdsShown); ++i) ids += (i == 0 ? "" : ", ") + due[i].record->id;
  if (due.size() > kIdsShown) ids += " and " + std::to_string(due.size() - kIdsShown) + " more";
  say_("notify: " + receiver_.name + ": given up, it is not told of " + ids + ": " + why);
  note(due, true);
  const std::scoped_lock lock(mutex_);
  health_.given_up += due.size();
}

void ReceiverThread::say_trouble(const std::string& trouble) {
  // Once, not with every attempt; what changes in it from attempt to attempt is not told.
  if (trouble.empty() == trouble_.empty()) return;
  trouble_ = trouble;
  say_("notify: " + receiver_.name + (trouble.empty() ? ": takes messages again" : ": " + trouble));
}

base::Result<std::unique_ptr<Notifier>> Notifier::open(const std::string& folder, NotifySettings settings, ReceiverThread::Now now, ReceiverThread::Say say,
                                                        std::size_t records_max) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<store::NotifyLedger> ledger, store::NotifyLedger::open(folder));
  if (!ledger->damage().empty()) say("notify: " + ledger->damage());
  std::unique_ptr<Notifier> notifier(new Notifier(std::move(ledger), std::move(now), std::move(say), records_max));
  notifier->replace(std::move(settings));
  return notifier;
}

Notifier::~Notifier() {
  const std::scoped_lock lock(mutex_);
  for (const auto& thread : threads_) thread->stop();
  threads_.clear();
}

void Notifier::update(std::span<const findings::Record> records) {
  const units::Instant oldest = now_() - kEndsTold;
  const std::scoped_lock lock(mutex_);
  for (const findings::Record& record : records) {
    // What was read before another thread told of a change is old news.
    const auto known = known_.find(record.id);
    if (known != known_.end() && (known->second->changed > record.changed || (known->second->changed == record.changed && record.is_open() && !known->second->is_open()))) continue;
    auto kept = std::make_shared<findings::Record>(record);
    kept->series = {};  // the page shows it
    known_[record.id] = std::move(kept);
  }
  std::erase_if(known_, [&](const auto& of) { return of.second->resolved && *of.second->resolved < oldest; });
  auto all = std::make_shared<notify::Records>();
  for (const auto& [id, record] : known_) all->push_back(record);
  if (all->size() > records_max_) {
    // Open ones have no end.
    const auto ended = [](const auto& record) { return record->resolved.value_or(units::Instant{std::numeric_limits<std::int64_t>::max()}); };
    std::sort(all->begin(), all->end(), [&](const auto& a, const auto& b) { return ended(a) > ended(b); });
    for (std::size_t i = records_max_; i < all->size(); ++i) known_.erase((*all)[i]->id);
    all->resize(records_max_);
  }
  records_ = std::move(all);
  for (const auto& thread : threads_) thread->look(records_);
}

void Notifier::replace(NotifySettings settings) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::unique_ptr<ReceiverThread>> next;
  std::vector<notify::Receiver> fresh;
  for (notify::Receiver& receiver : settings.receivers) {
    const auto same = std::find_if(threads_.begin(), threads_.end(), [&](const auto& thread) {
      return thread != nullptr && thread->receiver() == receiver && thread->external_url() == settings.external_url;
    });
    if (same == threads_.end()) {
      fresh.push_back(std::move(receiver));
    } else {
      next.push_back(std::move(*same));
    }
  }
  std::erase(threads_, nullptr);
  for (const auto& thread : threads_) thread->stop();
  // Before another thread of the same name reads the ledger.
  threads_.clear();
  for (notify::Receiver& receiver : fresh) {
    next.push_back(std::make_unique<ReceiverThread>(std::move(receiver), settings.external_url, *ledger_, now_, say_));
    if (records_ != nullptr) next.back()->look(records_);
  }
  threads_ = std::move(next);
}

std::vector<ReceiverHealth> Notifier::health() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ReceiverHealth> out;
  for (const auto& thread : threads_) out.push_back(thread->health());
  return out;
}

bool Notifier::empty() const {
  const std::scoped_lock lock(mutex_);
  return threads_.empty();
}

}  // namespace flopsight::app
