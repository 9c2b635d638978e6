#!/usr/bin/env bash
# Runs every benchmark of bench/: tools/bench.sh BUILD_DIR. A benchmark is an executable bench/*.sh,
# called with the build folder; it prints JSON.
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
