# A time budget covers everything from the start of the process to the written file. Trainings that only use
# up their time are in tests/soak/test_budgets.sh.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 4 --per-class 50 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')

it "delivers within one second"
timed train --data k --out r1 --budget 1s
expect_exit 0
expect_took 1
expect_submission r1/submission.csv k/sample_submission.csv "$labels"
expect_summary r1/summary.json status 'prior|partial|complete'
expect_summary r1/summary.json budget_s 1
expect_summary r1/summary.json stop_reason budget
expect_sound r1 k/sample_submission.csv "$labels"
expect_tidy r1

it "says so when only class priors could be written"
# So large that not one step fits into a second.
timed train --data k --out r-prior --budget 1s --model resnet18 --img-size 224 --batch 128
expect_exit 0
expect_took 1
expect_out 'no model was trained: of the budget of 1 s, [0-9.]+ s are kept for prediction'
expect_submission r-prior/submission.csv k/sample_submission.csv "$labels"
expect_summary r-prior/summary.json status prior
expect_summary r-prior/summary.json best_acc1 null
expect_summary r-prior/summary.json epochs_done 0
expect_summary r-prior/summary.json submission submission.csv
expect_out 'class priors'
prior=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')
expect "there is a most frequent class" [ -n "$prior" ]

if is_full; then
    it "ends before the five seconds are over and says so"
    timed train --data k --out r5 --budget 5s --img-size 32
    expect_exit 0
    expect_took 5
    expect_summary r5/summary.json budget_s 5
    expect_summary r5/summary.json stop_reason budget
    expect_submission r5/submission.csv k/sample_submission.csv "$labels"
    expect "used_s is what it took" awk -v a="$TOOK" -v b="$(json r5/summary.json used_s)" \
        'BEGIN { exit !(b <= a + 0.02 && b > a - 0.2) }'
    if ! is_sanitized; then
        expect_summary r5/summary.json status complete
        expect "most of the time was used" \
            awk -v a="$(json r5/summary.json used_s)" 'BEGIN { exit !(a > 2.5) }'
        expect_out '^  time +[0-9.]+ s of 5 s'
        head -n 1 "$OUT" >first
        expect_file first 'epochs as the budget allows \(auto\)'
        expect_file first 'budget 5s'
    fi
fi

it "does not use more than it needs"
timed train --data k --out r-short --budget 1h --epochs 1 --img-size 16
expect_exit 0
expect_took 20
expect_summary r-short/summary.json stop_reason epochs
expect_summary r-short/summary.json status complete
expect_summary r-short/summary.json budget_s 3600

if is_full; then
    it "divides the time among folds"
    timed train --data k --out r-folds --budget 15s --folds 3 --img-size 16 --epochs 4
    expect_exit 0
    expect_took 15
    if ! is_sanitized; then
        expect_summary r-folds/summary.json folds_done 3
        expect_summary r-folds/summary.json status complete
    fi
    expect_submission r-folds/submission.csv k/sample_submission.csv "$labels"
fi

if is_full; then
    it "gives folds up where there is no time for all of them, and says why"
    timed train --data k --out r-fewer --budget 3s --folds 5 --epochs 400 --img-size 16
    expect_exit 0
    expect_took 3
    expect_summary r-fewer/summary.json stop_reason budget
    expect_summary r-fewer/summary.json folds_planned 5
    expect_summary r-fewer/summary.json status partial
    expect_summary r-fewer/summary.json folds_done '[1-4]'
    expect_out '^[1-4] of 5 folds: 5 folds of 400 epochs need [0-9.]+ (s|min|h) more and there are [0-9.]+ s'
    grep -q '"event": "decision", "what": "[1-4] of 5 folds"' r-fewer/events.jsonl ||
        fail "the decision is not in events.jsonl"
    expect_submission r-fewer/submission.csv k/sample_submission.csv "$labels"

    it "predicts what there is time for, and says how much"
    mkdir many && cp -r k/train k/train.csv many/ && cp -r k/test many/test
    double many/test 11 # 48 pictures become some 98000
    timed train --data many --out r-many --budget 4s
    expect_exit 0
    expect_took 4
    expect_summary r-many/summary.json status 'partial|prior'
    expect_summary r-many/summary.json stop_reason budget
    expect "every picture has its row" \
        [ "$(wc -l <r-many/submission.csv)" = "$(($(find many/test -name '*.jpg' | wc -l) + 1))" ]
    if [ "$(json r-many/summary.json status)" = partial ]; then
        expect_out 'predict [0-9]+ of [0-9]+ test images'
    fi
