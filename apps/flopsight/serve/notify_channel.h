#pragma once
// One message to one receiver: over HTTP, or a run of a command. Files with credentials are read for every message, so that new ones count at once.
// Threads: one at a time; stop() by any.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/http_client.h"
#include "notify/messages.h"
#include "notify/receiver.h"
#include "store/notify_ledger.h"

namespace flopsight::app {

struct SendOutcome {
  enum class Kind : std::uint8_t {
    kTaken,
    kLater,    // may succeed later: refused connection, time-out, 429, 5xx, a file that cannot be read, a command that fails
    kDenied,   // 4xx that is not about what is in the message: 401, 403, 404, …, and a redirect
    kRefused,  // 400, 413, 422: not with this in it
  };
  Kind kind = Kind::kTaken;
  std::string why;  // one line without the secret parts of a URL
  std::optional<units::Seconds> retry_after;
  std::optional<int> exit_code;  // of a command that ran to its end
};

class NotifyChannel {
 public:
  explicit NotifyChannel(notify::Receiver receiver) : receiver_(std::move(receiver)) {}

  // A command gets the first finding only. `told` has the labels of alerts that end.
  SendOutcome send(const notify::Message& message, const store::ToldFindings& told);
  // Ends a send() that waits, and every later one.
  void stop() { stopped_ = true; }

 private:
  SendOutcome run(const notify::Message& message);
  SendOutcome post(const std::string& body);
  base::Result<std::string> url() const;
  base::Result<net::HttpOptions> http_options() const;

  notify::Receiver receiver_;
  std::atomic<bool> stopped_{false};
};

// What can be said of a receiver without sending: its files can be read, its program is there.
base::Status check_receiver(const notify::Receiver& receiver);

}  // namespace flopsight::app
