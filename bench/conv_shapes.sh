#!/usr/bin/env bash
# Measures how fast convolutions of common networks are on the CPU, shape by shape:
# bench/conv_shapes.sh BUILD_DIR. Prints one JSON object per line; conv_shapes.c lists its keys.
set -eu

build=$(cd "$1" && pwd)
cmake --build "$build" --target conv_shapes >&2
"$build/conv_shapes" 1 best 16
