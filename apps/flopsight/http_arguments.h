#pragma once
// Options of every command that fetches over HTTP.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct HttpArguments {
  // Files are named, not read, here.
  net::HttpOptions http;
  std::string bearer_token_path;
  std::string basic_user;
  std::string basic_password_path;
};

struct HttpTexts {
  std::string timeout;
  std::vector<std::string> headers;
};

void add_http(CLI::App& app, HttpArguments& arguments, HttpTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_http(HttpArguments& arguments, const HttpTexts& texts);

// Whether one of them was given.
bool any_given(const HttpArguments& arguments, const HttpTexts& texts);

// Reads the token and the password into `http`.
base::Status read_credentials(const HttpArguments& arguments, net::HttpOptions& http);

}  // namespace flopsight::app
