#!/usr/bin/env bash
# Measures how fast pictures become batches: bench/loader.sh BUILD_DIR
#
# Uses the photographs in STOKER_DATA/photos (default: ../shared/data/photos), or drawn pictures if there are
# none. Prints three lines, each a JSON object: with as many workers as Stoker chooses, with one worker,
# and with augmentation. bench/loader_vs_torch.py compares with PyTorch's DataLoader.
set -eu

build=$(cd "${1:-build}" && pwd)
cd "$(dirname "$0")/.."
data=${STOKER_DATA:-../shared/data}/photos
scratch=$(mktemp -d "${TMPDIR:-/tmp}/stoker-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
if [ ! -d "$data" ]; then
    data=$scratch/sample
    "$build/stoker" sample "$data" --quiet
fi
"$build/stoker" bench loader --data "$data" --json
"$build/stoker" bench loader --data "$data" --json --workers 1
"$build/stoker" bench loader --data "$data" --json --augment trivialaugment --color-jitter 0.4 --hue 0.1
