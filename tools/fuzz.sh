#!/usr/bin/env bash
# Fuzzes parsers with libFuzzer, guided by coverage and with sanitizers; needs clang.
#
#     tools/fuzz.sh [NAME|all] [SECONDS]   fuzzes each target for SECONDS (default: FUZZ_SECONDS, or
#                                          3600), FUZZ_JOBS targets at a time (default: one per core)
#     tools/fuzz.sh NAME|all keep          writes tests/fuzz/corpus/NAME anew: the fewest and smallest
#                                          inputs that together reach the same code
#
# The target NAME is tests/fuzz/fuzz_NAME.c. The folder FUZZ_BUILD (build-fuzz) has the programs, the
# growing corpus, and in found/ the inputs that crash, leak, hang or take too much memory. The exit code is
# 1 if there is such an input; build-fuzz/tests/test_fuzz_NAME --try FILE repeats it.
# shellcheck disable=SC2317  # functions by name
set -eu

cd "$(dirname "$0")/.."
build=${FUZZ_BUILD:-build-fuzz}
wanted=${1:-all}
seconds=${2:-${FUZZ_SECONDS:-3600}}
jobs=${FUZZ_JOBS:-$(nproc)}

# Without sanitizers no input may take a second. With sanitizers and on a busy machine that becomes 25 s.
limits=(-timeout=25 -rss_limit_mb=2560 -detect_leaks=1)
most_bytes=65536
# Larger inputs are not committed: a few kilobytes are enough for every branch of a parser.
most_kept_bytes=4096

names=()
for source in tests/fuzz/fuzz_*.c; do
    name=${source##*/fuzz_}
    name=${name%.c}
    if [ "$name" != main ] && { [ "$wanted" = all ] || [ "$wanted" = "$name" ]; }; then
        names+=("$name")
    fi
done
if [ ${#names[@]} = 0 ]; then
    echo "fuzz: there is no tests/fuzz/fuzz_$wanted.c" >&2
    exit 2
fi
if ! echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d == 0 && n; }' |
    clang -x c -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null; then
    echo "fuzz: clang with libFuzzer is not there; install it (Debian: clang and libclang-rt-14-dev)" >&2
    exit 2
fi
tools/build.sh "$build" -DCMAKE_C_COMPILER=clang -DSTK_SANITIZE=address,undefined -DSTK_FUZZER=ON \
    -DSTK_TESTS=ON -- "${names[@]/#/fuzz_}" fuzz_tests
mkdir -p "$build/found"
# Cairo keeps fonts for the life of the process.
echo 'leak:libfontconfig' >"$build/leaks"
export LSAN_OPTIONS=suppressions=$build/leaks:print_suppressions=0
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1

# grown NAME: prints the folder of the target's growing corpus, after writing the seeds into it.
grown() {
    mkdir -p "$build/corpus/$1" "tests/fuzz/corpus/$1"
    "$build/tests/test_fuzz_$1" --seeds "$build/corpus/$1"
    echo "$build/corpus/$1"
}

# fuzz NAME: fuzzes a target and prints a line about it; fails if it found something.
fuzz() {
    local code=0
    "$build/tests/fuzz_$1" "${limits[@]}" "-max_total_time=$seconds" "-max_len=$most_bytes" \
        -print_final_stats=1 "-artifact_prefix=$build/found/$1-" "$(grown "$1")" "tests/fuzz/corpus/$1" \
        >"$build/$1.log" 2>&1 </dev/null || code=$?
    awk -v name="$1" -v code="$code" '/stat::number_of_executed_units/ { runs = $2 }
        / cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "corp:") corp = $(i + 1) } }
        END { printf "| %-14s %10d inputs, %6d places reached, corpus %s%s\n", name, runs, cov, corp,
                     code ? ": FOUND SOMETHING" : "" }' "$build/$1.log"
    if [ "$code" != 0 ]; then
        grep -E 'ERROR:|SUMMARY:|does not hold|runtime error|Test unit written' "$build/$1.log" | sed 's/^/  /' | head -n 8
    fi
    [ "$code" = 0 ]
}

# keep NAME: writes the committed corpus of a target anew.
keep() {
    local fresh=$build/kept/$1
    rm -rf "$fresh"
    mkdir -p "$fresh"
    # Inputs are compared by the code that they reach, not by how often they reach it. That keeps a tenth
    # of them; later fuzzing finds the others again.
    "$build/tests/fuzz_$1" "${limits[@]}" -merge=1 -use_counters=0 "-max_len=$most_kept_bytes" "$fresh" \
        "tests/fuzz/corpus/$1" \
        "$(grown "$1")" >"$build/$1.log" 2>&1 </dev/null || {
        tail -n 20 "$build/$1.log"
        return 1
    }
    rm -rf "tests/fuzz/corpus/$1"
    mkdir -p tests/fuzz/corpus
    mv "$fresh" "tests/fuzz/corpus/$1"
    printf '| %-14s %4d inputs, %7d bytes\n' "$1" "$(find "tests/fuzz/corpus/$1" -type f | wc -l)" \
        "$(find "tests/fuzz/corpus/$1" -type f -printf '%s\n' | awk '{ s += $1 } END { print s + 0 }')"
}

action=fuzz
[ "$seconds" != keep ] || action=keep
bad=0
for name in "${names[@]}"; do
    while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do
        wait -n || bad=1
    done
    "$action" "$name" &
done
while [ -n "$(jobs -p)" ]; do
    wait -n || bad=1
done
exit $bad
