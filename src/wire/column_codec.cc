#include "wire/column_codec.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "wire/rice_internal.h"
#include "wire/zstd.h"

namespace flopsight::wire {
namespace {

using base::ErrorCode;
using Column = std::vector<std::int64_t>;

// What a block is, by its first byte. Small blocks are shorter without the frame of zstd.
enum Wrapping : char { kPlain = 1, kZstd = 2 };

// How a column is written, by the byte after its length.
enum class Way : std::uint8_t {
  kConstant = 0,
  kExceptions = 1,
  kDictionary = 2,
  kValues = 3,
  kDifferences = 4,
  kSecondDifferences = 5,
};

// All arithmetic is modulo 2^64, so that it is defined and undone for every value.
std::uint64_t zigzag(std::uint64_t value) { return value << 1U ^ (0 - (value >> 63U)); }
std::uint64_t unzigzag(std::uint64_t value) { return value >> 1U ^ (0 - (value & 1U)); }

void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}
void put_signed(std::string& out, std::int64_t value) {
  put_number(out, zigzag(static_cast<std::uint64_t>(value)));
}

// ---- Writing: each way offers its bytes, or nothing if it cannot be the shortest ----

// The value that most others equal, if there is one; any value otherwise.
std::int64_t majority(std::span<const std::int64_t> column) {
  std::int64_t value = 0;
  std::size_t lead = 0;
  for (const std::int64_t one : column) {
    if (lead == 0) value = one;
    lead = one == value ? lead + 1 : lead - 1;
  }
  return value;
}

std::optional<std::string> as_exceptions(std::span<const std::int64_t> column) {
  const std::int64_t common = majority(column);
  const auto exceptions =
      column.size() - static_cast<std::size_t>(std::count(column.begin(), column.end(), common));
  if (exceptions > column.size() / 4) return std::nullopt;
  std::string out;
  put_signed(out, common);
  put_number(out, exceptions);
  std::size_t next = 0;
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (column[i] == common) continue;
    put_number(out, i - next);
    put_number(out,
               zigzag(static_cast<std::uint64_t>(column[i]) - static_cast<std::uint64_t>(common)));
    next = i + 1;
  }
  return out;
}

constexpr std::size_t kDictionaryMax = 64;

// The distinct values, the most frequent first; nothing if there are too many.
std::optional<Column> dictionary_of(std::span<const std::int64_t> column) {
  struct Entry {
    std::int64_t value;
    std::size_t count;
  };
  std::vector<Entry> entries;
  for (const std::int64_t value : column) {
    const auto at = std::find_if(entries.begin(), entries.end(),
                                 [&](const Entry& entry) { return entry.value == value; });
    if (at != entries.end()) {
      // Frequent ones move to the front, where they are found at once.
      ++at->count;
      if (at != entries.begin() && std::prev(at)->count < at->count)
        std::iter_swap(std::prev(at), at);
    } else if (entries.size() == kDictionaryMax) {
      return std::nullopt;
    } else {
      entries.push_back({value, 1});
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.count != b.count ? a.count > b.count : a.value < b.value;
  });
  Column values;
  for (const Entry& entry : entries) values.push_back(entry.value);
  return values;
}

std::optional<std::string> as_dictionary(std::span<const std::int64_t> column) {
  const std::optional<Column> values = dictionary_of(column);
  if (!values) return std::nullopt;
  std::string out;
  put_number(out, values->size());
  for (const std::int64_t value : *values) put_signed(out, value);
  std::vector<std::uint64_t> ranks;
  ranks.reserve(column.size());
  for (const std::int64_t value : column) {
    const auto at = std::find(values->begin(), values->end(), value);
    ranks.push_back(static_cast<std::uint64_t>(at - values->begin()));
  }
  RiceCode(ranks).write(out);
  return out;
}

// A column as min + divisor * (steps, all of 0 and more).
struct Scaled {
  std::int64_t min;
  std::uint64_t divisor = 0;
  std::vector<std::uint64_t> steps;
};

Scaled scaled(std::span<const std::int64_t> column) {
  Scaled out{*std::min_element(column.begin(), column.end()), 0, {}};
  out.steps.reserve(column.size());
  for (const std::int64_t value : column) {
    out.steps.push_back(static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(out.min));
    if (out.divisor != 1) out.divisor = std::gcd(out.divisor, out.steps.back());
  }
  if (out.divisor > 1) {
    for (std::uint64_t& step : out.steps) step /= out.divisor;
  }
  return out;
}

// Of 2 or more: the first is kept apart, so that a clock's first value does not stand among its
// ticks.
std::vector<std::uint64_t> differences(std::span<const std::uint64_t> values) {
  std::vector<std::uint64_t> out;
  out.reserve(values.size());
  for (std::size_t i = 1; i < values.size(); ++i) out.push_back(values[i] - values[i - 1]);
  return out;
}

std::vector<std::uint64_t> zigzagged(std::vector<std::uint64_t> values) {
  for (std::uint64_t& value : values) value = zigzag(value);
  return values;
}

