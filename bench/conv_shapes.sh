#!/usr/bin/env bash
# How fast the convolutions of the usual networks are on this machine's cores, shape by shape:
# bench/conv_shapes.sh BUILD_DIR. Prints one JSON object a line; conv_shapes.c says what is in it.
set -eu

build=$(cd "$1" && pwd)
cmake --build "$build" --target conv_shapes >&2
"$build/conv_shapes" 1 best 16
