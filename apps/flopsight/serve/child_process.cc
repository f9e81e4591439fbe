#include "serve/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "base/text.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kErrorTextMax = 64 * 1024;        // of standard error, what is kept
constexpr std::chrono::milliseconds kStopLatency{100};  // how soon a stop is seen

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  void reset(int fd) {
    close();
    fd_ = fd;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

Error system_error(const std::string& what, int code) {
  return {ErrorCode::kIo, what + ": " + std::strerror(code)};
}

std::vector<std::string> environment_of(const ChildOptions& options) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = text.substr(0, equals);
    const bool is_inherited =
        !options.inherited || std::find(options.inherited->begin(), options.inherited->end(), name) != options.inherited->end();
    if (is_inherited) all[name] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : options.environment) all[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : all) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

struct Pipe {
  Descriptor read, write;
  base::Status open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe", errno);
    read.reset(ends[0]);
    write.reset(ends[1]);
    return {};
  }
};

// A file without a name that can be read from its beginning, so that nobody waits for who reads it.
base::Status put_input(const std::string& text, Descriptor& input) {
  input.reset(::memfd_create("input", MFD_CLOEXEC));
  if (input.get() < 0) return system_error("memfd_create", errno);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(input.get(), text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("write", errno);
    at += static_cast<std::size_t>(written);
  }
  if (::lseek(input.get(), 0, SEEK_SET) != 0) return system_error("lseek", errno);
  return {};
}

base::Result<pid_t> spawn(const std::vector<std::string>& arguments, const ChildOptions& options,
                          const Pipe& out, const Pipe& err) {
  Descriptor input;
  if (options.input) FLOPSIGHT_RETURN_IF_ERROR(put_input(*options.input, input));
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  const auto destroy = [&](void*) {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  };
  const std::unique_ptr<void, decltype(destroy)> guard(&actions, destroy);
  if (options.input) {
    posix_spawn_file_actions_adddup2(&actions, input.get(), 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> argument_texts = arguments, environment_texts = environment_of(options);
  std::vector<char*> argument_list = pointers_to(argument_texts),
                     environment_list = pointers_to(environment_texts);
  pid_t child = -1;
  const int code = posix_spawnp(&child, argument_list[0], &actions, &attributes,
                                argument_list.data(), environment_list.data());
  if (code == ENOENT) {
    return Error{ErrorCode::kNotFound,
                 arguments[0] + ": no such program" +
                     (arguments[0].find('/') == std::string::npos ? " in PATH" : "")};
  }
  if (code != 0) return system_error(arguments[0], code);
  return child;
}

// Appends what can be read. False at the end of it.
bool drain(Descriptor& from, std::string& into, std::size_t bytes_max, bool& over) {
  char buffer[64 * 1024];
  const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) {
    from.close();
    return false;
  }
  const std::size_t room = bytes_max - std::min(bytes_max, into.size());
  over |= static_cast<std::size_t>(got) > room;
  into.append(buffer, std::min(room, static_cast<std::size_t>(got)));
  return true;
}

std::string first_line(const std::string& text) {
  const std::string_view trimmed = base::trim(text);
  return base::printable(trimmed.substr(0, trimmed.find('\n')));
}

// Everything until both pipes are closed; or why it was not waited for.
base::Status collect(const std::string& name, const ChildOptions& options, Pipe& out, Pipe& err,
                     std::string& text, std::string& complaint) {
  const Clock::time_point deadline = Clock::now() + options.timeout;
  bool over = false, ignored = false;
  while (out.read.get() >= 0 || err.read.get() >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return Error{
          ErrorCode::kUnavailable,
          name + ": no end after " + std::to_string(options.timeout.count()) + " ms, killed"};
    }
    if (options.stop != nullptr && options.stop->load())
      return Error{ErrorCode::kUnavailable, name + ": stopped"};
    pollfd waiting[2] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
    if (::poll(waiting, 2, static_cast<int>(std::min(left, kStopLatency).count())) < 0 &&
        errno != EINTR) {
      return system_error(name, errno);
    }
    if (waiting[0].revents != 0) drain(out.read, text, options.output_bytes_max, over);
    if (waiting[1].revents != 0) drain(err.read, complaint, kErrorTextMax, ignored);
    if (over && !options.drop_excess_output) {
      return Error{
          ErrorCode::kLimit,
          name + ": more than " + std::to_string(options.output_bytes_max) + " bytes of output"};
    }
  }
  return {};
}

}  // namespace

base::Result<ChildEnd> run_child_to_end(const std::vector<std::string>& arguments,
                                        const ChildOptions& options) {
  FLOPSIGHT_CHECK(!arguments.empty());
  Pipe out, err;
  FLOPSIGHT_RETURN_IF_ERROR(out.open());
  FLOPSIGHT_RETURN_IF_ERROR(err.open());
  FLOPSIGHT_ASSIGN_OR_RETURN(const pid_t child, spawn(arguments, options, out, err));
  out.write.close();
  err.write.close();
  ChildEnd end;
  std::string complaint;
  const base::Status collected = collect(arguments[0], options, out, err, end.output, complaint);
  if (!collected.ok()) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  FLOPSIGHT_RETURN_IF_ERROR(collected);
  end.complaint = first_line(complaint);
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

base::Result<std::string> run_child(const std::vector<std::string>& arguments,
                                    const ChildOptions& options) {
  FLOPSIGHT_ASSIGN_OR_RETURN(ChildEnd end, run_child_to_end(arguments, options));
  if (end.exit_code == 0) return std::move(end.output);
  const std::string code = end.exit_code > 128 ? "signal " + std::to_string(end.exit_code - 128) : std::to_string(end.exit_code);
  return Error{ErrorCode::kUnavailable,
               arguments[0] + ": ended with " + code + (end.complaint.empty() ? "" : ": " + end.complaint)};
}

}  // namespace flopsight::app