struct Written {
  Way way;
  std::string bytes;
};

Written as_steps(std::span<const std::int64_t> column) {
  const Scaled scale = scaled(column);
  const std::vector<std::uint64_t> first = differences(scale.steps);
  const std::vector<std::uint64_t> first_zigzag = zigzagged(first);
  const std::vector<std::uint64_t> second_zigzag = zigzagged(differences(first));
  const RiceCode values(scale.steps);
  const RiceCode once(first_zigzag);
  const RiceCode twice(second_zigzag);

  Written out{Way::kValues, {}};
  put_signed(out.bytes, scale.min);
  put_number(out.bytes, scale.divisor);
  if (values.bytes() <= once.bytes() && values.bytes() <= twice.bytes()) {
    values.write(out.bytes);
    return out;
  }
  put_number(out.bytes, scale.steps.front());
  if (once.bytes() <= twice.bytes()) {
    out.way = Way::kDifferences;
    once.write(out.bytes);
  } else {
    out.way = Way::kSecondDifferences;
    put_number(out.bytes, first_zigzag.front());
    twice.write(out.bytes);
  }
  return out;
}

Written shortest(std::span<const std::int64_t> column) {
  const auto differs = [&](std::int64_t value) { return value != column.front(); };
  if (std::none_of(column.begin(), column.end(), differs)) {
    Written out{Way::kConstant, {}};
    put_signed(out.bytes, column.front());
    return out;
  }
  Written best = as_steps(column);
  const auto offer = [&best](Way way, std::optional<std::string> bytes) {
    if (bytes && bytes->size() < best.bytes.size()) best = {way, std::move(*bytes)};
  };
  offer(Way::kExceptions, as_exceptions(column));
  offer(Way::kDictionary, as_dictionary(column));
  return best;
}

// ---- Reading ----

class Reader {
 public:
  Reader(std::string_view payload, const ColumnLimits& limits)
      : bytes_(payload), size_(payload.size()), limits_(limits) {}

  base::Result<std::vector<Column>> columns();

 private:
  base::Error corrupt(const char* what) const {
    return {ErrorCode::kCorrupt,
            "at byte " + std::to_string(size_ - bytes_.size()) + " of the columns: " + what};
  }
  base::Status number(std::uint64_t& value);
  base::Status signed_number(std::int64_t& value);
  base::Status column(Column& into);
  base::Status exceptions(Column& into);
  base::Status dictionary(Column& into);
  base::Status steps(Way way, Column& into);
  base::Status rice(std::size_t count);

  std::string_view bytes_;  // the unread rest
  std::size_t size_;
  ColumnLimits limits_;
  std::size_t values_ = 0;
  std::vector<std::uint64_t> numbers_;  // of the column at hand
};

base::Status Reader::number(std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes_.empty()) return corrupt("the end, within a number");
    const auto byte = static_cast<unsigned char>(bytes_.front());
    if (shift == 63 && byte > 1) break;
    bytes_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return {};
  }
  return corrupt("a number of more than 64 bits");
}

base::Status Reader::signed_number(std::int64_t& value) {
  std::uint64_t bits = 0;
  FLOPSIGHT_RETURN_IF_ERROR(number(bits));
  value = static_cast<std::int64_t>(unzigzag(bits));
  return {};
}

base::Status Reader::rice(std::size_t count) {
  numbers_.resize(count);
  if (!read_rice(bytes_, numbers_)) return corrupt("the end, within the codes that start here");
  return {};
}

base::Status Reader::exceptions(Column& into) {
  std::int64_t common = 0;
  std::uint64_t count = 0;
  FLOPSIGHT_RETURN_IF_ERROR(signed_number(common));
  FLOPSIGHT_RETURN_IF_ERROR(number(count));
  std::fill(into.begin(), into.end(), common);
  std::size_t next = 0;
  for (; count > 0; --count) {
    std::uint64_t gap = 0;
    std::int64_t difference = 0;
    FLOPSIGHT_RETURN_IF_ERROR(number(gap));
    FLOPSIGHT_RETURN_IF_ERROR(signed_number(difference));
    if (gap >= into.size() - next) return corrupt("an exception past the end of its column");
    next += static_cast<std::size_t>(gap);
    into[next++] = static_cast<std::int64_t>(static_cast<std::uint64_t>(common) +
                                             static_cast<std::uint64_t>(difference));
  }
  return {};
}

base::Status Reader::dictionary(Column& into) {
  std::uint64_t size = 0;
  FLOPSIGHT_RETURN_IF_ERROR(number(size));
  if (size > kDictionaryMax) return corrupt("a dictionary that is too long");
  Column values(static_cast<std::size_t>(size));
  for (std::int64_t& value : values) FLOPSIGHT_RETURN_IF_ERROR(signed_number(value));
  FLOPSIGHT_RETURN_IF_ERROR(rice(into.size()));
  for (std::size_t i = 0; i < into.size(); ++i) {
    if (numbers_[i] >= values.size()) return corrupt("a value that is not in its dictionary");
    into[i] = values[static_cast<std::size_t>(numbers_[i])];
  }
  return {};
}

