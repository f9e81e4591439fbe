#include "serve/page.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/text.h"
#include "serve/route_answers.h"

namespace flopsight::embedded {
extern const std::string_view kPagePack;
}

namespace flopsight::app {
namespace {

using net::ServerRequest;
using net::ServerResponse;

constexpr std::string_view kFirstLine = "flopsight-page 1";
constexpr std::string_view kPages[] = {"/", "/map", "/jobs", "/job", "/study", "/waste", "/findings", "/finding", "/quality", "/host", "/gpu"};

// Nothing but our own files and our own API: a name that became markup in spite of all could still not run or send anything. Images
// are also drawn by the page itself (PNG of a chart).
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::string_view kNotBuilt =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Flopsight</title><h1>Flopsight</h1>"
    "<p>The service is running, but this program was built without its page. In the source tree, "
    "<code>tools/build-web</code> builds the page and <code>tools/build release flopsight</code> the program with it; "
    "<code>./run</code> does both.</p>"
    "<p>The API is there: <a href=\"api/v1/fleet\">fleet</a>, <a href=\"api/v1/jobs\">jobs</a>, <a href=\"metrics\">metrics</a>, "
    "<a href=\"api/v1/openapi.json\">description</a>.</p></html>\n";

base::Error damaged(std::size_t line) {
  return {base::ErrorCode::kCorrupt, "page pack, line " + std::to_string(line) + ": expected path, type, tag and two lengths within the file"};
}

bool takes_gzip(const ServerRequest& request) {
  for (const std::string& part : base::split(request.header("accept-encoding"), ',')) {
    const std::vector<std::string> words = base::split(part, ';');
    if (base::trim(words[0]) != "gzip") continue;
    const std::string_view quality = words.size() > 1 ? base::trim(words[1]) : std::string_view();
    return quality != "q=0" && quality != "q=0.0";
  }
  return false;
}

void protect(ServerResponse& response) {
  response.headers.emplace_back("Content-Security-Policy", std::string(kPolicy));
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
}

}  // namespace

base::Result<std::vector<PageFile>> read_page_pack(std::string_view bytes) {
  std::vector<PageFile> files;
  if (bytes.empty()) return files;
  std::vector<std::pair<std::size_t, std::size_t>> lengths;
  std::size_t at = 0;
  for (std::size_t line_number = 1;; ++line_number) {
    const std::size_t end = bytes.find('\n', at);
    if (end == std::string_view::npos) return damaged(line_number);
    const std::string_view line = bytes.substr(at, end - at);
    at = end + 1;
    if (line.empty()) break;
    if (line_number == 1) {
      if (line != kFirstLine) return damaged(line_number);
      continue;
    }
    const std::vector<std::string> fields = base::split(line, '\t');
    if (fields.size() != 5) return damaged(line_number);
    const auto plain = base::parse_number(fields[3]), gzip = base::parse_number(fields[4]);
    const auto is_length = [&](const auto& n) { return n && *n >= 0 && *n <= static_cast<double>(bytes.size()); };
    if (!is_length(plain) || !is_length(gzip)) return damaged(line_number);
    files.push_back({fields[0], fields[1], fields[2], {}, {}});
    lengths.emplace_back(static_cast<std::size_t>(*plain), static_cast<std::size_t>(*gzip));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (lengths[i].first + lengths[i].second > bytes.size() - at) return damaged(i + 2);
    files[i].plain = bytes.substr(at, lengths[i].first);
    files[i].gzip = bytes.substr(at + lengths[i].first, lengths[i].second);
    at += lengths[i].first + lengths[i].second;
  }
  return files;
}

bool is_page_path(std::string_view path) { return std::find(std::begin(kPages), std::end(kPages), path) != std::end(kPages); }

ServerResponse page_answer(const ServerRequest& request, const std::vector<PageFile>& files) {
  ServerResponse response;
  protect(response);
  const bool is_page = is_page_path(request.path);
  if (files.empty() && is_page) {
    response.content_type = "text/html; charset=utf-8";
    response.body = kNotBuilt;
    return response;
  }
  const std::string_view wanted = is_page ? std::string_view("index.html") : std::string_view(request.path).substr(1);
  const auto file = std::find_if(files.begin(), files.end(), [&](const PageFile& one) { return one.path == wanted; });
  if (file == files.end()) return failed(404, "no such file of the page");
  const std::string tag = "\"" + file->tag + "\"";
  response.content_type = file->content_type;
  response.headers.emplace_back("Cache-Control", is_page ? "no-cache" : "public, max-age=31536000, immutable");
  response.headers.emplace_back("ETag", tag);
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (request.header("if-none-match") == tag) {
    response.status = 304;
    return response;
  }
  if (takes_gzip(request)) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = file->gzip;
  } else {
    response.body = file->plain;
  }
  return response;
}

ServerResponse page_answer(const ServerRequest& request) {
  static const std::vector<PageFile> files = [] {
    auto read = read_page_pack(embedded::kPagePack);
    FLOPSIGHT_CHECK(read.ok());
    return std::move(read).value();
  }();
  return page_answer(request, files);
}

}  // namespace flopsight::app
