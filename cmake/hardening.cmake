# What makes a fault of memory harder to use, in every build but those with a sanitizer, which finds the
# fault itself. A flag that this compiler or linker does not know is left out. tools/check-hardening.sh
# checks the result.
option(STK_HARDENING "Build with protection against faults of memory" ON)
if(NOT STK_HARDENING OR STK_SANITIZE)
  return()
endif()
include(CheckCCompilerFlag)
include(CheckLinkerFlag)

# CET on x86_64, BTI and signed return addresses on arm64: jumps and returns go only where they should.
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
        -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "STK_HAVE${flag}" known)
  set(CMAKE_REQUIRED_FLAGS -Werror)
  check_c_compiler_flag(${flag} ${known})
  unset(CMAKE_REQUIRED_FLAGS)
  if(${known})
    add_compile_options(${flag})
  endif()
endforeach()

# The C library's checked functions need optimised code. A compiler that sets a level of its own is
# told to forget it first.
add_compile_options("$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")

# All symbols are found at the start, and their table is then read-only; no stack can be executed.
foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  string(MAKE_C_IDENTIFIER "STK_HAVE${flag}" known)
  check_linker_flag(C ${flag} ${known})
  if(${known})
    add_link_options(${flag})
  endif()
endforeach()

# Programs are loaded at an address of chance, like libraries.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
