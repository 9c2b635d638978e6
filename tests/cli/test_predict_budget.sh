# `stoker predict` with a budget: the file is written before the deadline, from the models and views that
# there was time for.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
"$STOKER" train --data k --out r --img-size 16 --epochs 1 --quiet || exit 1
"$STOKER" train --data k --out r-folds --folds 2 --img-size 16 --epochs 1 --quiet || exit 1

# Some 1500 pictures, on a device that waits a while for each; where there is none, as many as take a while.
mkdir many && cp -r k/train many/0
doublings=6 quarter=5
it "the device can be simulated"
if can_fake odd_device; then
    export LD_PRELOAD=$FAKES/odd_device.so ODD_DEVICE_US=500
else
    doublings=11 quarter=10
fi
double many "$doublings"
rows=$(find many -name '*.jpg' | wc -l)

# expect_rows FILE COUNT: so many rows, with probabilities that sum to 1.
expect_rows() {
    expect "$1 has a row for each" [ "$(wc -l <"$1")" = $(($2 + 1)) ]
    expect_sums "$1"
}

it "has a file before its deadline, with what there was time for, and says what is left out"
timed predict --run r --run r-folds --tta 8 --data many --budget 3 --out cut.csv --json
expect_exit 0
expect_took 3
expect_rows cut.csv "$rows"
expect_jsonl "$OUT"
expect_out '"event": "submission", "path": "cut.csv", "status": "prior"'
expect_no_out '"status": "complete"'
expect_out '"event": "warning".*there was no time for all of it; .*(models predicted|views|images)'
! is_full || is_sanitized ||
    expect_out '"event": "submission", "path": "cut.csv", "status": "partial"'
expect_tidy .

it "does not put priors in the place of the run's own submission"
mkdir -p w/test && cp k/train.csv w/ && cp -r k/train w/train && cp k/test/*.jpg w/test/
"$STOKER" train --data w --out w-run --img-size 16 --epochs 1 --quiet || exit 1
cp -al many w/test/many
timed predict --run w-run --tta 8 --budget 2
expect_exit 0
expect_took 2
expect_no_out 'class priors\)'
expect_file w-run/submission.csv
expect_tidy w-run

# Of 8 s a view of the test set takes more than one and a half. These runs wait for the device.
for name in auto epochs; do
    [ -n "${LD_PRELOAD:-}" ] || break
    epochs=(--epochs 1000)
    [ "$name" = epochs ] || epochs=()
    launch "$name" ODD_DEVICE_US=1000 "$STOKER" train --data w --out "w-$name" --img-size 16 --folds 1 --refit 0 \
        "${epochs[@]}" --budget 8s
done

if is_full; then
    it "trains inside a budget for a test set that is far larger than what it learns from, with views"
    timed train --data w --out w-short --img-size 16 --tta 8 --budget 4
    expect_exit 0
    expect_took 4
    expect_summary w-short/summary.json status 'prior|partial'
    expect_out 'there was time (for|to predict) [0-9]'
    expect "a row for each" [ "$(wc -l <w-short/submission.csv)" -gt "$rows" ]
    expect_tidy w-short
fi

it "delivers all of it where there is time, and says so"
run predict --run r --run r-folds --budget 60 --out rich.csv --json
expect_exit 0
expect_out '"status": "complete", "rows": 6, "models": 3, "models_wanted": 3'
expect_no_out '"event": "warning"'
run predict --run r --budget 60 --deadline 12:61
expect_exit 2
expect_err '12:61'

# expect_views RUN N STATUS: the run has predictions of so many views for all rows, and says nothing of views.
expect_views() {
    expect_no_out '(^|[^a-z])views?( |$)'
    expect_no_out '^warning: there was'
    expect_summary "$1/summary.json" status "$3"
    expect_file "$1/args.json" "\"tta\": $2"
    for views in "$2" auto; do
        ODD_DEVICE_US=0 run predict --run "$1" --tta "$views" --out views.csv
        expect_exit 0
        expect_same "$1/submission.csv" views.csv
    done
}

it "sees the mirror image, too, where a budget has time for it"
run train --data k --out r-two --img-size 16 --epochs 3
expect_exit 0
expect_views r-two 2 complete
run train --data k --out r-rich --img-size 16 --epochs 3 --budget 60s
expect_exit 0
expect_views r-rich 2 complete
expect_same r-rich/submission.csv r-two/submission.csv
run train --data k --out r-fits --img-size 16 --folds 1 --refit 0 --budget 5s
expect_exit 0
expect_no_out '(^|[^a-z])views?( |$)'
expect_file r-fits/args.json '"tta": 2'

it "leaves the mirror image out in silence where the budget is short"
if can_fake odd_device; then
    landed auto
    expect_exit 0
    expect_views w-auto 1 complete
    landed epochs
    expect_exit 0
    expect_views w-epochs 1 partial # there was no time for 1000 of them
    # One view takes more than half of the time.
    us=$((4300000 / $(find many/5 -name '*.jpg' | wc -l)))
    for views in auto 2; do
        launch "views-$views" ODD_DEVICE_US="$us" "$STOKER" predict --run r-two --data many/5 --budget 8 \
            --tta "$views" --out "$views.csv" --json
    done
    landed views-auto
    expect_exit 0
    expect_took 8
    expect_out '"event": "submission", "path": "auto.csv", "status": "complete"'
    expect_no_out '"event": "warning"'
    ODD_DEVICE_US=0 run predict --run r-two --data many/5 --tta 1 --out one.csv
    expect_same auto.csv one.csv
    landed views-2
    expect_out '"event": "warning".*images were seen in 1 of 2 views'
fi

it "does the same in a run that is resumed"
if can_fake odd_device; then
    mkdir -p v/test && cp k/train.csv v/ && cp -r k/train v/train && cp k/test/*.jpg v/test/
    ODD_DEVICE_US=0 run train --data v --out v-run --img-size 16 --epochs 4
    expect_file v-run/args.json '"tta": 2'
    cp -al many v/test/many
    ODD_DEVICE_US=1000 run train --resume v-run --epochs 6 --budget 8s
    expect_exit 0
    expect_views v-run 1 "$(json v-run/summary.json status)" # it depends on the machine
fi

it "keeps what the models so far say at Ctrl-C"
start predict --run r --run r-folds --data "many/$quarter" --budget 10m --out many.csv # a quarter of them
expect "the first model has voted" wait_for 500 grep -q 'from 1 of 3 models' "$OUT"
kill -INT "$PID"
begun=$EPOCHREALTIME
ended 60
since "$begun"
expect_exit 0
expect_out 'there was no time for all of it; [12] of the 3 models predicted'
expect_took 4
expect_rows many.csv $((rows / 4))
expect_tidy .
finish
