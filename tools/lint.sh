#!/usr/bin/env bash
# Checks the source: tools/lint.sh BUILD_DIR [fast|deep]
#
# Runs cppcheck, clang-tidy (.clang-tidy lists its checks) and, where it is installed, shellcheck. Prints
# what they find and fails if they find anything. `fast` leaves out clang-tidy, which takes the most time.
# With `deep`, as in `make soak`, clang-tidy follows many more paths through a function and takes
# several times longer.
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
    -DSTK_HAVE_YAML=1 -DSTK_HAVE_WEBP=1 -DSTK_HAVE_TIFF=1 -DSTK_HAVE_JPEG2000=1 -DSTK_HAVE_CAIRO=1 \
    -DSTK_HAVE_ARCHIVE=1 -DSTK_HAVE_S3=1 \
    -j "$(nproc)" -I include -I src "${rooms[@]}" || bad=1

if [ "${2:-}" != fast ]; then
    # One process per file. Large files come first, so that none is checked alone at the end.
    nodes=4000
    [ "${2:-}" != deep ] || nodes=225000
    # The compiler of the build may be gcc, which has options that clang-tidy does not know.
    limit=(-Xclang -analyzer-config -Xclang "max-nodes=$nodes" -Wno-unused-command-line-argument)
    find "${rooms[@]}" -name '*.c' -printf '%s %p\0' | sort -z -rn | cut -z -d ' ' -f 2 |
        xargs -0 -P "$(nproc)" -n 1 clang-tidy --quiet -p "$build" "${limit[@]/#/--extra-arg=}" 2>"$build/clang-tidy.log" || bad=1
    grep -E 'error:' "$build/clang-tidy.log" >&2 || true
fi

if command -v shellcheck >/dev/null 2>&1; then
    # Reading a file that a script sources (-x) takes longer than the script, and few need it: those whose
    # variables or settings the other file has.
    # shellcheck disable=SC2016  # the inner shell expands $0
    find .ci/run tools tests -type f \( -name run -o -name '*.sh' \) -print0 |
        xargs -0 -n 1 -P "$(nproc)" sh -c 'shellcheck -e SC1091 "$0" >/dev/null || shellcheck -x "$0"' || bad=1
fi
exit $bad
