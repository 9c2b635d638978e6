# Writes a C file that holds texts: cmake -P embed_texts.cmake OUT FILE... They become an array of
# bytes each, since compilers need not take a string as long as a file, and any of them reads bytes.
# The table stk_cuda_texts, declared in backend/cuda/cuda_texts.h, names them.
math(EXPR last "${CMAKE_ARGC} - 1")
set(arrays "")
set(rows "")
foreach(i RANGE 4 ${last})
  file(READ "${CMAKE_ARGV${i}}" hex HEX)
  get_filename_component(name "${CMAKE_ARGV${i}}" NAME)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND arrays "static const unsigned char text_${i}[] = {\n${hex}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)text_${i}},\n")
endforeach()
file(WRITE "${CMAKE_ARGV3}" "/* Written by cmake/embed_texts.cmake. */
#include \"backend/cuda/cuda_texts.h\"

${arrays}
const cuda_text stk_cuda_texts[] = {
${rows}    {NULL, NULL},
};
")
