#pragma once
// Holders by number, for as many as a store has: some 30 bytes each where six strings take 200. The name of each job stands for itself; what many
// have in common (namespace, container, user, team, rule) stands once.
// Threads: one at a time.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash_numbers.h"
#include "base/text_list.h"
#include "samples/gpu.h"

namespace flopsight::jobs {

class HolderList {
 public:
  // The next number, from 0 on.
  void push_back(const samples::Holder& holder);
  void replace(std::size_t number, const samples::Holder& holder);
  samples::Holder operator[](std::size_t number) const;
  std::size_t size() const { return jobs_.size(); }

  // Whether it is of the job; `packed` is base::packed_name() of the job's name.
  bool is_of_job(std::size_t number, std::string_view packed) const { return jobs_.packed(number) == packed; }

 private:
  std::uint32_t details_of(const samples::Holder& holder);
  std::uint32_t number_of(std::string_view details);
  void forget_unused();

  base::NameList jobs_;
  std::vector<std::uint32_t> details_;  // of each; a number of the next two
  base::TextList detail_texts_;         // lengths and texts of the fields
  base::HashNumbers detail_numbers_;
};

}  // namespace flopsight::jobs
