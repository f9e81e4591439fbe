// An exporter of GPUs prints few distinct label blocks, again and again: one per GPU, for every
// metric, at every scrape. So the bytes of a block already parsed are remembered, and recognised in
// two ways: the block that followed the last one the time before is compared first (nearly always
// right, and no hash is needed), then the bytes up to the line's last '}' are looked up by hash.
// Recognising changes no result: the grammar of a block is decided by the block's own bytes
// (label_block_internal.h), so bytes equal to a whole valid block read as that block again.
// Everything else takes the grammar's way.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory_resource>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.h"
#include "base/text.h"
#include "wire/exposition.h"
#include "wire/label_block_internal.h"
#include "wire/number_internal.h"

namespace flopsight::wire {
namespace {

constexpr LabelSet kEmptySet{};
constexpr std::string_view kMetricTypes[] = {"gauge",    "counter", "histogram",
                                             "summary",  "untyped", "unknown",
                                             "stateset", "info",    "gaugehistogram"};

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// The blocks seen so far, by their bytes.
class LabelSets {
 public:
  struct Kept {
    LabelSet set;
    std::string_view block;   // from '{' to '}'
    std::string_view metric;  // as LabelBlock::metric()
    std::uint64_t hash = 0;
    Kept* next = nullptr;  // what followed the last time
  };

  explicit LabelSets(std::uint32_t sets_max)
      : sets_max_(std::min(sets_max, LabelSet::kNotKept - 1)) {}

  // The block that the text at the cursor starts with, if it was seen; then the cursor moves behind
  // it.
  Kept* recognise(Cursor& cursor) {
    if (kept_.empty()) return nullptr;
    if (last_ != nullptr && last_->next != nullptr) {
      Kept* const guess = last_->next;
      if (guess->block.size() <= cursor.left() &&
          std::memcmp(guess->block.data(), cursor.at, guess->block.size()) == 0) {
        cursor.at += guess->block.size();
        last_ = guess;
        return guess;
      }
    }
    const std::string_view rest(cursor.at, cursor.left());
    const std::size_t close = rest.rfind('}');
    if (close == std::string_view::npos) return nullptr;
    Kept* found = find(rest.substr(0, close + 1));
    if (found != nullptr) cursor.at += close + 1;
    return found;
  }

  // Keeps a block just parsed, unless it is kept already; null if there is no room.
  const Kept* keep(std::string_view block, const LabelBlock& parsed);

 private:
  Kept* find(std::string_view block);
  void grow();
  void follow(Kept& kept) {
    if (last_ != nullptr) last_->next = &kept;
    last_ = &kept;
  }
  std::string_view store(std::string_view text);

