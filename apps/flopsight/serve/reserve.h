#pragma once
// A mebibyte in the folder of the store that a start on a full disk gives back: to answer questions takes some room, for the index of
// SQLite's journals.
// Threads: one at a time.

#include <cstdint>
#include <string>

namespace flopsight::app {

class Reserve {
 public:
  explicit Reserve(std::string folder) : folder_(std::move(folder)) {}

  // Where the disk is full.
  void give_back();
  // Made once there is room for it besides what is kept free.
  void keep(std::uint64_t free_bytes_min);

 private:
  std::string path() const { return folder_ + "/RESERVE"; }

  std::string folder_;
  bool is_there_ = false;
};

}  // namespace flopsight::app
