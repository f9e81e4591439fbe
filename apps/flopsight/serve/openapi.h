#pragma once
// The API described for machines (OpenAPI 3.0), and the page at / until there is a better one.

#include <string>
#include <string_view>

namespace flopsight::app {

std::string_view openapi_document();
std::string start_page(bool simulated);

}  // namespace flopsight::app
