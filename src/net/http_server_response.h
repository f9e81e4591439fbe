#pragma once
// A ServerResponse as the bytes before its body. Pure. What a handler took from a request cannot
// become a header or a response of its own: control characters in a value become spaces, and a name
// that is no token is left out with its value.

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

#include "net/http_server.h"

namespace flopsight::net {

struct ResponseFraming {
  bool keep_alive = true;
  bool http_1_0 = false;       // such a client must be told that the connection stays
  std::string_view date = {};  // http_date(); empty: left out
};

// Content-Length is that of the body also where none is sent (HEAD). Content-Length,
// Transfer-Encoding, Connection and their like are the server's: a handler's are left out. A status
// that is none becomes 500.
std::string response_head(const ServerResponse& response, const ResponseFraming& framing);

bool status_has_body(int status);  // 204 and 304 have none

// "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale.
std::string http_date(std::time_t seconds);

// {"error": "503 Service Unavailable: too many bodies at once"}: one line of JSON, as all that refuses.
ServerResponse error_response(int status, std::string_view reason = {});

}  // namespace flopsight::net
