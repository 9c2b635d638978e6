# Pictures that take long to decode: the run still keeps its budget and delivers what it trained.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

MAKE=$(dirname "$STOKER")/tests/hostile_picture
"$STOKER" sample k --layout kaggle --classes 4 --per-class 40 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
"$MAKE" rows rows || exit 1
"$MAKE" markers markers || exit 1

# Most test pictures take half a second and more of a core; a million markers took for ever.
cp -r k hostile-test
# shellcheck disable=SC2046  # numbers are words
put rows hostile-test/test $(seq 1 2) $(seq 5 32)
put markers hostile-test/test 4
QUICK=9

# expect_quick PATTERN: the line of this pattern, whose number tells how many pictures were predicted,
# counts those that are quick. A machine with many cores predicts all: then it has no such line.
expect_quick() {
    local count
    count=$(sed -nE "s/.*$1.*/\\1/p" "$OUT")
    [ -z "$count" ] || [ "$count" -ge "$QUICK" ] || fail "$count were predicted of $QUICK quick ones"
}

if is_full; then
    it "delivers what was trained although some test pictures take longer than the budget"
    timed train --data hostile-test --out r --budget 7s --img-size 32
    expect_exit 0
    expect_took 7
    expect_submission r/submission.csv k/sample_submission.csv "$labels"
    # A machine that is busy with other things may have no time to train anything that is worth it.
    if ! is_sanitized && [ -e r/weights/best.safetensors ]; then
        expect_summary r/summary.json stop_reason budget
        if grep -q 'there was time to predict' "$OUT"; then
            expect_summary r/summary.json status partial
        fi
        expect_quick 'there was time to predict ([0-9]+) of [0-9]+ test images only'
        expect_out 'submission: .* from 1 model'
    fi
    expect_sound r k/sample_submission.csv "$labels"
    expect_tidy r
fi

if is_full; then
    it "predicts all others first where a budget is short"
    run train --data k --out r-whole --epochs 1 --img-size 32
    rm -f r-whole/submission.csv
    mv k k-whole && mv hostile-test k
    timed predict --run r-whole --budget 5s
    expect_exit 0
    expect_took 5
    mv k hostile-test && mv k-whole k
    expect_submission r-whole/submission.csv k/sample_submission.csv "$labels"
    if ! is_sanitized; then
        expect_out 'from 1 model'
        expect_quick 'the last model predicted ([0-9]+) of 40 images'
    fi
fi

it "trains without a picture that takes too long for the budget, and says so"
cp -r k hostile-train
put rows hostile-train/train 7 30 60 90
put markers hostile-train/train 9
timed train --data hostile-train --out r-train --budget 5s --img-size 32
expect_exit 0
expect_took 5
expect_submission r-train/submission.csv k/sample_submission.csv "$labels"
expect_summary r-train/summary.json stop_reason budget
if [ "$(json r-train/summary.json epochs_done)" != 0 ]; then
    expect_file r-train/bad_images.csv 'it takes (more than 0.1 s|too long) to decode'
fi

it "ends soon after a signal while pictures are decoded"
rm -rf r
start train --data hostile-train --out r --img-size 32 --epochs 10000 --batch 8
begun() { [ -e r/events.jsonl ]; }
wait_for 60 begun || fail "the run did not begin"
sleep 1
kill -TERM "$PID"
ended 20
expect_summary r/summary.json stop_reason signal

finish
