#!/usr/bin/env bash
# Tells which lines and branches of each room the tests reach: tools/coverage.sh [FILTER]
# Builds in build-coverage, runs the tests (all, or those that match), and prints a table by room. Each
# file's figures are in build-coverage/coverage.csv, each line's in build-coverage/coverage/index.html. What
# a killed process had counted is lost, so that the figures are a lower bound.
set -eu

cd "$(dirname "$0")/.."
build='build-coverage'
tools/build.sh "$build" -DSTK_COVERAGE=ON -DSTK_HARDENING=OFF
find "$build" -name '*.gcda' -delete
code=0
TEST_TIMEOUT=${TEST_TIMEOUT:-900} tests/run.sh "$build" all "${1:-}" || code=$?
mkdir -p "$build/coverage"
# A branch is what a condition can do; calls that may not return are none.
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
