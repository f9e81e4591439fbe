#pragma once
// One line on a terminal that is redrawn, and goes when it is done. Nothing where there is no terminal.

#include <ostream>
#include <string>
#include <string_view>

#include "env.h"

namespace flopsight::app {

class ProgressBar {
 public:
  ProgressBar(const Env& env, bool quiet) : err_(env.err), shown_(env.err_is_terminal && !quiet) {}
  ~ProgressBar() {
    if (drawn_) err_ << "\r\x1b[K" << std::flush;
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::string_view what, std::size_t done, std::size_t total) {
    if (!shown_ || total == 0) return;
    drawn_ = true;
    const std::size_t filled = done * 30 / total;
    err_ << "\r\x1b[K[" << std::string(filled, '#') << std::string(30 - filled, ' ') << "] "
         << done * 100 / total << " % " << what << std::flush;
  }

 private:
  std::ostream& err_;
  bool shown_;
  bool drawn_ = false;
};

}  // namespace flopsight::app
