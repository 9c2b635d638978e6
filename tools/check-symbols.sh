#!/usr/bin/env bash
# Checks that the shared library exports exactly the functions that include/stoker declares with STK_API:
# tools/check-symbols.sh BUILD_DIR
set -eu

cd "$(dirname "$0")/.."
library=${1:-build}/libstoker.so
if [ ! -e "$library" ]; then
    echo "check-symbols: $library does not exist; build first" >&2
    exit 2
fi

shown=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^_\(init\|fini\)$' | LC_ALL=C sort)
# A declaration ends at its semicolon. Its name is the last word before a bracket, or before the end.
declared=$(cat include/stoker/*.h | awk '
    /^[ \t]*#/ { next }
    /STK_API/ { inside = 1; text = "" }
    inside { text = text " " $0 }
    inside && /;/ {
        inside = 0
        sub(/;.*/, "", text)
        gsub(/STK_(API|CHECKED)/, "", text)
        sub(/STK_PRINTF.*/, "", text)
        sub(/[ \t]*\(.*/, "", text)
        sub(/\[.*/, "", text)
        if (match(text, /[A-Za-z_0-9]+[ \t]*$/)) print substr(text, RSTART, RLENGTH)
    }' | tr -d ' \t' | LC_ALL=C sort)

extra=$(LC_ALL=C comm -23 <(printf '%s\n' "$shown") <(printf '%s\n' "$declared"))
lost=$(LC_ALL=C comm -13 <(printf '%s\n' "$shown") <(printf '%s\n' "$declared"))
for name in $extra; do
    echo "check-symbols: $library shows $name, which include/stoker does not declare with STK_API"
done
for name in $lost; do
    echo "check-symbols: include/stoker declares $name, which $library does not have"
done
[ -z "$extra$lost" ]
