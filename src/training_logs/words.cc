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

// A stretch of the text, from the start of a line on, and the state in which it is.
struct Words::Lane {
  const unsigned char* at = nullptr;
  const unsigned char* end = nullptr;
  std::uint32_t state = 0;
  std::vector<std::size_t> ends;

  // A word has ended before `at`: the rest of the line is of no interest.
  void found(const unsigned char* text) {
    ends.push_back(static_cast<std::size_t>(at - text));
    while (at < end && *at != '\n' && *at != '\r') ++at;
    state = 0;
  }
};

void Words::scan(Lane& lane, const unsigned char* text, std::vector<std::size_t>& ends) const {
  while (lane.at < lane.end) {
    lane.state = next_[lane.state + class_[*lane.at++]];
    if (lane.state >= first_found_) lane.found(text);
  }
  ends.insert(ends.end(), lane.ends.begin(), lane.ends.end());
}

void Words::find_lines(std::string_view text, std::vector<std::size_t>& ends) const {
  // Each step waits for the look-up of the one before. Four stretches at a time keep the processor busy meanwhile.
  constexpr std::size_t kLanes = 4;
  constexpr std::size_t kLaneBytesMin = 1024;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  ends.clear();
  std::array<Lane, kLanes> lanes;
  std::size_t from = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    std::size_t to = text.size();
    if (i + 1 < kLanes && text.size() >= kLanes * kLaneBytesMin) {
      const std::size_t line = text.find_first_of("\n\r", std::max(from, text.size() / kLanes * (i + 1)));
      to = line == std::string_view::npos ? text.size() : line + 1;
    }
    lanes[i].at = bytes + from;
    lanes[i].end = bytes + to;
    from = to;
  }
  auto& [a, b, c, d] = lanes;
  const std::uint16_t* next = next_.data();
  const std::uint8_t* classes = class_.data();
  while (true) {
    const std::ptrdiff_t steps = std::min({a.end - a.at, b.end - b.at, c.end - c.at, d.end - d.at});
    if (steps == 0) break;
    // In variables of their own: the compiler cannot know that the lanes are no part of the text.
    std::uint32_t as = a.state, bs = b.state, cs = c.state, ds = d.state;
    const unsigned char *at_a = a.at, *at_b = b.at, *at_c = c.at, *at_d = d.at;
    const std::uint32_t found = first_found_;
    std::ptrdiff_t i = 0;
    while (i < steps) {
      as = next[as + classes[at_a[i]]];
      bs = next[bs + classes[at_b[i]]];
      cs = next[cs + classes[at_c[i]]];
      ds = next[ds + classes[at_d[i]]];
      ++i;
      if (as >= found || bs >= found || cs >= found || ds >= found) break;
    }
    const std::array<std::uint32_t, kLanes> states{as, bs, cs, ds};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane].at += i;
      lanes[lane].state = states[lane];
      if (states[lane] >= found) lanes[lane].found(bytes);
    }
  }
  for (Lane& lane : lanes) scan(lane, bytes, ends);
}

}  // namespace flopsight::training_logs
