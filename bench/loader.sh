#!/usr/bin/env bash
# How fast pictures become batches: bench/loader.sh BUILD_DIR. Real photographs where there are any
# (../shared/data/photos, or STOKER_DATA/photos), drawn ones otherwise. Prints a JSON object a line:
# usual crops with as many workers as Stoker chooses, the same with one, and with augmentation.
# bench/loader_vs_torch.py measures PyTorch's DataLoader beside it.
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
