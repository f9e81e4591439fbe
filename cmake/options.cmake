# Warnings and sanitizers as target properties of one interface library; every target links it.
add_library(flopsight_options INTERFACE)
target_compile_features(flopsight_options INTERFACE cxx_std_20)
set(flopsight_warnings -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror)
set(flopsight_warnings_off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of g++ 12 in its own headers at -O2 (std::string and std::variant inlining).
  set(flopsight_warnings_off -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
endif()
target_compile_options(flopsight_options INTERFACE ${flopsight_warnings} -fno-omit-frame-pointer ${flopsight_warnings_off})
target_include_directories(flopsight_options INTERFACE ${CMAKE_SOURCE_DIR}/src)

set(FLOPSIGHT_SANITIZE "" CACHE STRING "value of -fsanitize=, empty for none")
if(FLOPSIGHT_SANITIZE)
  target_compile_options(flopsight_options INTERFACE -fsanitize=${FLOPSIGHT_SANITIZE}
    -fno-sanitize-recover=all)
  target_link_options(flopsight_options INTERFACE -fsanitize=${FLOPSIGHT_SANITIZE})
endif()
option(FLOPSIGHT_LIBFUZZER "link fuzz targets with libFuzzer (clang) instead of the replay main" OFF)
if(FLOPSIGHT_LIBFUZZER)
  target_compile_options(flopsight_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(FLOPSIGHT_CCACHE ccache)
if(FLOPSIGHT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FLOPSIGHT_CCACHE})
endif()
