# lib.sh - helpers for tests of the command. A test script is tests/cli/test_NAME.sh:
#
#     . "$(dirname "$0")/lib.sh"
#     it "refuses an unknown verb"
#     run frobnicate
#     expect_exit 2
#     expect_err 'frobnicate'
#     finish
#
# STOKER is the built command. A script runs in an empty folder of its own, $WORK, which goes away at
# the end; $ROOT is the project's root. After `run`, $OUT and $ERR are files with what was printed and
# $CODE is the exit code. Patterns are extended regular expressions. A case without a failing
# expectation passes; one that calls `skip` is skipped.
# shellcheck shell=bash

set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
STOKER=${STOKER:-$ROOT/build/stoker}
LIB_FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/stoker-cli-XXXXXX") || exit 1
trap 'chmod -R u+rwX "$LIB_FOLDER" 2>/dev/null; rm -rf "$LIB_FOLDER"' EXIT
WORK=$LIB_FOLDER/work
OUT=$LIB_FOLDER/out
ERR=$LIB_FOLDER/err
CODE=0
mkdir "$WORK" && cd "$WORK" || exit 1
: >"$OUT"
: >"$ERR"
lib_passed=0 lib_failed=0 lib_skipped=0
lib_case='' lib_state='' lib_command=''

lib_close() {
    case $lib_case$lib_state in
    '') return ;;
    *failed) lib_failed=$((lib_failed + 1)) && echo "FAIL $lib_case" ;;
    *skipped) lib_skipped=$((lib_skipped + 1)) ;;
    *) lib_passed=$((lib_passed + 1)) && echo "ok   $lib_case" ;;
    esac
    lib_case='' lib_state=''
}

# it "name": opens a case and closes the one before.
it() {
    lib_close
    lib_case=$1
}

# fail "sentence": the case has failed; shows what the last command printed.
fail() {
    echo "  ${BASH_SOURCE[-1]##*/}:${BASH_LINENO[-2]}: $1"
    if [ "$lib_state" != failed ] && [ -n "$lib_command" ]; then
        echo "    command: $lib_command (exit code $CODE)"
        tail -n 20 "$OUT" | sed 's/^/    stdout: /'
        tail -n 20 "$ERR" | sed 's/^/    stderr: /'
    fi
    lib_state=failed
}

# skip "reason": the case cannot be tried here; the script goes on to its next line.
skip() {
    [ "$lib_state" = failed ] && return
    lib_state=skipped
    echo "skip $lib_case: $1"
}

# run ARGUMENTS...: runs the command; run_any runs any other program the same way.
run() {
    run_any "$STOKER" "$@"
}

run_any() {
    lib_command="${1##*/} ${*:2}"
    timeout -k 5 "${RUN_TIMEOUT:-120}" "$@" >"$OUT" 2>"$ERR" </dev/null
    CODE=$?
}

expect_exit() {
    [ "$CODE" = "$1" ] || fail "the exit code is $CODE, expected $1"
}

expect_out() {
    grep -Eq -- "$1" "$OUT" || fail "standard output lacks: $1"
}

expect_err() {
    grep -Eq -- "$1" "$ERR" || fail "standard error lacks: $1"
}

expect_no_out() {
    ! grep -Eq -- "$1" "$OUT" || fail "standard output has: $1"
}

expect_no_err() {
    ! grep -Eq -- "$1" "$ERR" || fail "standard error has: $1"
}

# expect_file PATH [pattern]: a file (not empty) that has a line with the pattern.
expect_file() {
    if [ ! -s "$1" ]; then
        fail "$1 is absent or empty"
    elif [ $# -gt 1 ] && ! grep -Eq -- "$2" "$1"; then
        fail "$1 lacks: $2"
    fi
}

expect_no_file() {
    [ ! -e "$1" ] || fail "$1 exists"
}

# expect_same A B: two files with the same bytes.
expect_same() {
    cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# expect "sentence" COMMAND...: any other condition.
expect() {
    local sentence=$1
    shift
    "$@" >/dev/null 2>&1 || fail "$sentence"
}

# finish: the totals; the last line of every script.
finish() {
    lib_close
    echo "$lib_passed passed, $lib_failed failed, $lib_skipped skipped"
    [ "$lib_failed" = 0 ]
    exit $?
}
