# Writes a C file that holds texts: cmake -P embed_texts.cmake OUT HEADER TYPE TABLE FILE... They
# become an array of bytes each, since compilers need not take a string as long as a file, and any of
# them reads bytes. The table, which HEADER declares, names them; its TYPE is a struct of name and text.
math(EXPR last "${CMAKE_ARGC} - 1")
set(arrays "")
set(rows "")
foreach(i RANGE 7 ${last})
  file(READ "${CMAKE_ARGV${i}}" hex HEX)
  get_filename_component(name "${CMAKE_ARGV${i}}" NAME)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND arrays "static const unsigned char text_${i}[] = {\n${hex}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)text_${i}},\n")
endforeach()
file(WRITE "${CMAKE_ARGV3}" "/* Written by cmake/embed_texts.cmake. */
#include \"${CMAKE_ARGV4}\"

${arrays}
const ${CMAKE_ARGV5} ${CMAKE_ARGV6}[] = {
${rows}    {NULL, NULL},
};
")
