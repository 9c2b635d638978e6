#!/usr/bin/env bash
# Checks that each installed header compiles alone, and all of them together, as C11 and as C++17 without
# warnings: tools/check-headers.sh [INCLUDE_DIR]
#
# Uses every compiler that is installed, or only those in CC and CXX, separated by blanks. `--self-test`
# tries the check on headers with faults.
set -eu
# shellcheck source=tools/self-test.sh
. "$(dirname "$0")/self-test.sh"

root=$(cd "$(dirname "$0")/.." && pwd)
warnings=(-Wall -Wextra -pedantic -Werror)

# try COMPILER LANGUAGE STANDARD: compiles the text on standard input.
try() {
    "$1" -x "$2" "-std=$3" "${warnings[@]}" -fsyntax-only -I "$include" -
}

# compilers NAME...: prints the names of the compilers that are installed.
compilers() {
    local name
    for name in "$@"; do
        if command -v "$name" >/dev/null 2>&1; then
            echo "$name"
        fi
    done
}

# check LANGUAGE STANDARD COMPILER...: compiles all headers; fails if one does not compile.
check() {
    local language=$1 standard=$2 compiler header name all='' bad=0
    shift 2
    for header in "$include"/stoker/*.h; do
        all="$all#include <stoker/${header##*/}>"$'\n'
    done
    for compiler in "$@"; do
        for header in "$include"/stoker/*.h; do
            name="stoker/${header##*/}"
            # Included twice, to test the include guard.
            if ! printf '#include <%s>\n#include <%s>\n' "$name" "$name" |
                try "$compiler" "$language" "$standard"; then
                echo "check-headers: $name does not compile alone as $standard with $compiler"
                bad=1
            fi
        done
        if ! printf '%s' "$all" | try "$compiler" "$language" "$standard"; then
            echo "check-headers: the headers do not compile together as $standard with $compiler"
            bad=1
        fi
    done
    return $bad
}

check_all() {
    local c cxx bad=0
    include=$1
    # shellcheck disable=SC2206  # names are words
    c=(${CC:-$(compilers gcc clang)})
    # shellcheck disable=SC2206
    cxx=(${CXX:-$(compilers g++ clang++)})
    if [ ${#c[@]} = 0 ]; then
        echo "check-headers: there is neither gcc nor clang" >&2
        return 2
    fi
    check c c11 "${c[@]}" || bad=1
    if [ ${#cxx[@]} = 0 ]; then
        echo "check-headers: no C++ compiler is there; the headers were tried as C only"
    else
        check c++ c++17 "${cxx[@]}" || bad=1
    fi
    return $bad
}

# refuses TEXT SENTENCE: a header with the text must be refused for the reason.
refuses() {
    printf '%s\n' "$1" >stoker/one.h
    expect "$2" check_all .
}

self_test() {
    enter_scratch
    mkdir stoker
    refuses 'static inline size_t one_size(void) { return 1; }' 'does not compile alone as c11'
    refuses 'struct one { int a; };' 'does not compile alone as c11'
    if [ -n "${CXX:-$(compilers g++ clang++)}" ]; then
        refuses $'#ifndef ONE\n#define ONE\nstatic inline char *one(void *p) { return p; }\n#endif' \
            'does not compile alone as c++17'
    fi
    printf '#ifndef ONE\n#define ONE\nint one(void);\n#endif\n' >stoker/one.h
    check_all . || self_test_bad=1
    return "$self_test_bad"
}

case ${1:-} in
--self-test) self_test ;;
*) check_all "${1:-$root/include}" ;;
esac
