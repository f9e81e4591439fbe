#include "serve/openapi.h"

namespace flopsight::embedded {
extern const std::string_view kOpenapiJson;
}

namespace flopsight::app {

std::string_view openapi_document() { return embedded::kOpenapiJson; }

}  // namespace flopsight::app
