#pragma once
// Numbers of the command line. The parser takes "nan", "inf", "-1" for an unsigned number, and "010" as eight; what is asked for is
// never any of these, so that they are refused here, for every option of every command.

#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
class Option;
}

namespace flopsight::app {

// A finite number from `least` to `most`, said as it was typed where it is none. Returns the option.
CLI::Option* in_range(CLI::Option* option, double least, double most);

// A number, or a percentage that says so ("54%"), as a ratio; nothing for another text.
std::optional<double> ratio_of(std::string_view text);

// What is wrong with a number among the options that were given, of this command and those under it: floating-point numbers are finite, whole ones
// have digits only. Nothing where all are right.
std::optional<std::string> wrong_number(const CLI::App& app);

}  // namespace flopsight::app
