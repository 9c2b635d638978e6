#!/usr/bin/env bash
# Configures and builds: tools/build.sh BUILD_DIR [CMAKE_OPTION...] [-- TARGET...]. Builds everything if no
# target is given. Prints little unless something fails.
set -eu

cd "$(dirname "$0")/.."
build=$1
shift
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
done
[ $# = 0 ] || shift

mkdir -p "$build"
fresh=1
if [ -e "$build/build.ninja" ]; then
    fresh=0
fi
if ! cmake -G Ninja -B "$build" "${options[@]}" >"$build/configure.log" 2>&1; then
    cat "$build/configure.log" >&2
    printf 'build: CMake failed; its output stands above. After a change of compiler or generator, make clean helps.\n' >&2
    exit 1
fi
if [ "$fresh" = 1 ]; then
    sed -n 's/^-- \(CBLAS.*\)/build: \1/p' "$build/configure.log"
fi
if [ -t 1 ]; then
    ninja -C "$build" "$@"
else
    # Without a terminal Ninja prints a line per file. Show its output only if the build fails.
    if ! ninja -C "$build" "$@" >"$build/build.log" 2>&1; then
        cat "$build/build.log"
        exit 1
    fi
fi
# Editors and language servers look for compile_commands.json in the root.
if [ "$build" = build ]; then
    ln -sf build/compile_commands.json compile_commands.json
fi
