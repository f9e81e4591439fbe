#pragma once
// The two shapes of an answer: JSON, and an error as {"error": one line} with the status that its
// kind has. Threads: pure.

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_server.h"

namespace flopsight::app {

net::ServerResponse json(std::string body, int status = 200);
net::ServerResponse failed(int status, std::string_view message);
net::ServerResponse failed(const base::Error& error);
// Of what could not be kept. Full is for later: 503; all else is as above.
net::ServerResponse not_kept(const base::Error& error);

}  // namespace flopsight::app
