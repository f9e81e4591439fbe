#include "serve/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
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

base::Result<pid_t> spawn(const std::vector<std::string>& arguments, const ChildOptions& options,
                          const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  const auto destroy = [&](void*) {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  };
  const std::unique_ptr<void, decltype(destroy)> guard(&actions, destroy);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
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

base::Status check_end(const std::string& name, int status, const std::string& complaint) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string what = name + ": ended with " +
                     (WIFEXITED(status) ? std::to_string(WEXITSTATUS(status))
                                        : "signal " + std::to_string(WTERMSIG(status)));
  const std::string line = first_line(complaint);
  return Error{ErrorCode::kUnavailable, line.empty() ? what : what + ": " + line};
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
    if (over) {
      return Error{
          ErrorCode::kLimit,
          name + ": more than " + std::to_string(options.output_bytes_max) + " bytes of output"};
    }
  }
  return {};
}

}  // namespace

base::Result<std::string> run_child(const std::vector<std::string>& arguments,
                                    const ChildOptions& options) {
  FLOPSIGHT_CHECK(!arguments.empty());
  Pipe out, err;
  FLOPSIGHT_RETURN_IF_ERROR(out.open());
  FLOPSIGHT_RETURN_IF_ERROR(err.open());
  FLOPSIGHT_ASSIGN_OR_RETURN(const pid_t child, spawn(arguments, options, out, err));
  out.write.close();
  err.write.close();
  std::string text, complaint;
  const base::Status collected = collect(arguments[0], options, out, err, text, complaint);
  if (!collected.ok()) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  FLOPSIGHT_RETURN_IF_ERROR(collected);
  FLOPSIGHT_RETURN_IF_ERROR(check_end(arguments[0], status, complaint));
  return text;
}

}  // namespace flopsight::app
