#pragma once
// The one line that a command says when it cannot go on: "flopsight COMMAND: what, where, what was expected". Names of files and values of options are
// whatever somebody typed; they are made safe for a terminal here, and cannot make a second line.

#include <string>
#include <string_view>

#include "base/result.h"
#include "env.h"

namespace flopsight::app {

// With its newline.
std::string error_line(std::string_view command, std::string_view message);
// To env.err. Returns kExitUsage.
int fail(const Env& env, std::string_view command, std::string_view message);
inline int fail(const Env& env, std::string_view command, const base::Error& error) { return fail(env, command, error.message); }

}  // namespace flopsight::app
