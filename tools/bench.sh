#!/usr/bin/env bash
# Runs every benchmark: tools/bench.sh BUILD_DIR. A benchmark is an executable script bench/*.sh. It is
# called with the build folder and prints JSON.
set -eu

cd "$(dirname "$0")/.."
build=$(cd "${1:-build}" && pwd)
found=0
for script in bench/*.sh; do
    [ -x "$script" ] || continue
    found=1
    printf '== %s\n' "$script" >&2
    "$script" "$build"
done
if [ "$found" = 0 ]; then
    echo "bench: there is nothing in bench/ yet" >&2
fi
