#pragma once
// Query parameters of a question, each of which has to be known: what they mean, and one line for what is wrong.
// Errors: kInvalid for what cannot be read, kLimit for what is over a limit of queries. Threads: pure; `request` and `config`
// are borrowed.

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/result.h"
#include "net/http_server.h"
#include "serve/serve_config.h"
#include "store/store.h"
#include "units/time.h"

namespace flopsight::app {

base::Error wrong_parameter(std::string_view name, std::string_view found, std::string_view expected);

class Parameters {
 public:
  Parameters(const net::ServerRequest& request, const ServeConfig& config, units::Instant now)
      : request_(request), config_(config), now_(now) {}

  base::Status only(std::initializer_list<std::string_view> known) const;
  // start, end, since; the last 24 hours by default.
  base::Result<units::Window> window() const;
  // A whole number from 1 to `most`.
  base::Result<std::uint64_t> count(std::string_view name, std::uint64_t otherwise, std::uint64_t most) const;
  // Rows to skip.
  base::Result<std::uint64_t> cursor() const;
  // A whole number of slots, as they are kept of all of the window; by default one that gives at most `steps_wanted` where there is one that
  // long. The window becomes the one that is answered.
  base::Result<units::Seconds> step(store::Reader& store, units::Window& window, double steps_wanted = 400) const;

 private:
  const net::ServerRequest& request_;
  const ServeConfig& config_;
  units::Instant now_;
};

}  // namespace flopsight::app
