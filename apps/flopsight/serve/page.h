#pragma once
// The page at / and the files that it loads, out of the program itself: web/dist/page.pack as web/tools/pack.mjs writes it, put into the binary
// by CMake. In a program that was built without it, a page that says how to build it.
//
// Files under /assets/ have a hash of their content in their name and may be kept for ever; the page itself is asked for again each
// time, and answered 304 where it is the same. Bodies are compressed already where the client takes gzip.
// Threads: pure; the pack is read once.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_server.h"

namespace flopsight::app {

struct PageFile {
  std::string path;  // "index.html", "assets/main-1a2b.js"
  std::string content_type;
  std::string tag;         // of its content, without quotes
  std::string_view plain;  // of the pack
  std::string_view gzip;
};

// Borrows the bytes. Errors: kCorrupt, saying where. Nothing in it: an empty pack.
base::Result<std::vector<PageFile>> read_page_pack(std::string_view bytes);

// Whether a path is a view of the page ("/", "/job", …); all are answered with the same document, which reads its address.
bool is_page_path(std::string_view path);

// `files` empty: how to build the page. 404 for a file that is not there.
net::ServerResponse page_answer(const net::ServerRequest& request, const std::vector<PageFile>& files);
// Of the files in this program.
net::ServerResponse page_answer(const net::ServerRequest& request);

}  // namespace flopsight::app
