#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "training_logs/words_internal.h"

namespace flopsight::training_logs {
namespace {

unsigned char lower(char c) {
  return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

}  // namespace

Words::Words(std::span<const std::string_view> words) {
  for (const std::string_view word : words) {
    for (const char c : word) {
      std::uint8_t& of = class_[lower(c)];
      if (of == 0) of = static_cast<std::uint8_t>(classes_++);
    }
  }
  number_states(words);
}

void Words::number_states(std::span<const std::string_view> words) {
  for (int c = 'A'; c <= 'Z'; ++c) class_[static_cast<std::size_t>(c)] = class_[static_cast<std::size_t>(c - 'A' + 'a')];

  // The trie; a missing edge is 0, which is the root.
  std::vector<std::vector<std::size_t>> trie(1, std::vector<std::size_t>(classes_));
  std::vector<bool> found(1);
  for (const std::string_view word : words) {
    std::size_t state = 0;
    for (const char c : word) {
      std::size_t next = trie[state][class_[lower(c)]];
      if (next == 0) {
        next = trie.size();
        trie[state][class_[lower(c)]] = next;
        trie.emplace_back(classes_);
        found.push_back(false);
      }
      state = next;
    }
    found[state] = true;
  }
  // Missing edges lead where the longest other beginning leads; states in the order of their depth.
  std::vector<std::size_t> fallback(trie.size());
  std::vector<std::size_t> queue;
  for (const std::size_t state : trie[0]) {
    if (state != 0) queue.push_back(state);
  }
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::size_t state = queue[i];
    if (found[fallback[state]]) found[state] = true;
    for (std::size_t c = 0; c < classes_; ++c) {
      const std::size_t next = trie[state][c];
      if (next == 0) {
        trie[state][c] = trie[fallback[state]][c];
      } else {
        fallback[next] = trie[fallback[state]][c];
        queue.push_back(next);
      }
    }
  }
  // States in which a word has ended come last, so that one comparison tells.
  std::vector<std::size_t> order(trie.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](std::size_t state) { return !found[state]; });
  FLOPSIGHT_CHECK(trie.size() * classes_ <= UINT16_MAX);
  std::vector<std::size_t> place(trie.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  next_.resize(trie.size() * classes_);
  for (std::size_t state = 0; state < trie.size(); ++state) {
    for (std::size_t c = 0; c < classes_; ++c) {
      next_[place[state] * classes_ + c] = static_cast<std::uint16_t>(place[trie[state][c]] * classes_);
    }
  }
  const auto ordinary = static_cast<std::size_t>(std::count(found.begin(), found.end(), false));
  first_found_ = static_cast<std::uint16_t>(ordinary * classes_);
}

std::size_t Words::find_end(std::string_view text, std::size_t from) const {
  const std::uint16_t* next = next_.data();
  const std::uint8_t* classes = class_.data();
  const std::uint16_t found = first_found_;
  std::uint32_t state = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (std::size_t i = from; i < text.size(); ++i) {
    state = next[state + classes[bytes[i]]];
    if (state >= found) return i + 1;
  }
  return std::string_view::npos;
}

}  // namespace flopsight::training_logs
