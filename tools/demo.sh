#!/usr/bin/env bash
# Runs the demo: tools/demo.sh BUILD_DIR. Makes sample data in demo/data unless the folder exists, trains
# on it within a budget of a minute, prints where the files are and how many predictions are right.
set -eu

cd "$(dirname "$0")/.."
stoker=${1:-build}/stoker
data=demo/data
run=demo/run

if [ ! -x "$stoker" ]; then
    echo "demo: $stoker does not exist; run make build first" >&2
    exit 1
fi
if [ ! -d "$data" ]; then
    mkdir -p demo
    "$stoker" sample "$data" --layout kaggle
fi

"$stoker" train --data "$data" --budget 60s --out "$run"

plot=
for file in "$run"/results.png "$run"/results.svg; do
    if [ -e "$file" ]; then
        plot=$file
        break
    fi
done
echo
echo "run folder   $run"
echo "submission   $run/submission.csv"
echo "plot         ${plot:-none was written}"
echo "agreement    $(tools/score.sh "$run/submission.csv" "$data/solution.csv")"
