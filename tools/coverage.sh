#!/usr/bin/env bash
# Prints which share of each room's lines and branches the tests reach: tools/coverage.sh [FILTER]
#
# Builds in build-coverage and runs all tests, or those that match FILTER. build-coverage/coverage.csv has
# the figures of each file, build-coverage/coverage/index.html those of each line. A process that is killed
# loses its counts, so the real coverage is at least as high.
set -eu

cd "$(dirname "$0")/.."
build='build-coverage'
tools/build.sh "$build" -DSTK_COVERAGE=ON -DSTK_HARDENING=OFF
find "$build" -name '*.gcda' -delete
code=0
TEST_TIMEOUT=${TEST_TIMEOUT:-900} tests/run.sh "$build" all "${1:-}" || code=$?
mkdir -p "$build/coverage"
# Count only branches of conditions, not those that gcov sees at calls that may not return.
gcovr --root . --gcov-ignore-parse-errors --filter 'src/' --filter 'cli/' --exclude-unreachable-branches \
    --csv "$build/coverage.csv" --html-details "$build/coverage/index.html" "$build" >/dev/null
{
    echo '| room | lines | reached | branches | reached |'
    echo '| --- | --- | --- | --- | --- |'
    awk -F , '
        function row(name) {
            printf "| %s | %d | %.1f %% | %d | %.1f %% |\n", name, lines[name], 100 * line[name] / lines[name],
                branches[name], 100 * branch[name] / (branches[name] ? branches[name] : 1)
        }
        function add(name) {
            lines[name] += $column["line_total"]; line[name] += $column["line_covered"]
            branches[name] += $column["branch_total"]; branch[name] += $column["branch_covered"]
        }
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        {
            room = $1
            sub(/\/[^\/]*$/, "", room)
            add(room)
            add("all")
        }
        END { for (room in lines) row(room) }' "$build/coverage.csv" | sort -k 2
} | tee "$build/coverage.md"
exit "$code"
