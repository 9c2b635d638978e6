#!/usr/bin/env bash
# How fast a training run is on this machine's cores: bench/train_cpu.sh BUILD_DIR. Trains on the
# sample set and on the same pictures with a network of real size, and prints one JSON object a
# line. Other work on the machine shows in the figures: compare within one run.
set -eu

stoker=$(cd "$1" && pwd)/stoker
work=$(mktemp -d "${TMPDIR:-/tmp}/stoker-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT

value() {
    sed -n 's/^ *"'"$1"'": \([^,]*\),*$/\1/p' "$2"
}

# bench NAME OPTION...: one run; the figures of its summary.
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
bench convnet_s --epochs 4
bench convnet_s-batch128 --epochs 4 --batch 128
bench resnet18-64px --model resnet18 --img-size 64 --epochs 1
bench budget-60s --budget 60s