fi

# clock SECONDS: the time of day by the clock on the wall that many seconds from now.
clock() {
    date -d "@$(($(date +%s) + $1))" +"${2:-%H:%M:%S}"
}

it "takes a time of day as the end"
run train --data k --out r-at --deadline "$(clock 600)" --epochs 1 --img-size 16
expect_exit 0
expect_out 'deadline [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}: [56][0-9]{2} s from now$'
expect_summary r-at/summary.json budget_s '[56][0-9]{2}(\.[0-9]+)?'
expect_summary r-at/summary.json stop_reason epochs
expect_submission r-at/submission.csv k/sample_submission.csv "$labels"

it "takes a date with it, and what ends earlier"
run train --data k --out r-first --deadline "$(clock 3600 %Y-%m-%dT%H:%M:%S)" --budget 60s --epochs 1 --img-size 16
expect_exit 0
expect_out 'the budget ends earlier'
expect_summary r-first/summary.json budget_s 60
if is_full; then
    timed train --data k --out r-date --deadline "$(clock 3 %Y-%m-%dT%H:%M:%S)" --budget 1h
    expect_exit 0
    expect_took 3
    expect_out 'epochs as the budget allows'
fi

it "refuses a time that is just past, and takes one of longer ago for the next"
run train --data k --out r-past --deadline "$(clock -120 %H:%M)" --epochs 1 --img-size 16
expect_exit 2
expect_err 'is past: it is .* give its date, [0-9-]{10}T[0-9:]{5}$'
expect_no_file r-past
run train --data k --out r-past --deadline "$(clock -14400 %H:%M)" --epochs 1 --img-size 16
expect_exit 0
expect_out '7[12][0-9]{3} s from now' # in twenty hours

it "refuses a date that is past, and what is no time"
run train --data k --out r-no --deadline 2020-01-01T10:00
expect_exit 2
expect_err '2020-01-01T10:00 is past: it is '
for text in 25:00 11m "" now 2027-02-29T10:00; do
    run train --data k --out r-no --deadline "$text"
    expect_exit 2
    expect_err '^stoker: --deadline .*(no time|empty)'
done
run train --data k --out r-no --deadline "$(clock 1 %Y-%m-%dT%H:%M:%S)"
[ "$CODE" = 0 ] || expect_err 'less than a second|is past'
[ "$CODE" = 0 ] || expect_no_file r-no

if is_full; then
    it "goes on until another time of day"
    timed train --resume r-date --deadline "$(clock 4)"
    expect_exit 0
    expect_took 4
    expect_submission r-date/submission.csv k/sample_submission.csv "$labels"
fi

if is_full; then
    it "does not look at the clock on the wall again"
    back=$(dirname "$STOKER")/tests/wall_back.so
    export ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
    begun=$EPOCHREALTIME
    run_any env LD_PRELOAD="$back" date +%s # the clock is set back only later
    expect "the preload does no harm" [ "$CODE" = 0 ]
    run_any env LD_PRELOAD="$back" "$STOKER" train --data k --out r-back --deadline "$(clock 4)"
    since "$begun"
    expect_exit 0
    expect_took 4.5
    expect_summary r-back/summary.json stop_reason budget
    expect_submission r-back/submission.csv k/sample_submission.csv "$labels"
fi

it "cannot deliver priors where nothing is to be predicted"
mkdir bare && cp -r k/train k/train.csv bare/
timed train --data bare --out r-bare --budget 1s --model resnet18 --img-size 224 --batch 128
expect_exit 2
expect_err 'budget.*1 s.*--budget'
expect_no_file r-bare/submission.csv
expect_no_file r-bare/weights/best.safetensors
expect_summary r-bare/summary.json status failed
finish
