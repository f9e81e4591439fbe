#pragma once
// The API described for machines (OpenAPI 3.0).

#include <string_view>

namespace flopsight::app {

std::string_view openapi_document();

}  // namespace flopsight::app
