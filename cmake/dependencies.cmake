# What Stoker links with. STK_LIBRARIES and STK_DEFINITIONS come out of it; one line says what was
# found, so that an optional part that is missing is no surprise.
find_package(PkgConfig QUIET)
find_package(Threads REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
set(STK_LIBRARIES Threads::Threads JPEG::JPEG PNG::PNG m)
set(STK_DEFINITIONS "")

# CBLAS: OpenBLAS by preference, else anything that has cblas.h. BLAS_ROOT or STK_CBLAS_* override.
find_path(STK_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-pthread
          PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread)
find_library(STK_CBLAS_LIBRARY NAMES openblas cblas blis mkl_rt)
if(NOT STK_CBLAS_INCLUDE OR NOT STK_CBLAS_LIBRARY)
  message(FATAL_ERROR "No CBLAS found. Install libopenblas-dev, or set STK_CBLAS_INCLUDE and "
                      "STK_CBLAS_LIBRARY.")
endif()
include_directories(SYSTEM ${STK_CBLAS_INCLUDE})
list(APPEND STK_LIBRARIES ${STK_CBLAS_LIBRARY})

# stk_optional(PART pkg-config-name): defines STK_HAVE_PART when the library is there and wanted.
function(stk_optional part module)
  set(have OFF)
  if(NOT STK_${part} STREQUAL "OFF" AND PkgConfig_FOUND)
    pkg_check_modules(STK_DEP_${part} QUIET IMPORTED_TARGET ${module})
    set(have ${STK_DEP_${part}_FOUND})
  endif()
  if(have)
    set(STK_LIBRARIES ${STK_LIBRARIES} PkgConfig::STK_DEP_${part} PARENT_SCOPE)
    set(STK_DEFINITIONS ${STK_DEFINITIONS} STK_HAVE_${part}=1 PARENT_SCOPE)
    set(STK_FOUND "${STK_FOUND} ${module}" PARENT_SCOPE)
  elseif(STK_${part} STREQUAL "ON")
    message(FATAL_ERROR "STK_${part}=ON, but pkg-config does not know ${module}.")
  else()
    set(STK_MISSING "${STK_MISSING} ${module}" PARENT_SCOPE)
  endif()
endfunction()

set(STK_FOUND "")
set(STK_MISSING "")
stk_optional(WEBP libwebp)
stk_optional(YAML yaml-0.1)
stk_optional(CAIRO cairo)
message(STATUS "CBLAS ${STK_CBLAS_LIBRARY}; optional parts found:${STK_FOUND}; left out:${STK_MISSING}")
