#pragma once
// What the configuration says of findings, as those who look for them and keep them want it. Threads: pure.

#include "findings/book.h"
#include "serve/finding_rounds.h"
#include "serve/serve_config.h"

namespace flopsight::app {

findings::BookOptions book_options(const ServeConfig& config);
// Of a configuration that was checked.
FindingRoundOptions finding_options(const ServeConfig& config);

}  // namespace flopsight::app
