// YAML of a site's receivers, and labels of an alert as they are kept.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "notify/alerts.h"
#include "notify/receiver.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  findings::Record record;
  const auto ended = notify::ended_alert(record, bytes, "", units::Instant{});
  // What is kept reads back as the same.
  if (ended.ok() && !notify::ended_alert(record, notify::labels_text(ended->labels), "", units::Instant{}).ok()) __builtin_trap();
  const auto list = base::yaml::parse(bytes);
  if (!list.ok()) return 0;
  const auto receivers = notify::parse_receivers(*list, "f");
  if (!receivers.ok()) {
    if (receivers.error().message.empty() || receivers.error().message.find('\n') != std::string::npos) __builtin_trap();
    return 0;
  }
  for (const notify::Receiver& receiver : *receivers) {
    if (receiver.name.empty() || (receiver.is_command() ? receiver.command.empty() : receiver.url.empty() == receiver.url_file.empty())) __builtin_trap();
    (void)receiver.route.takes(record);
  }
  return 0;
}
