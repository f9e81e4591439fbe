#pragma once
// Tells receivers of findings while the service runs: a thread for each receiver, so that one that hangs keeps no other waiting.
//
// Each thread compares the findings with what its receiver was told (notify/plan.h), sends when its pace allows (notify/pace.h), and notes what was taken in
// the ledger. So what is to be told survives a crash, and is told twice at most where the crash came between the answer and the note.
//
// Threads: every function by any.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "notify/pace.h"
#include "notify/plan.h"
#include "serve/notify_channel.h"
#include "serve/receiver_health.h"
#include "store/notify_ledger.h"

namespace flopsight::app {

struct NotifySettings {
  std::string external_url;
  std::vector<notify::Receiver> receivers;
};

// Findings that ended are to be told for so long.
inline constexpr units::Seconds kEndsTold{7 * 86'400.0};

// Past this many the ones that ended first go.
inline constexpr std::size_t kRecordsKeptMax = 50'000;

// One receiver and its thread.
class ReceiverThread {
 public:
  using Now = std::function<units::Instant()>;
  using Say = std::function<void(const std::string&)>;
  ReceiverThread(notify::Receiver receiver, std::string external_url, store::NotifyLedger& ledger, Now now, Say say);
  ~ReceiverThread();

  const notify::Receiver& receiver() const { return receiver_; }
  const std::string& external_url() const { return external_url_; }
  void look(std::shared_ptr<const notify::Records> records);
  // Begins to end; the destructor waits, for a command that runs up to ten seconds.
  void stop();
  ReceiverHealth health() const;

 private:
  void run();
  base::Status read_ledger();
  // What to wait for; nothing: look again at once.
  std::optional<units::Seconds> step(const notify::Records& records);
  // How many of these were taken in one message.
  std::size_t send(std::span<const notify::Due> due);
  void note(std::span<const notify::Due> due, bool is_given_up);
  void failed(std::span<const notify::Due> due, const SendOutcome& outcome);
  void give_up(std::span<const notify::Due> due, const std::string& why);
  void say_trouble(const std::string& trouble);

  const notify::Receiver receiver_;
  const std::string external_url_;
  store::NotifyLedger& ledger_;
  const Now now_;
  const Say say_;
  NotifyChannel channel_;
  // Of the thread.
  notify::Pace pace_;
  bool is_read_ = false;
  units::Instant since_;
  store::ToldFindings told_;
  units::Instant forgotten_;
  std::string failing_id_;  // a command's finding that fails
  std::uint64_t failing_attempts_ = 0;
  bool is_hour_full_ = false;
  std::string trouble_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<const notify::Records> records_;
  bool is_news_ = false;
  bool stopping_ = false;
  bool ended_ = false;
  ReceiverHealth health_;
  std::thread thread_;
};

class Notifier {
 public:
  // `folder`: the store's. Errors: those of the ledger.
  static base::Result<std::unique_ptr<Notifier>> open(const std::string& folder, NotifySettings settings, ReceiverThread::Now now, ReceiverThread::Say say,
                                                      std::size_t records_max = kRecordsKeptMax);
  ~Notifier();

  // Findings as they are now: first all that are open and those that ended within kEndsTold, then those that changed.
  void update(std::span<const findings::Record> records);
  // A receiver that stays as it was keeps its pace.
  void replace(NotifySettings settings);
  std::vector<ReceiverHealth> health() const;
  bool empty() const;

 private:
  Notifier(std::unique_ptr<store::NotifyLedger> ledger, ReceiverThread::Now now, ReceiverThread::Say say, std::size_t records_max)
      : ledger_(std::move(ledger)), now_(std::move(now)), say_(std::move(say)), records_max_(records_max) {}

  std::unique_ptr<store::NotifyLedger> ledger_;
  ReceiverThread::Now now_;
  ReceiverThread::Say say_;
  const std::size_t records_max_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const findings::Record>> known_;  // by id
  std::shared_ptr<const notify::Records> records_;
  std::vector<std::unique_ptr<ReceiverThread>> threads_;
};

}  // namespace flopsight::app
