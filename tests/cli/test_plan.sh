# `stoker plan`: what a training would need and what a budget would cut. It writes nothing. The tests check
# that seconds add up, not how many there are.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2016  # awk's dollars
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

SMALL=(--img-size 16 --batch 8)
"$STOKER" sample k --layout kaggle --classes 4 --per-class 24 --quiet || exit 1

# plan ARGUMENTS...: on a device that waits instead of computing, since two seconds of each are measured.
plan() {
    if is_sanitized; then
        run plan "$@"
    else
        run_any env LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US=2000 "$STOKER" plan "$@"
    fi
}

# number KEY: of the JSON object that was printed.
number() {
    sed -n 's/.*"'"$1"'": \([0-9.e+-]*\)[,}].*/\1/p' "$OUT"
}

it "tells memory and time by part, and writes nothing"
before=$(find . | sort)
plan k "${SMALL[@]}" --epochs 3
expect_exit 0
expect_empty "$ERR"
for part in weights gradients optimiser activations workspace inference batches reads saving set-up epoch \
    validation prediction 'in all'; do
    expect_out "^  $part +[0-9.]+(e-[0-9]+)? "
done
expect_out '^without a budget nothing is cut$'
expect "no file is new" [ "$(find . -not -name out -not -name err | sort)" = "$(grep -v -x -e ./out -e ./err <<<"$before")" ]

it "prints one object with --json, whose parts add up"
plan k "${SMALL[@]}" --epochs 3 --folds 3 --optimizer adamw --ema 0.9 --json
expect_exit 0
expect_json "$OUT"
expect "one line" [ "$(wc -l <"$OUT")" = 1 ]
parts=0
for key in weights gradients optimiser average activations workspace inference; do
    expect "$key is more than nothing" [ "$(number "$key")" -gt 0 ]
    parts=$((parts + $(number "$key")))
done
expect "all bytes are in a part" [ "$parts" = "$(number total)" ]
expect "AdamW keeps two numbers a weight" [ "$(number optimiser)" = $((2 * $(number gradients))) ]
expect "a copy of the state has all but the gradients" \
    [ "$(number saving)" = $(($(number weights) + $(number optimiser) + $(number average))) ]
expect "an average is as large as the weights" [ "$(number average)" = "$(number weights)" ]
expect_out '"folds_wanted": 3, "epochs_wanted": 3, "epochs_weighed": 3, "folds": 3, "epochs": 3, "steps": [0-9]+, "cut": false'
expect "its steps are those of whole epochs" [ "$(number steps)" = $((3 * $(number steps_per_epoch))) ]
expect_out '"budget_s": null, "reserve_s": null'
expect "an epoch is its steps and a validation" awk -v n="$(number steps_per_epoch)" \
    -v s="$(number step_s)" -v v="$(number val_s)" -v e="$(number epoch_s)" \
    'BEGIN { d = (n * s + v) / e; exit !(d > 0.999 && d < 1.001) }'
expect "all of it is set-up, epochs and predictions" awk -v u="$(number setup_s)" \
    -v e="$(number epoch_s)" -v p="$(number predict_s)" -v t="$(number total_s)" \
    'BEGIN { d = (u + 3 * (3 * e + p)) / t; exit !(d > 0.999 && d < 1.001) }'

it "says what a budget would cut"
plan k "${SMALL[@]}" --epochs 100000 --folds 5 --budget 1m
expect_exit 0
expect_no_out '[0-9]e[+]' # a long time is told in digits
expect_out '^  reserve +[0-9.]+ s'
expect_out '^the budget cuts it to 1 fold of [0-9]+ epochs(, the last one to [0-9]+ %)?$'
plan k "${SMALL[@]}" --epochs 100000 --folds 5 --budget 1s --json
expect_exit 0
expect_out '"budget_s": 1, .*"folds": 1, .*"cut": true'

it "does not call a part of an epoch an epoch"
# An epoch of 30 steps, or more, of this network takes longer than half a second anywhere.
plan k --epochs 3 --budget 1s --model resnet18 --img-size 128 --batch 2 --quiet
expect_exit 0
expect_out '^the budget (cuts it to 1 fold of a part of an epoch: [0-9]+ of [0-9]+ steps \([0-9]+ %\)|is too short to train: .*)$'

it "weighs folds with as many epochs as a training does where nobody said how many"
plan k "${SMALL[@]}" --folds 20 --budget 1s --json
expect_exit 0
expect_out '"folds_wanted": 20, "epochs_wanted": null, "epochs_weighed": 10, .*"cut": true'
expect "these are what all of it takes" awk -v u="$(number setup_s)" -v e="$(number epoch_s)" \
    -v p="$(number predict_s)" -v t="$(number total_s)" \
    'BEGIN { d = (u + 20 * (10 * e + p)) / t; exit !(d > 0.999 && d < 1.001) }'

it "says that it fits, and takes a deadline"
plan k "${SMALL[@]}" --epochs 2 --budget 1h --quiet
expect_exit 0
expect_out '^it fits: 1 fold of 2 epochs$'
plan k "${SMALL[@]}" --epochs 2 --deadline 2999-01-01T00:00 --quiet
expect_exit 0
expect_out '^it fits: 1 fold of 2 epochs$'
plan k "${SMALL[@]}" --deadline 1999-01-01T00:00
expect_exit 2
expect_err '--deadline 1999-01-01T00:00 is past'

it "refuses what a training would refuse"
plan nowhere
expect_exit 3
plan k "${SMALL[@]}" --model resnet9000
expect_exit 2
plan
expect_exit 2
expect_err '--data is missing'
plan k --resume r
expect_exit 2
expect_err '--resume is for train'
finish
