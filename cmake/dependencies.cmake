# What Stoker links with. Out of it come STK_LIBRARIES, STK_DEFINITIONS, STK_CBLAS_INCLUDE and, for
# stoker.pc, STK_PC_REQUIRES and STK_PC_LIBS. One line says what was found, so that an optional part
# that is missing is no surprise.
find_package(PkgConfig QUIET)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED) # which libpng needs in any case
set(STK_LIBRARIES Threads::Threads JPEG::JPEG PNG::PNG ZLIB::ZLIB m ${CMAKE_DL_LIBS})
set(STK_DEFINITIONS "")
set(STK_PC_REQUIRES "")
set(STK_PC_LIBS "-lm -pthread -ldl")

# stk_static_need(module library): what a program that links the static library needs, by pkg-config
# where it knows the module and by the library's path where it does not.
function(stk_static_need module library)
  set(known 1)
  if(PKG_CONFIG_EXECUTABLE)
    execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --exists ${module} RESULT_VARIABLE known)
  endif()
  if(known EQUAL 0)
    set(STK_PC_REQUIRES "${STK_PC_REQUIRES} ${module}" PARENT_SCOPE)
  else()
    set(STK_PC_LIBS "${library} ${STK_PC_LIBS}" PARENT_SCOPE)
  endif()
endfunction()

# CBLAS: OpenBLAS by preference, else anything that has cblas.h. STK_CBLAS_INCLUDE and
# STK_CBLAS_LIBRARY override.
find_path(STK_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-pthread
          PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread)
find_library(STK_CBLAS_LIBRARY NAMES openblas cblas blis mkl_rt)
if(NOT STK_CBLAS_INCLUDE OR NOT STK_CBLAS_LIBRARY)
  message(FATAL_ERROR "No CBLAS found. Install libopenblas-dev, or set STK_CBLAS_INCLUDE and "
                      "STK_CBLAS_LIBRARY.")
endif()
list(APPEND STK_LIBRARIES ${STK_CBLAS_LIBRARY})
get_filename_component(STK_CBLAS_NAME ${STK_CBLAS_LIBRARY} NAME_WE)
string(REGEX REPLACE "^lib" "" STK_CBLAS_NAME ${STK_CBLAS_NAME})
stk_static_need(libjpeg -ljpeg)
stk_static_need(libpng -lpng)
stk_static_need(zlib -lz)
stk_static_need(${STK_CBLAS_NAME} ${STK_CBLAS_LIBRARY})

# stk_wish(PART variable): what was asked for, AUTO, ON or OFF, goes to the variable.
function(stk_wish part wish)
  string(TOUPPER "${STK_${part}}" value)
  if(NOT value MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "STK_${part} is ${STK_${part}}; it can be AUTO, ON or OFF.")
  endif()
  set(${wish} ${value} PARENT_SCOPE)
endfunction()

# stk_optional(PART pkg-config-name [VERSION least] [SHARED flag]): defines STK_HAVE_PART when the
# library is there, at least of this version, and wanted. With SHARED, programs that link the static
# library use the shared one with the flag: what a static one would need is not installed with it.
function(stk_optional part module)
  cmake_parse_arguments(PART "" "VERSION;SHARED" "" ${ARGN})
  set(have OFF)
  stk_wish(${part} wish)
  if(NOT wish STREQUAL "OFF" AND PkgConfig_FOUND)
    set(least ${module})
    if(PART_VERSION)
      set(least "${module}>=${PART_VERSION}")
    endif()
    pkg_check_modules(STK_DEP_${part} QUIET IMPORTED_TARGET ${least})
    set(have ${STK_DEP_${part}_FOUND})
  endif()
  if(have)
    set(STK_LIBRARIES ${STK_LIBRARIES} PkgConfig::STK_DEP_${part} PARENT_SCOPE)
    set(STK_DEFINITIONS ${STK_DEFINITIONS} STK_HAVE_${part}=1 PARENT_SCOPE)
    if(PART_SHARED)
      set(STK_PC_LIBS "${PART_SHARED} ${STK_PC_LIBS}" PARENT_SCOPE)
    else()
      set(STK_PC_REQUIRES "${STK_PC_REQUIRES} ${module}" PARENT_SCOPE)
    endif()
    set(STK_FOUND "${STK_FOUND} ${module}" PARENT_SCOPE)
  elseif(wish STREQUAL "ON")
    message(FATAL_ERROR "STK_${part}=ON, but pkg-config does not know ${module}.")
  else()
    set(STK_MISSING "${STK_MISSING} ${module}" PARENT_SCOPE)
  endif()
endfunction()

# S3 is libcurl and expat together, which CMake finds with pkg-config and without. Programs that link
# the static library use the shared libcurl: what a static one would need differs between systems,
# and its pkg-config file names libraries that need not be installed.
function(stk_optional_s3)
  stk_wish(S3 wish)
  if(NOT wish STREQUAL "OFF")
    find_package(CURL QUIET)
    find_package(EXPAT QUIET)
  endif()
  if(TARGET CURL::libcurl AND TARGET EXPAT::EXPAT)
    set(STK_LIBRARIES ${STK_LIBRARIES} CURL::libcurl EXPAT::EXPAT PARENT_SCOPE)
    set(STK_DEFINITIONS ${STK_DEFINITIONS} STK_HAVE_S3=1 PARENT_SCOPE)
    set(STK_PC_LIBS "-lcurl -lexpat ${STK_PC_LIBS}" PARENT_SCOPE)
    set(STK_FOUND "${STK_FOUND} libcurl expat" PARENT_SCOPE)
  elseif(wish STREQUAL "ON")
    message(FATAL_ERROR "STK_S3=ON, but libcurl and expat are not both there, headers included.")
  else()
    set(STK_MISSING "${STK_MISSING} libcurl+expat" PARENT_SCOPE)
  endif()
endfunction()

set(STK_FOUND "")
set(STK_MISSING "")
stk_optional(WEBP libwebp)
stk_optional(TIFF libtiff-4 VERSION 4.5) # older ones cannot be told to be silent for one file alone
stk_optional(JPEG2000 libopenjp2)
stk_optional(YAML yaml-0.1)
stk_optional(CAIRO cairo)
stk_optional(ARCHIVE libarchive SHARED -larchive)
stk_optional_s3()
string(STRIP "${STK_PC_REQUIRES}" STK_PC_REQUIRES)
foreach(list STK_FOUND STK_MISSING)
  if(${list} STREQUAL "")
    set(${list} " none")
  endif()
endforeach()
message(STATUS "CBLAS ${STK_CBLAS_LIBRARY}; optional parts found:${STK_FOUND}; left out:${STK_MISSING}")
