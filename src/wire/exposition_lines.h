#pragma once
// The lines of an exposition that are of certain metrics, as they are, each with an end. What the parser makes of those metrics it makes of these
// lines alone as well, in either format: they are kept for reading them again. Threads: pure.

#include <functional>
#include <string>
#include <string_view>

namespace flopsight::wire {

// Appends to `out`. `wanted` is asked with the name as it stands in the line; lines with the name between braces are always taken, and so is the marker
// behind which nothing counts (`# EOF`).
void append_lines_of(std::string_view text, const std::function<bool(std::string_view metric)>& wanted, std::string& out);

}  // namespace flopsight::wire
