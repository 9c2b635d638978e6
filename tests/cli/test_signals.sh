# Ctrl-C, SIGTERM and kill -9 at any moment.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 60 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')

# An epoch takes a moment, and there are more than anyone waits for.
long() {
    rm -rf r
    start train --data k --out r --img-size 32 --epochs 10000 --recipe plain "$@"
}
has_epoch() { grep -q '"event": "epoch"' r/events.jsonl; }
has_step() { grep -q '"event": "step"' r/events.jsonl; }

it "Ctrl-C in the middle keeps the best weights and predicts"
long
wait_for 60 has_epoch || fail "no epoch was done"
kill -INT "$PID"
ended 60
expect_exit 0
expect_summary r/summary.json stop_reason signal
expect_summary r/summary.json status partial
expect_summary r/summary.json submission submission.csv
expect_weights r/weights/best.safetensors
expect_submission r/submission.csv k/sample_submission.csv "$labels"
expect_out 'submission +r/submission.csv'
expect_sound r k/sample_submission.csv "$labels"
expect_jsonl r/events.jsonl
expect_tidy r
cp r/submission.csv kept
run predict --run r
expect_exit 0
expect_same r/submission.csv kept

it "Ctrl-C in the first epoch still delivers"
long
wait_for 60 has_step || fail "no step was done"
kill -INT "$PID"
ended 60
expect_exit 0
expect_summary r/summary.json stop_reason signal
expect_summary r/summary.json status 'partial|prior'
expect_submission r/submission.csv k/sample_submission.csv "$labels"
expect_sound r k/sample_submission.csv "$labels"

it "Ctrl-C between folds delivers the folds that are done"
long --folds 3 --epochs 1
wait_for 60 grep -q '"event": "submission".*"models": 1' r/events.jsonl || fail "no fold was done"
kill -INT "$PID"
ended 60
expect_exit 0
if [ "$(json r/summary.json status)" != complete ]; then # it may have been faster than the signal
    expect_summary r/summary.json stop_reason signal
    expect_summary r/summary.json folds_done '[12]|3'
fi
expect_submission r/submission.csv k/sample_submission.csv "$labels"

it "a second Ctrl-C stops at once"
long
wait_for 60 has_epoch || fail "no epoch was done"
kill -STOP "$PID" # so that both come before it can have ended by itself
kill -INT "$PID"
sleep 0.05
kill -CONT "$PID"
sleep 0.002
kill -INT "$PID" 2>/dev/null
begun=$EPOCHREALTIME
ended 30
since "$begun"
if [ "$CODE" = 0 ]; then
    expect_summary r/summary.json stop_reason signal # it had ended between the two
else
    expect_exit 130
    expect_err 'stopped at once'
fi
expect_took 2
expect_sound r k/sample_submission.csv "$labels"

it "SIGTERM delivers within ten seconds"
long
wait_for 60 has_epoch || fail "no epoch was done"
kill -TERM "$PID"
begun=$EPOCHREALTIME
ended 30
since "$begun"
expect_exit 0
expect_took 10
expect_summary r/summary.json stop_reason signal
expect_weights r/weights/best.safetensors
expect_submission r/submission.csv k/sample_submission.csv "$labels"

it "SIGTERM at any moment delivers in time"
moments=(0 0.3)
! is_full || moments=(0 0.05 0.1 0.2 0.4 0.8 1.3)
for delay in "${moments[@]}"; do # before the folder exists, while it learns or validates
    long --val-fraction 0.45
    sleep "$delay"
    begun=$EPOCHREALTIME
    kill -TERM "$PID"
    ended 40
    since "$begun"
    expect_took 10
    [ "$CODE" = 130 ] || [ "$CODE" = 143 ] || expect_exit 0
    [ ! -d r ] || expect_sound r k/sample_submission.csv "$labels"
    [ "$CODE" != 0 ] || expect_summary r/summary.json stop_reason signal
done

