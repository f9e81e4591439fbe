# flopsight_write_changed(FILE TEXT): writes it where it is not that text already, so that nothing is built anew.
function(flopsight_write_changed FILE TEXT)
  if(EXISTS ${FILE})
    file(READ ${FILE} before)
  else()
    set(before "")
  endif()
  if(NOT before STREQUAL TEXT)
    file(WRITE ${FILE} "${TEXT}")
  endif()
endfunction()

# flopsight_embed(OUT_VAR FILE SYMBOL): a generated .cc that defines
# `extern const std::string_view flopsight::embedded::SYMBOL` with the bytes of FILE.
function(flopsight_embed OUT_VAR FILE SYMBOL)
  get_filename_component(stem ${FILE} NAME_WE)
  set(out ${CMAKE_BINARY_DIR}/generated/${stem}_embedded.cc)
  file(READ ${FILE} content)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FILE})
  # Raw string literals are limited to 64 KiB by the standard's minimum; split by line, which is
  # also what keeps the generated file readable.
  string(REPLACE ";" "\\;" content "${content}")
  string(REPLACE "\n" ";" lines "${content}")
  set(body "")
  foreach(line IN LISTS lines)
    string(APPEND body "    R\"FSEMBED(${line}\n)FSEMBED\"\n")
  endforeach()
  set(text "// Generated from ${stem}; do not edit.\n#include <string_view>\nnamespace flopsight::embedded {\nextern const std::string_view ${SYMBOL};\nconst std::string_view ${SYMBOL} =\n${body};\n}\n")
  flopsight_write_changed(${out} "${text}")
  set(${OUT_VAR} ${out} PARENT_SCOPE)
endfunction()

# flopsight_embed_bytes(OUT_VAR FILE SYMBOL): the same for a file of any bytes, which the assembler takes as they are; without the file,
# nothing is in it. FILE may come and go: whoever calls lists it in a glob with CONFIGURE_DEPENDS.
function(flopsight_embed_bytes OUT_VAR FILE SYMBOL)
  get_filename_component(stem ${FILE} NAME_WE)
  set(out ${CMAKE_BINARY_DIR}/generated/${stem}_embedded.cc)
  set(head "// Generated; do not edit.\n#include <string_view>\nnamespace flopsight::embedded {\nextern const std::string_view ${SYMBOL};\n")
  if(EXISTS ${FILE})
    set(text "${head}}
__asm__(\".pushsection .rodata\\n.global flopsight_${SYMBOL}_begin\\n.global flopsight_${SYMBOL}_end\\n\"
        \"flopsight_${SYMBOL}_begin:\\n.incbin \\\"${FILE}\\\"\\nflopsight_${SYMBOL}_end:\\n.byte 0\\n.popsection\\n\");
extern \"C\" const char flopsight_${SYMBOL}_begin[], flopsight_${SYMBOL}_end[];
const std::string_view flopsight::embedded::${SYMBOL}(flopsight_${SYMBOL}_begin,
                                                    static_cast<std::size_t>(flopsight_${SYMBOL}_end - flopsight_${SYMBOL}_begin));\n")
  else()
    set(text "${head}const std::string_view ${SYMBOL};\n}\n")
  endif()
  flopsight_write_changed(${out} "${text}")
  set(${OUT_VAR} ${out} PARENT_SCOPE)
endfunction()