base::Status Reader::steps(Way way, Column& into) {
  std::int64_t min = 0;
  std::uint64_t divisor = 0;
  std::uint64_t step = 0;
  std::uint64_t slope = 0;
  FLOPSIGHT_RETURN_IF_ERROR(signed_number(min));
  FLOPSIGHT_RETURN_IF_ERROR(number(divisor));
  const auto value = [&](std::uint64_t steps) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(min) + divisor * steps);
  };
  if (way == Way::kValues) {
    FLOPSIGHT_RETURN_IF_ERROR(rice(into.size()));
    std::transform(numbers_.begin(), numbers_.end(), into.begin(), value);
    return {};
  }
  FLOPSIGHT_RETURN_IF_ERROR(number(step));
  into[0] = value(step);
  std::size_t known = 1;
  if (way == Way::kSecondDifferences && into.size() > 1) {
    FLOPSIGHT_RETURN_IF_ERROR(number(slope));
    slope = unzigzag(slope);
    into[known++] = value(step += slope);
  }
  FLOPSIGHT_RETURN_IF_ERROR(rice(into.size() - known));
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const std::uint64_t difference = unzigzag(numbers_[i]);
    slope = way == Way::kSecondDifferences ? slope + difference : difference;
    into[known + i] = value(step += slope);
  }
  return {};
}

base::Status Reader::column(Column& into) {
  std::uint64_t size = 0;
  FLOPSIGHT_RETURN_IF_ERROR(number(size));
  if (size > limits_.values_max - values_) {
    return base::Error{ErrorCode::kLimit,
                       "more than " + std::to_string(limits_.values_max) + " values"};
  }
  if (size == 0) return {};
  if (bytes_.empty()) return corrupt("the end, before a column");
  const auto way = static_cast<Way>(static_cast<unsigned char>(bytes_.front()));
  bytes_.remove_prefix(1);
  // A lie about the length is found before memory is taken for it. Two values may be no codes.
  const bool coded = way != Way::kConstant && way != Way::kExceptions;
  if (coded && bytes_.size() < rice_bytes_min(static_cast<std::size_t>(size) -
                                              std::min<std::size_t>(size, 2))) {
    return corrupt("the end, before all values of a column");
  }
  values_ += static_cast<std::size_t>(size);
  into.resize(static_cast<std::size_t>(size));
  switch (way) {
    case Way::kConstant: {
      std::int64_t value = 0;
      FLOPSIGHT_RETURN_IF_ERROR(signed_number(value));
      std::fill(into.begin(), into.end(), value);
      return {};
    }
    case Way::kExceptions:
      return exceptions(into);
    case Way::kDictionary:
      return dictionary(into);
    case Way::kValues:
    case Way::kDifferences:
    case Way::kSecondDifferences:
      return steps(way, into);
  }
  return corrupt("a column written in an unknown way");
}

base::Result<std::vector<Column>> Reader::columns() {
  std::uint64_t count = 0;
  FLOPSIGHT_RETURN_IF_ERROR(number(count));
  if (count > limits_.columns_max) {
    return base::Error{ErrorCode::kLimit,
                       "more than " + std::to_string(limits_.columns_max) + " columns"};
  }
  std::vector<Column> out;
  for (; count > 0; --count) FLOPSIGHT_RETURN_IF_ERROR(column(out.emplace_back()));
  if (!bytes_.empty()) return corrupt("bytes after the last column");
  return out;
}

}  // namespace

void ColumnWriter::add(std::span<const std::int64_t> column) {
  ++columns_;
  put_number(payload_, column.size());
  if (column.empty()) return;
  const Written written = shortest(column);
  payload_ += static_cast<char>(written.way);
  payload_ += written.bytes;
}

std::string ColumnWriter::finish(int zstd_level) {
  std::string payload;
  put_number(payload, columns_);
  payload += payload_;
  payload_.clear();
  columns_ = 0;
  const std::string packed = zstd_compress(payload, zstd_level);
  const bool shorter = packed.size() < payload.size();
  return static_cast<char>(shorter ? kZstd : kPlain) + (shorter ? packed : payload);
}

base::Result<std::vector<std::vector<std::int64_t>>> read_columns(std::string_view block,
                                                                  const ColumnLimits& limits) {
  if (block.empty()) return base::Error{ErrorCode::kCorrupt, "an empty block of columns"};
  const char wrapping = block.front();
  block.remove_prefix(1);
  if (wrapping == kPlain) {
    if (block.size() > limits.bytes_max) {
      return base::Error{ErrorCode::kLimit,
                         "more than " + std::to_string(limits.bytes_max) + " bytes of columns"};
    }
    return Reader(block, limits).columns();
  }
  if (wrapping != kZstd) return base::Error{ErrorCode::kCorrupt, "not a block of columns"};
  std::string payload;
  FLOPSIGHT_RETURN_IF_ERROR(zstd_decompress(block, limits.bytes_max, payload));
  return Reader(payload, limits).columns();
}

}  // namespace flopsight::wire
