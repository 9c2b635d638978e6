# stoker lr and train --lr auto: the curve, the suggestion, training with it; the recipe's options.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2034  # lib.sh reads variables
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

SMALL=(--img-size 16 --batch 16)
"$STOKER" sample k --layout kaggle --classes 4 --per-class 24 --quiet || exit 1

it "suggests a rate and leaves the curve behind"
run lr k --out found "${SMALL[@]}"
expect_exit 0
expect_empty "$ERR"
expect_out '^suggested: --lr [0-9.e-]+ for a batch of 16'
expect_out '^train with it: stoker train, the same options, and --batch 16 --lr [0-9.e-]+$'
expect_out ' lr +loss +smoothed$'
expect_file found/lr.csv
expect_file found/args.json
expect "a plot is there" [ -s found/lr.png -o -s found/lr.svg ]
expect "it tried many rates" [ "$(wc -l <found/lr.csv)" -gt 40 ]
expect "it began at 1e-07" grep -q '^1e-07,' found/lr.csv
suggested=$(sed -n 's/^suggested: --lr \([^ ]*\) .*/\1/p' "$OUT")

it "prints one object with --json"
run lr --data k --out found2 "${SMALL[@]}" --steps 60 --json
expect_exit 0
expect_json "$OUT"
expect "one line" [ "$(wc -l <"$OUT")" = 1 ]
expect_out '"suggestion": ?[0-9.e-]+,'
expect_out '"batch": ?16,'
expect_out '"points": ?\[\{"lr": ?1e-07, ?"loss": ?[0-9.]+'
in_json=$(sed -n -E 's/.*"suggestion": ?([0-9.e-]+),.*/\1/p' "$OUT")

it "says little with --quiet, takes fewer steps, repeats itself, and names its run folder lr where nobody did"
run lr k "${SMALL[@]}" --steps 60 --quiet
expect_exit 0
expect "two lines" [ "$(wc -l <"$OUT")" = 2 ]
expect_out "^suggested: --lr $in_json "
expect "at most 60 points" [ "$(wc -l <runs/lr/lr.csv)" -le 61 ]
expect_same found2/lr.csv runs/lr/lr.csv

it "obeys a deadline, and leaves what it has of the curve"
at=$(date -d "@$(($(date +%s) + 8))" +%Y-%m-%dT%H:%M:%S)
# On a device that needs half a minute for the steps on any machine.
waits=(LD_PRELOAD="$(dirname "$STOKER")/tests/odd_device.so" ODD_DEVICE_US=1000)
! is_sanitized || waits=()
run_any env "${waits[@]}" "$STOKER" lr k --out late "${SMALL[@]}" --steps 1000 --deadline "$at"
expect_exit 2
expect_out "deadline .* [1-8] s from now"
expect_err 'the --deadline came after [0-9]+ of 1000 steps of the test; give a later one, or fewer --steps'
expect_file late/lr.csv '^lr,loss,smoothed$'
run lr k --out late2 "${SMALL[@]}" --deadline 2020-01-01T10:00
expect_exit 2
expect_err '2020-01-01T10:00 is past'
expect_no_file late2

it "train --lr auto trains with what the test suggests"
run train k --out a "${SMALL[@]}" --epochs 2 --lr auto
expect_exit 0
expect_out 'lr to be found \(auto\)'
expect_out "lr $suggested: a third of the lowest rate that brought the loss near its minimum in a test of"
expect_file a/lr.csv
expect_same a/lr.csv found/lr.csv
expect "args.json has the rate" grep -qE "\"lr\": ?$suggested" a/args.json
run train k --out b "${SMALL[@]}" --epochs 2 --lr "$suggested" --quiet
expect_exit 0
expect_same a/weights/best.safetensors b/weights/best.safetensors
expect_no_file b/lr.csv

it "without --lr the default is taken, and said"
run train k --out c "${SMALL[@]}" --epochs 1 --optimizer adamw
expect_exit 0
expect_out 'optimizer adamw, lr 0.0[0-9]+ \(default\)'
expect_no_file c/lr.csv

# The device takes half a second for a step, so that there is no time on any machine.
it "a budget that is too short for the test falls back to the default"
if can_fake odd_device; then
    run_any env LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US=15000 \
        "$STOKER" train k --out d "${SMALL[@]}" --device cpu --lr auto --budget 8s
    expect_exit 0
    expect_out 'lr [0-9.]+: the default: there was no time'
fi

it "saves the averaged weights"
run train k --out e "${SMALL[@]}" --epochs 2 --ema 0.9 --freeze-epochs 1 --clip-grad 1 --schedule step --quiet
expect_exit 0
run train k --out f "${SMALL[@]}" --epochs 2 --freeze-epochs 1 --clip-grad 1 --schedule step --quiet
expect_exit 0
expect "they are others" sh -c '! cmp -s e/weights/last.safetensors f/weights/last.safetensors'
expect_file e/submission.csv

it "refuses what makes no sense"
run lr
expect_exit 2
expect_err '--data is missing'
run lr k --resume found
expect_exit 2
expect_err '--resume is for train'
run lr k --steps 5
expect_exit 2
expect_err 'steps'
run train k --optimizer adam
expect_exit 2
expect_err 'sgd, adamw'
run train k --lr fast
expect_exit 2
expect_err 'default, auto or a number'

finish
