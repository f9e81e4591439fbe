#pragma once
// One attempt of a request as libcurl sees it: the private half of http_client.cc.

#include <curl/curl.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http_answer.h"
#include "net/http_client.h"
#include "net/http_target.h"

namespace flopsight::net {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Easy = std::unique_ptr<CURL, Freer<curl_easy_cleanup>>;
using Multi = std::unique_ptr<CURLM, Freer<curl_multi_cleanup>>;
using Url = std::unique_ptr<CURLU, Freer<curl_url_cleanup>>;
using CurlText = std::unique_ptr<char, Freer<curl_free>>;

using Lines = std::unique_ptr<curl_slist, Freer<curl_slist_free_all>>;

struct Transfer {
  std::uint64_t id = 0;
  const HttpRequest* request = nullptr;
  std::unique_ptr<const HttpRequest> owned;  // where nobody else keeps it
  HttpTarget target;             // of the present hop
  bool with_credentials = true;  // false once a redirect has left the origin
  int attempts = 0;
  int redirects = 0;
  std::chrono::steady_clock::time_point due;  // of the next attempt, while it waits

  Easy easy;
  Lines headers;
  Lines connect_to;
  HttpAnswer answer;
  char error_buffer[CURL_ERROR_SIZE] = {};
};

// `location` seen from `url`, which may be empty. Errors: kInvalid, without the URL.
base::Result<HttpTarget> parse_target(const std::string& url, const std::string& location);

// Sets the easy handle up for the transfer's present hop. The transfer must not move until it has ended.
void prepare_transfer(Transfer& transfer, const HttpOptions& options);

base::Error transfer_failure(const Transfer& transfer, base::ErrorCode code, const std::string& cause);
// Of an attempt that ended with `code`, and of one whose answer has a status that is an error.
base::Error transport_failure(const Transfer& transfer, const HttpOptions& options, CURLcode code);
base::Error status_failure(const Transfer& transfer);

}  // namespace flopsight::net
