#!/usr/bin/env bash
# Checks that the built files are hardened: tools/check-hardening.sh BUILD_DIR
#
# The command and the shared library must be position-independent, bind symbols at the start and make
# them read-only (full RELRO), have no executable stack, use the checked functions of the C library, and
# have a stack protector. The objects of the library must be marked for CET (x86_64) or BTI (arm64). The
# linked files are not checked for these marks, because they depend on the system's start-up code too.
#
# `--self-test` builds a program without any of this and expects a complaint about each.
set -eu
# shellcheck source=tools/self-test.sh
. "$(dirname "$0")/self-test.sh"

cd "$(dirname "$0")/.."
bad=0
complain() {
    echo "check-hardening: $*"
    bad=1
}

# check_linked FILE: checks a program or a shared library.
check_linked() {
    local headers dynamic symbols
    headers=$(readelf -hlW "$1")
    dynamic=$(readelf -dW "$1")
    symbols=$(readelf --dyn-syms -W "$1")
    grep -q 'Type: *DYN' <<<"$headers" || complain "$1 is not position-independent"
    grep -q 'GNU_RELRO' <<<"$headers" || complain "$1 has no RELRO"
    grep -Eq '\((BIND_NOW|FLAGS)\).*NOW|FLAGS_1.*NOW' <<<"$dynamic" || complain "$1 binds symbols late"
    ! grep -Eq 'GNU_STACK.* RWE ' <<<"$headers" || complain "$1 has an executable stack"
    grep -q '__stack_chk_fail' <<<"$symbols" || complain "$1 has no stack protector"
    grep -Eq '__[a-z]+_chk@' <<<"$symbols" || complain "$1 does not use checked functions"
}

# check_marked OBJECT: checks that targets of jumps are marked, on processors that support it.
check_marked() {
    local mark
    case $(uname -m) in
    x86_64) mark='IBT' ;;
    aarch64) mark='BTI' ;;
    *) return 0 ;;
    esac
    readelf -nW "$1" | grep -q "$mark" || complain "$1 is not marked for $mark"
}

check_program() {
    check_linked "$1"
    check_marked "$1"
}

if [ "${1:-}" = --self-test ]; then
    enter_scratch
    echo 'int main(void) { return 0; }' >plain.c
    cc -no-pie -Wl,-z,lazy -Wl,-z,norelro -Wl,-z,execstack -fno-stack-protector -fcf-protection=none \
        -o plain plain.c
    for fault in 'is not position-independent' 'has no RELRO' 'binds symbols late' 'has an executable stack' \
        'has no stack protector' 'does not use checked functions' 'is not marked for'; do
        expect "check-hardening: plain $fault" check_program plain
    done
    exit "$self_test_bad"
fi

build=${1:-build}
for file in "$build/stoker" "$build/libstoker.so"; do
    if [ ! -e "$file" ]; then
        echo "check-hardening: $file does not exist; build first" >&2
        exit 2
    fi
    check_linked "$file"
done
# Link all objects into one: the linker keeps a mark only if every object has it.
ld -r -o "$build/hardening.o" --whole-archive "$build/libstoker.a"
check_marked "$build/hardening.o"
rm -f "$build/hardening.o"
[ "$bad" = 0 ]
