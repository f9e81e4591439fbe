#pragma once
// Where an import's samples come from; each hands stretches of time to the feed, ascending.

#include "import/import_feed.h"
#include "import/import_options.h"
#include "net/http_client.h"
#include "progress_bar.h"

namespace flopsight::app {

struct ImportContext {
  const ImportArguments& arguments;
  const jobs::LabelRules& rules;
  net::HttpOptions http;
  ImportFeed& feed;
  ProgressBar& bar;
};

// Hour by hour, some GPUs at a time.
base::Status import_server(const ImportContext& context, units::Window window);

// All series of the files, in memory.
class ImportFiles {
 public:
  // Errors: the first file that cannot be read, is of no known format, or holds no time.
  base::Status read(const std::vector<std::string>& paths);

  units::Window window() const { return window_; }  // from the first sample to just after the last
  std::uint64_t untimed() const { return untimed_; }
  std::uint64_t malformed() const { return malformed_; }
  base::Status feed(const ImportContext& context, units::Window window);

 private:
  class Sink;
  base::Status read_export(const std::string& path, std::string_view text);
  base::Status read_exposition(const std::string& path, std::string_view text);

  std::vector<wire::ApiSeries> series_;
  units::Window window_;
  std::uint64_t untimed_ = 0;
  std::uint64_t malformed_ = 0;
};

}  // namespace flopsight::app
