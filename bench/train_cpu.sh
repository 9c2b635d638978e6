#!/usr/bin/env bash
# Measures how fast training is on the CPU: bench/train_cpu.sh BUILD_DIR
#
# Trains a small and a larger network on sample pictures and prints one JSON object per training. Other
# work on the machine changes the figures, so compare only figures of one run of this script.
set -eu

stoker=$(cd "$1" && pwd)/stoker
work=$(mktemp -d "${TMPDIR:-/tmp}/stoker-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT

value() {
    sed -n 's/^ *"'"$1"'": \([^,]*\),*$/\1/p' "$2"
}

# bench NAME OPTION...: trains once and prints figures of the summary.
bench() {
    local name=$1 summary=$work/$1/summary.json
    shift
    "$stoker" train --data "$work/data" --out "$work/$name" --quiet "$@"
    printf '{"bench": "train", "case": "%s", "images_per_second": %s, "wait_fraction": %s, ' \
        "$name" "$(value images_per_second "$summary")" "$(value wait_fraction "$summary")"
    printf '"batch": %s, "epochs": %s, "used_s": %s, "best_acc1": %s}\n' \
        "$(value batch "$summary")" "$(value epochs_done "$summary")" \
        "$(value used_s "$summary")" "$(value best_acc1 "$summary")"
}

"$stoker" sample "$work/data" --layout kaggle --quiet
bench convnet_s --model convnet_s --epochs 4
bench convnet_s-batch128 --model convnet_s --epochs 4 --batch 128
bench resnet18-64px --model resnet18 --img-size 64 --epochs 1
bench budget-60s --model convnet_s --budget 60s