# termed RUN EVENT DELAY ARGUMENTS...: a training that gets SIGTERM that many seconds after it told of
# the event. In soak all use the whole ten seconds: they do so together, each in the background.
termed() {
    OUT=$WORK/$1.out ERR=$WORK/$1.err
    start train --out "$1" "${@:4}"
    wait_for 60 grep -q "\"event\": \"$2\"" "$1/events.jsonl" || echo "there was no $2" >>"$ERR"
    sleep "$3"
    local begun=$EPOCHREALTIME
    kill -TERM "$PID"
    ended 40
    since "$begun"
    echo "$CODE $TOOK" >"$1.end"
}

# expect_termed RUN: what it printed and how it ended, as after `run`.
expect_termed() {
    OUT=$WORK/$1.out ERR=$WORK/$1.err
    read -r CODE TOOK <"$1.end"
    expect_exit 0
    expect_empty "$ERR"
    expect_took 10
}

mkdir many && cp -r k/train k/train.csv many/ && cp -r k/test many/test
doublings=5 later=0.5 size=32
! is_full || doublings=10 later=1 size=64
double many/test "$doublings"
rows=$(find many/test -name '*.jpg' | wc -l)
! is_full || termed step submission 0.5 --data k --model resnet18 --img-size 224 --batch 128 --epochs 3 &
termed predict-0 checkpoint 0 --data many --img-size "$size" --epochs 1 &
termed predict-1 checkpoint "$later" --data many --img-size "$size" --epochs 1 &
wait

if is_full; then
    it "SIGTERM in a step that would take too long ends it"
    expect_termed step
    expect_summary step/summary.json stop_reason signal
    expect_summary step/summary.json status 'prior|partial'
    expect_submission step/submission.csv k/sample_submission.csv "$labels"
fi

it "SIGTERM while predicting and writing delivers what was predicted"
for r in predict-0 predict-1; do
    expect_termed $r
    expect "every picture has its row" [ "$(wc -l <$r/submission.csv)" = $((rows + 1)) ]
    [ "$(json $r/summary.json status)" = complete ] ||
        expect_summary $r/summary.json stop_reason 'signal|epochs'
    expect_weights $r/weights/best.safetensors
done

it "Ctrl-C without test pictures and before an epoch is exit code 130 or weights"
"$STOKER" sample bare --classes 2 --per-class 4 --quiet && rm -rf bare/test bare/val
rm -rf r
start train --data bare --out r --img-size 16 --epochs 10000 --recipe plain
wait_for 60 test -e r/events.jsonl
kill -INT "$PID"
ended 60
if [ "$CODE" = 130 ]; then
    expect_err 'stopped before'
    expect_no_file r/weights/best.safetensors
    expect_summary r/summary.json status failed
else
    expect_exit 0
    expect_weights r/weights/best.safetensors
fi
expect_summary r/summary.json stop_reason signal

it "kill -9 at any moment leaves whole files or none"
moments=(0.1 0.5) # tests/soak/test_kills.sh has a hundred
! is_full || moments=(0.02 0.05 0.1 0.15 0.2 0.25 0.3 0.4 0.6 0.9)
for delay in "${moments[@]}"; do
    long --quiet
    sleep "$delay"
    kill -9 "$PID"
    ended 10
    expect_exit 137
    [ -d r ] || continue
    expect_sound r k/sample_submission.csv "$labels"
    # A line can be torn at the end of a log; all others are whole.
    if [ -s r/events.jsonl ]; then
        sed '$d' r/events.jsonl >log
        [ ! -s log ] || expect_jsonl log
    fi
    if [ -e r/args.json ]; then
        run predict --run r --out again.csv
        expect_exit 0
        expect_submission again.csv k/sample_submission.csv "$labels"
    fi
done

it "a run can be started again where one was killed"
run train --data k --out r --img-size 16 --epochs 1
expect_exit 0
expect_submission r/submission.csv k/sample_submission.csv "$labels"
expect_tidy r
finish
