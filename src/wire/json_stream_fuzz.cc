#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/json_stream.h"

namespace {

// Entries and outcome must not depend on where the text is cut.
std::string outcome(std::string_view text, std::size_t piece) {
  using namespace flopsight;
  std::string out;
  constexpr std::string_view kSkip[] = {"skip"};
  wire::JsonStream stream({"list", kSkip, {}, 4096, 4096}, [&](base::json::Value value) {
    out += base::json::dump(value, 0) + "\n";
    return base::Status();
  });
  for (std::size_t at = 0; at < text.size(); at += piece) {
    if (!stream.feed(text.substr(at, piece)).ok()) return out + "mistake";
  }
  return out + (stream.finish().ok() ? "done" : "mistake");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
  // A piece that passes a limit is refused whole, so only outcomes without a mistake have to agree.
  const std::string whole = outcome(text, text.size() + 1), pieces = outcome(text, std::size_t{data[0]} % 37 + 1);
  if (whole.ends_with("done") && whole != pieces) __builtin_trap();
  return 0;
}
