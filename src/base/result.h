#pragma once
// Result<T>: a value, or one Error out of a short closed list of codes. The world's failures (a missing
// file, a refused connection, malformed bytes) travel as values; nothing throws across a module.
// std::expected would do, but it is C++23 and clang 14 cannot use the one of libstdc++ 12.
//
// Threads: plain values. An Error's message is one line without a full stop: what, where, what was
// expected. Each hop may prepend context with within().

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace flopsight::base {

enum class ErrorCode {
  kInvalid,      // input that breaks its format or a rule of ours
  kNotFound,     // a file, a metric, a job that is not there
  kUnsupported,  // valid, and more than we can do
  kUnavailable,  // may succeed later: refused connection, time-out, 5xx
  kCorrupt,      // bytes that were once right: a checksum differs
  kLimit,        // larger than a stated limit
  kIo,           // the operating system said no
};

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;

  Error within(std::string_view context) const {
    return Error{code, std::string(context) + ": " + message};
  }
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    FLOPSIGHT_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    FLOPSIGHT_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    FLOPSIGHT_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

  const Error& error() const {
    FLOPSIGHT_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }

  Result within(std::string_view context) && {
    if (ok()) return std::move(*this);
    return error().within(context);
  }

 private:
  std::variant<T, Error> state_;
};

// A Result without a value.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    FLOPSIGHT_CHECK(failed_);
    return error_;
  }
  Status within(std::string_view context) && {
    if (ok()) return {};
    return error_.within(context);
  }

 private:
  bool failed_ = false;
  Error error_;
};

}  // namespace flopsight::base

#define FLOPSIGHT_CONCAT_INNER(a, b) a##b
#define FLOPSIGHT_CONCAT(a, b) FLOPSIGHT_CONCAT_INNER(a, b)

// FLOPSIGHT_ASSIGN_OR_RETURN(auto x, f()): x is f's value, or this function returns f's error.
#define FLOPSIGHT_ASSIGN_OR_RETURN(target, expression)                         \
  FLOPSIGHT_ASSIGN_OR_RETURN_INNER(FLOPSIGHT_CONCAT(result_, __LINE__), target, expression)
#define FLOPSIGHT_ASSIGN_OR_RETURN_INNER(temporary, target, expression) \
  auto temporary = (expression);                                        \
  if (!temporary.ok()) return temporary.error();                        \
  target = std::move(temporary).value()

#define FLOPSIGHT_RETURN_IF_ERROR(expression)                                \
  do {                                                                       \
    if (auto status_ = (expression); !status_.ok()) return status_.error(); \
  } while (false)
