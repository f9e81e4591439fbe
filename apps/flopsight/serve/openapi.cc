#include "serve/openapi.h"

namespace flopsight::embedded {
extern const std::string_view kOpenapiJson;
}

namespace flopsight::app {

std::string_view openapi_document() { return embedded::kOpenapiJson; }

std::string start_page(bool simulated) {
  return std::string("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Flopsight</title>"
                     "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em}"
                     ".s{background:#fff3cd;padding:.5em 1em}</style><h1>Flopsight</h1>") +
         (simulated ? "<p class=\"s\">Some of this fleet is <strong>simulated</strong>: it does not exist.</p>" : "") +
         "<p>The service is running. <a href=\"/api/v1/fleet\">Fleet</a>, <a href=\"/api/v1/jobs\">jobs</a>, "
         "<a href=\"/metrics\">metrics</a>, <a href=\"/api/v1/openapi.json\">API</a>.</p></html>\n";
}

}  // namespace flopsight::app