  std::uint32_t sets_max_;
  std::pmr::monotonic_buffer_resource bytes_;
  std::deque<Kept> kept_;  // by id - 1; addresses are stable
  // Open addressing, a power of two of slots, at most half full; 0 is free, else an id.
  std::vector<std::uint32_t> slots_;
  Kept* last_ = nullptr;
};

LabelSets::Kept* LabelSets::find(std::string_view block) {
  if (slots_.empty()) return nullptr;
  const std::uint64_t hash = XXH3_64bits(block.data(), block.size());
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
    Kept& kept = kept_[slots_[slot] - 1];
    if (kept.hash == hash && kept.block == block) {
      follow(kept);
      return &kept;
    }
  }
  return nullptr;
}

void LabelSets::grow() {
  const std::size_t size = std::max<std::size_t>(64, slots_.size() * 2);
  slots_.assign(size, 0);
  for (const Kept& kept : kept_) {
    std::size_t slot = kept.hash & (size - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (size - 1);
    slots_[slot] = kept.set.id;
  }
}

std::string_view LabelSets::store(std::string_view text) {
  if (text.empty()) return {};
  char* const copy = static_cast<char*>(bytes_.allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

const LabelSets::Kept* LabelSets::keep(std::string_view block, const LabelBlock& parsed) {
  if (const Kept* found = find(block)) return found;
  if (kept_.size() >= sets_max_) return nullptr;
  if ((kept_.size() + 1) * 2 > slots_.size()) grow();

  const std::string_view own = store(block);
  // What points into the text now points at the same place of our copy; resolved escapes are
  // copied.
  const auto moved = [&](std::string_view part) {
    const std::less_equal<const char*> not_after;
    const bool inside = not_after(block.data(), part.data()) &&
                        not_after(part.data() + part.size(), block.data() + block.size());
    if (!inside) return store(part);
    return own.substr(static_cast<std::size_t>(part.data() - block.data()), part.size());
  };
  const std::size_t count = parsed.labels().size();
  Label* const labels = static_cast<Label*>(bytes_.allocate(count * sizeof(Label), alignof(Label)));
  for (std::size_t i = 0; i < count; ++i) {
    const Label& label = parsed.labels()[i];
    new (labels + i) Label{moved(label.name), moved(label.value)};
  }
  const auto id = static_cast<std::uint32_t>(kept_.size() + 1);
  Kept& kept = kept_.emplace_back(Kept{.set = {.id = id, .labels = {labels, count}},
                                       .block = own,
                                       .metric = moved(parsed.metric()),
                                       .hash = XXH3_64bits(own.data(), own.size())});
  std::size_t slot = kept.hash & (slots_.size() - 1);
  while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = id;
  follow(kept);
  return &kept;
}

std::optional<std::int64_t> milliseconds_of_seconds(std::string_view word) {
  const std::optional<double> seconds = parse_exporter_number(word);
  // 2^63 milliseconds; NaN compares false.
  constexpr double kMillisecondsMax = 9223372036854775808.0;
  if (!seconds || !(std::abs(*seconds * 1000) < kMillisecondsMax)) return std::nullopt;
  return std::llround(*seconds * 1000);
}

struct PassState {
  explicit PassState(ExpositionParser::Options chosen)
      : options(chosen),
        sets(chosen.label_sets_max),
        block({chosen.labels_per_sample_max, chosen.label_value_bytes_max}),
        exemplar(block) {}

  ExpositionParser::Options options;
  LabelSets sets;
  LabelBlock block;     // the block being parsed; a set that is not kept points into it
  LabelBlock exemplar;  // apart from it, because an exemplar follows on the same line
};

// One run over one text.
class Pass {
 public:
  Pass(PassState& state, ExpositionSink& sink) : state_(state), sink_(sink) {}

  ExpositionTotals run(std::string_view text);

 private:
  struct Line {
    std::string_view metric;
    LabelSet unkept{.id = LabelSet::kNotKept, .labels = {}};
    ExpositionSample sample;
  };

  bool open_metrics() const { return state_.options.format == ExpositionFormat::kOpenMetrics; }
  void line(const char* begin, const char* end);
  Fault comment(Cursor& cursor);
  Fault type(Cursor& cursor);
  Fault sample(Cursor& cursor);
  Fault metric_name(Cursor& cursor, std::string_view& name);
  Fault label_block(Cursor& cursor, Line& line);
  Fault value(Cursor& cursor, double& value);
  Fault timestamp(Cursor& cursor, std::optional<std::int64_t>& milliseconds);
  Fault exemplar(Cursor& cursor);
  void report(const char* line_begin, const Fault& fault);

  PassState& state_;
  ExpositionSink& sink_;
  ExpositionTotals totals_;
  std::string_view
      last_metric_;  // lines of one metric follow each other, so its name is tried first
  bool stopped_ = false;
};

ExpositionTotals Pass::run(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end && !stopped_) {
    const void* const found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    const char* const newline = found != nullptr ? static_cast<const char*>(found) : end;
    ++totals_.lines;
    line(at, newline);
    at = newline == end ? end : newline + 1;
  }
  if (open_metrics() && !totals_.saw_eof_marker) {
    ++totals_.malformed;
    sink_.malformed({.line = totals_.lines + 1, .column = 1, .expected = "'# EOF' at the end"});
  }
  return totals_;
}

void Pass::line(const char* begin, const char* end) {
  if (begin != end && end[-1] == '\r') --end;
  Cursor cursor{begin, end};
  const std::uint32_t bytes_max = state_.options.line_bytes_max;
  if (cursor.left() > bytes_max) {
    return report(begin, Fault{begin + bytes_max, "at most % bytes in a line", bytes_max});
  }
  cursor.skip_blanks();
  if (cursor.done()) return;
  if (open_metrics() && totals_.saw_eof_marker) {
    stopped_ = true;
    return report(begin, Fault{cursor.at, "nothing after '# EOF'"});
  }
  const Fault fault = cursor.on('#') ? comment(cursor) : sample(cursor);
  if (fault) report(begin, fault);
}

void Pass::report(const char* line_begin, const Fault& fault) {
  ++totals_.malformed;
  std::string expected(fault.expected);
  if (const std::size_t mark = expected.find('%'); mark != std::string::npos) {
    expected.replace(mark, 1, std::to_string(fault.limit));
  }
  sink_.malformed({.line = totals_.lines,
                   .column = static_cast<std::uint64_t>(fault.at - line_begin) + 1,
                   .expected = std::move(expected)});
}

Fault Pass::comment(Cursor& cursor) {
  ++cursor.at;
  const char* const hash_end = cursor.at;
  cursor.skip_blanks();
  if (cursor.at == hash_end) return {};
  const std::string_view keyword = cursor.take_word();
  if (keyword == "TYPE") return type(cursor);
  if (keyword == "EOF") {
    cursor.skip_blanks();
    if (cursor.done()) totals_.saw_eof_marker = true;
  }
  return {};
}

Fault Pass::type(Cursor& cursor) {
  cursor.skip_blanks();
  std::string_view name;
  if (cursor.on('"')) {
    if (const Fault fault = state_.block.read_quoted_metric(cursor)) return fault;
    name = state_.block.metric();
  } else if (const Fault fault = metric_name(cursor, name)) {
    return fault;
  }
  const char* const name_end = cursor.at;
  cursor.skip_blanks();
  if (cursor.at == name_end) return Fault{name_end, "a blank after the metric name"};
  const char* const word_begin = cursor.at;
  const std::string_view word = cursor.take_word();
  if (std::find(std::begin(kMetricTypes), std::end(kMetricTypes), word) == std::end(kMetricTypes)) {
    return Fault{word_begin, "a metric type"};
  }
  cursor.skip_blanks();
  if (!cursor.done()) return Fault{cursor.at, "the end of the line"};
  sink_.type(name, word);
  return {};
}

Fault Pass::sample(Cursor& cursor) {
  Line line;
  if (!cursor.on('{')) {
    if (const Fault fault = metric_name(cursor, line.metric)) return fault;
  }
  const char* const name_end = cursor.at;
  cursor.skip_blanks();
  if (cursor.on('{')) {
    if (const Fault fault = label_block(cursor, line)) return fault;
  } else {
    line.sample.labels = &kEmptySet;
    if (!cursor.done() && cursor.at == name_end) {
      return Fault{name_end, "'{' or a blank after the metric name"};
    }
  }
  line.sample.metric = line.metric;

  cursor.skip_blanks();
  if (const Fault fault = value(cursor, line.sample.value)) return fault;
  cursor.skip_blanks();
  if (!cursor.done() && !cursor.on('#')) {
    if (const Fault fault = timestamp(cursor, line.sample.timestamp_milliseconds)) return fault;
    cursor.skip_blanks();
  }
  if (cursor.on('#')) {
    if (const Fault fault = exemplar(cursor)) return fault;
  }
  if (!cursor.done()) return Fault{cursor.at, "the end of the line"};
  ++totals_.samples;
  sink_.sample(line.sample);
  return {};
}

Fault Pass::metric_name(Cursor& cursor, std::string_view& name) {
  const char* const begin = cursor.at;
  const std::size_t size = last_metric_.size();
  if (size != 0 && size < cursor.left() && !is_metric_name_part(begin[size]) &&
      std::memcmp(begin, last_metric_.data(), size) == 0) {
    cursor.at += size;
  } else {
    if (cursor.done() || !is_metric_name_start(*cursor.at)) return Fault{begin, "a metric name"};
    while (!cursor.done() && is_metric_name_part(*cursor.at)) ++cursor.at;
  }
  name = between(begin, cursor.at);
  last_metric_ = name;
  return {};
}

// The block the cursor stands on, recognised or parsed, into the line's label set and, if it stood
// inside, the line's metric.
Fault Pass::label_block(Cursor& cursor, Line& line) {
  const char* const begin = cursor.at;
  const bool name_in_front = !line.metric.empty();
  if (const LabelSets::Kept* kept = state_.sets.recognise(cursor)) {
    if (kept->metric.empty() == name_in_front) {
      line.sample.labels = &kept->set;
      if (!name_in_front) line.metric = kept->metric;
      return {};
    }
    cursor.at = begin;  // a name twice or not at all: the grammar says where
  }
  LabelBlock& block = state_.block;
  using enum LabelBlock::QuotedMetric;
  if (const Fault fault = block.read(cursor, name_in_front ? kRefused : kAccepted)) return fault;
  if (!name_in_front) line.metric = block.metric();
  if (line.metric.empty()) return Fault{begin, "a metric name"};
  if (block.labels().empty() && block.metric().empty()) {
    line.sample.labels = &kEmptySet;
  } else if (const LabelSets::Kept* kept = state_.sets.keep(between(begin, cursor.at), block)) {
    line.sample.labels = &kept->set;
  } else {
    line.unkept.labels = block.labels();
    line.sample.labels = &line.unkept;
  }
  return {};
}

Fault Pass::value(Cursor& cursor, double& value) {
  const char* const begin = cursor.at;
  const std::string_view word = cursor.take_word();
  if (word.empty()) return Fault{begin, "a value"};
  const std::optional<double> number = parse_exporter_number(word);
  if (!number) return Fault{begin, "a number"};
  value = *number;
  return {};
}

Fault Pass::timestamp(Cursor& cursor, std::optional<std::int64_t>& milliseconds) {
  const char* const begin = cursor.at;
  const std::string_view word = cursor.take_word();
  milliseconds = open_metrics() ? milliseconds_of_seconds(word) : parse_exporter_integer(word);
  if (milliseconds) return {};
  if (open_metrics()) return Fault{begin, "a timestamp in seconds"};
  return Fault{begin, "a timestamp in whole milliseconds"};
}

// `# {labels} value [timestamp in seconds]`, checked and dropped.
Fault Pass::exemplar(Cursor& cursor) {
  ++cursor.at;
  cursor.skip_blanks();
  if (!cursor.on('{')) return Fault{cursor.at, "'{' of an exemplar"};
  if (const Fault fault = state_.exemplar.read(cursor, LabelBlock::QuotedMetric::kRefused)) {
    return fault;
  }
  cursor.skip_blanks();
  double ignored = 0;
  if (const Fault fault = value(cursor, ignored)) return fault;
  cursor.skip_blanks();
  if (cursor.done()) return {};
  const char* const begin = cursor.at;
  if (!milliseconds_of_seconds(cursor.take_word())) return Fault{begin, "a timestamp in seconds"};
  cursor.skip_blanks();
  return {};
}

}  // namespace

struct ExpositionParser::State : PassState {
  using PassState::PassState;
};

ExpositionParser::ExpositionParser() : ExpositionParser(Options{}) {}
ExpositionParser::ExpositionParser(Options options) : state_(std::make_unique<State>(options)) {}
ExpositionParser::~ExpositionParser() = default;
ExpositionParser::ExpositionParser(ExpositionParser&&) noexcept = default;
ExpositionParser& ExpositionParser::operator=(ExpositionParser&&) noexcept = default;

ExpositionTotals ExpositionParser::parse(std::string_view text, ExpositionSink& sink) {
  FLOPSIGHT_CHECK(state_ != nullptr);
  return Pass(*state_, sink).run(text);
}

void ExpositionParser::clear() {
  FLOPSIGHT_CHECK(state_ != nullptr);
  state_ = std::make_unique<State>(state_->options);
}

ExpositionFormat exposition_format(std::string_view content_type, std::string_view text) {
  const std::string media_type =
      base::to_lower(base::trim(content_type.substr(0, content_type.find(';'))));
  if (media_type == "application/openmetrics-text") return ExpositionFormat::kOpenMetrics;
  if (media_type.empty()) {
    const std::string_view tail = base::trim(text);
    if (tail == "# EOF" || tail.ends_with("\n# EOF")) return ExpositionFormat::kOpenMetrics;
  }
  return ExpositionFormat::kPrometheusText;
}

}  // namespace flopsight::wire
