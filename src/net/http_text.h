#pragma once
// Text on its way between a stranger's server, an HTTP request and a line for a human.
// Pure. url_encode and url_without_credentials are declared with the client that everyone includes.

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flopsight::net {

inline constexpr std::size_t kUrlTextBytesMax = 500;  // of a URL in a message

// One line for a message: white space runs become one space; control characters and bytes that are not
// UTF-8 are left out; what passes bytes_max is cut at a character and marked with "...".
std::string single_line(std::string_view text, std::size_t bytes_max);

// "5 s", "1500 ms".
std::string duration_text(std::chrono::milliseconds duration);

// "URL: cause (3 attempts)", the URL without credentials.
base::Error attempt_error(base::ErrorCode code, std::string_view url, const std::string& cause,
                          int attempts);

// Whether HTTP can carry these headers. Errors: kInvalid; names the header, never its value.
base::Status check_headers(const std::vector<std::pair<std::string, std::string>>& headers);

}  // namespace flopsight::net
