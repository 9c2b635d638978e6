#!/usr/bin/env bash
# Reads the source with clang-tidy (.clang-tidy says for what) and cppcheck: tools/lint.sh BUILD_DIR
# Prints what they find and fails when they find anything. `tools/lint.sh BUILD_DIR fast` leaves out
# clang-tidy, which takes the most time.
set -eu

cd "$(dirname "$0")/.."
build=${1:-build}
bad=0
rooms=(src)
if [ -d cli ]; then
    rooms+=(cli)
fi

cppcheck --quiet --error-exitcode=1 --std=c11 --language=c --platform=unix64 \
    --enable=warning,performance,portability --inline-suppr \
    --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches \
    -D__GNUC__=4 -D__x86_64__=1 -D_GNU_SOURCE -DSTK_VERSION='"0"' \
    -DSTK_HAVE_YAML=1 -DSTK_HAVE_WEBP=1 -DSTK_HAVE_CAIRO=1 -DSTK_HAVE_S3=1 \
    -j "$(nproc)" -I include -I src "${rooms[@]}" || bad=1

if [ "${2:-}" != fast ]; then
    # One process per file; each prints only what it found.
    find "${rooms[@]}" -name '*.c' -print0 |
        xargs -0 -P "$(nproc)" -n 1 clang-tidy --quiet -p "$build" 2>"$build/clang-tidy.log" || bad=1
    grep -E 'error:' "$build/clang-tidy.log" >&2 || true
fi

if command -v shellcheck >/dev/null 2>&1; then
    find tools tests -name '*.sh' -print0 | xargs -0 shellcheck -x .ci/run || bad=1
fi
exit $bad
