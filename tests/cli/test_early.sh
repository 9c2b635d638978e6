# With a budget the test pictures are predicted once before training ends, where that is cheap. These predictions
# stay if none come after them, and otherwise leave no trace. The device waits for each picture, so that the
# runs last as long on any machine; several run at the same time.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

it "the device can be simulated"
can_fake odd_device || finish

"$STOKER" sample k --layout kaggle --classes 4 --per-class 50 --quiet || exit 1
"$STOKER" sample few --layout kaggle --classes 4 --per-class 25 --quiet || exit 1
mkdir many && cp -al k/train k/train.csv many/ && cp -al k/test many/test
wide_sample few
wide_sample k
double many/test 5 # 1536 test pictures
mkdir some && cp -al k/train k/train.csv some/ && cp -al k/test some/test
double some/test 2 # 192

# trial NAME SETTINGS... -- OPTIONS...: a training of one model on a device that takes 1 ms for a picture.
trial() {
    local name=$1 settings=()
    shift
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    launch "$name" LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US=1000 "${settings[@]}" \
        "$STOKER" train --device cpu --img-size 16 --workers 1 --folds 1 --refit 0 --out "$name" "${@:2}"
}

has_predicted_early() { grep -q 'test images predicted early' "$1/events.jsonl"; }
is_early_or_ended() { has_predicted_early "$1" || [ -e "$1.end" ]; }
# too_busy RUN: beside other programs it was over too soon, or predicting early was too dear; the case is skipped then.
too_busy() {
    if is_full || [ -e "$1.held" ]; then
        return 1
    fi
    skip "the machine is so busy that $1 could not be held up after an early prediction"
}
# hold RUN COMMAND...: as soon as it has predicted early.
hold() {
    wait_for 60 is_early_or_ended "$1"
    if has_predicted_early "$1" && [ ! -e "$1.end" ] && "${@:2}"; then
        touch "$1.held"
    fi
}
process_of() { pgrep -P "$(pgrep -P "${launched_pid[$1]}")"; }

# expect_early RUN: the submission has early predictions in every row.
expect_early() {
    expect "$1 is early" grep -Eq '"event": "submission".*"status": "partial".*"models": 1, .*"epoch": [1-9]' "$1/events.jsonl"
    expect_not "$1 has rows with class priors" grep -Eq '(,0\.250*){4}$' "$1/submission.csv"
}

# A rate that is the same throughout: the weights do not depend on what the budget let plan in between.
steady=(--data few --epochs 30 --schedule constant --warmup 0)
trial undisturbed ODD_DEVICE_US=3500 -- "${steady[@]}" --budget 36s
trial stopped -- --data k --budget 20s
trial killed -- --data k --budget 20s
trial slow ODD_DEVICE_TIMES=100 ODD_DEVICE_FROM="$WORK/slower" -- --data some --budget 30s
trial dear -- --data many --budget 12s

signal() { kill "-$1" "$(process_of "$2")"; }
hold stopped signal STOP stopped &
holders=($!)
hold killed signal KILL killed &
holders+=($!)
hold slow touch slower &
holders+=($!)
wait "${holders[@]}"

it "stays behind where the process is killed"
landed killed
if ! too_busy killed; then
    expect_exit 137
    expect_early killed
    expect_sound killed k/sample_submission.csv "$LABELS"
    run status killed
    expect_out '^  submission  killed/submission\.csv \(partial\)'
    run train --resume killed --budget 4s --quiet
    expect_exit 0
    expect_summary killed/summary.json status 'complete|partial'
fi

it "is not made where that would be dear"
landed dear
expect_exit 0
expect_not "it predicted early" has_predicted_early dear

it "stays where the machine stands still until the time is over"
over() { [ $(($(date +%s) - $(stat -c %Y stopped/bad_images.csv))) -gt 21 ]; } # written once, at the start
wait_for 60 over
[ -e stopped.end ] || signal CONT stopped
landed stopped
if ! too_busy stopped; then
    expect_exit 0
    expect_early stopped
    expect_summary stopped/summary.json status partial
    expect_summary stopped/summary.json stop_reason budget
    expect_out '^warning: there was time to predict 0 of 48 test images only; the others have what the weights of epoch [0-9]+ said$'
    expect_out '^  submission  stopped/submission\.csv, predicted early from the weights of epoch [0-9]+$'
fi

it "gives way to later predictions where a device that has become slow has time for some"
landed slow
expect_exit 0
if ! too_busy slow; then
    expect "it predicted early" has_predicted_early slow
    expect_not "slow has rows with class priors" grep -Eq '(,0\.250*){4}$' slow/submission.csv
fi
expect_summary slow/summary.json status 'complete|partial'
expect_summary slow/summary.json stop_reason budget

it "leaves no trace in a run that nothing disturbs"
landed undisturbed
expect_exit 0
! has_predicted_early undisturbed || touch undisturbed.held
if too_busy undisturbed; then
    :
elif ! is_full && [ "$(json undisturbed/summary.json status)" != complete ]; then
    skip "the machine is so busy that the budget ended the training"
else
    expect_summary undisturbed/summary.json status complete
    expect_delivered undisturbed few/sample_submission.csv "$LABELS"
    grep '"event": "submission"' undisturbed/events.jsonl | tail -n 1 >last
    expect_file last '"status": "complete".*"models": 1, .*"epoch": 0\}$'
    run train "${steady[@]}" --device cpu --img-size 16 --workers 1 --folds 1 --refit 0 --out free
    expect_exit 0
    expect_not "it predicted early without a budget" has_predicted_early free
    for file in submission.csv validation.csv weights/best.safetensors weights/last.safetensors; do
        expect_same "undisturbed/$file" "free/$file"
    done
    run predict --run undisturbed --out again.csv
    expect_same undisturbed/submission.csv again.csv
fi

it "leaves the predictions of the run that is resumed"
run train "${steady[@]}" --epochs 3 --device cpu --img-size 16 --workers 1 --folds 1 --refit 0 --out more --quiet
expect_exit 0
run_any env LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US=1000 "$STOKER" train --resume more --epochs 400 --budget 8s --quiet
expect_exit 0
expect_summary more/summary.json stop_reason budget
expect_not "it predicted early" has_predicted_early more
finish
