#include "serve/route_answers.h"

#include "base/text.h"
#include "views/service_json.h"

namespace flopsight::app {

using net::ServerResponse;

ServerResponse json(std::string body, int status) {
  ServerResponse response;
  response.status = status;
  response.content_type = "application/json; charset=utf-8";
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

ServerResponse failed(int status, std::string_view message) {
  return json(views::error_json(base::printable(message, 500)), status);
}

ServerResponse failed(const base::Error& error) {
  switch (error.code) {
    case base::ErrorCode::kInvalid:
      return failed(400, error.message);
    case base::ErrorCode::kNotFound:
      return failed(404, error.message);
    case base::ErrorCode::kUnsupported:
      return failed(400, error.message);
    case base::ErrorCode::kLimit:
      return failed(422, error.message);
    case base::ErrorCode::kUnavailable:
      return failed(503, error.message);
    case base::ErrorCode::kCorrupt:
    case base::ErrorCode::kIo:
      return failed(500, error.message);
  }
  return failed(500, "");
}

ServerResponse not_kept(const base::Error& error) {
  ServerResponse response =
      error.code == base::ErrorCode::kLimit ? failed(503, error.message) : failed(error);
  if (response.status == 503) response.headers.emplace_back("Retry-After", "60");
  return response;
}

}  // namespace flopsight::app
