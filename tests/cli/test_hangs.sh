# Folders that Stoker itself uses on a mount that does not answer: what can be done without is, and all
# else ends with a sentence, in time.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so
[ -e "$SLOW" ] || { it "hung mounts" && skip "there is no $SLOW" && finish; }
export ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}

# A budget is 6 s where there is one, and everything else waits for a few seconds: whatever takes this
# long has hung.
RUN_TIMEOUT=240
GONE='its disk gave no answer within [0-9.]+ s; look whether it is mounted and alive'

"$STOKER" sample k --layout kaggle --classes 3 --per-class 20 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
mkdir m
train=(train --data k --img-size 16)

# All below m is on the mount, which is dead while the file `dead` exists.
export SLOW_FILES_ROOT=$WORK/m SLOW_FILES_DEAD_WHILE=$WORK/dead

mounted() {
    run_any env LD_PRELOAD="$SLOW" "$STOKER" "$@"
}

start_mounted() {
    LD_PRELOAD="$SLOW" start "$@"
}

# in_time SECONDS: the last `mounted` or `ended` began at $BEGUN and took no longer.
in_time() {
    expect_took "$1" $((SECONDS - BEGUN))
}

# die_after_epoch RUN: waits for an epoch of the run that was started, and then the mount is dead.
die_after_epoch() {
    wait_for 40 grep -q '"event": "epoch"' "$1/events.jsonl" || fail "no epoch was done"
    touch dead
}

it "a cache on a dead mount is done without"
touch dead
mounted "${train[@]}" --out r --epochs 1 --cache m/cache
expect_exit 0
expect_out "warning: going on without a cache: cannot open m/cache: $GONE"
expect_submission r/submission.csv k/sample_submission.csv "$labels"
rm -f dead

it "a cache whose mount dies does not cost the budget"
rm -rf r
BEGUN=$SECONDS
start_mounted "${train[@]}" --out r --budget 6 --cache m/cache
die_after_epoch r
ended 60
expect_exit 0
expect_summary r/summary.json stop_reason budget
expect_submission r/submission.csv k/sample_submission.csv "$labels"
in_time 12
rm -f dead

it "a file of metrics on a dead mount is done without"
rm -rf r
touch dead
mounted "${train[@]}" --out r --epochs 1 --metrics-file m/figures
expect_exit 0
expect_out "warning: going on without it: --metrics-file m/figures: $GONE"
expect_submission r/submission.csv k/sample_submission.csv "$labels"
rm -f dead
expect_no_file m/figures

it "a file of metrics whose mount dies is not waited for"
rm -rf r
BEGUN=$SECONDS
start_mounted "${train[@]}" --out r --budget 6 --metrics-file m/figures
die_after_epoch r
ended 60
expect_exit 0
expect_out 'warning: --metrics-file: cannot write m/figures in time: its disk does not answer'
expect_submission r/submission.csv k/sample_submission.csv "$labels"
in_time 12
rm -f dead
expect_file m/figures 'stoker_run_info'

it "a run folder on a dead mount is an error within the budget"
touch dead
BEGUN=$SECONDS
mounted "${train[@]}" --out m/r --budget 4
expect_exit 5
expect_err "cannot make the folder m/r: $GONE"
in_time 12
rm -f dead
expect_no_file m/r

it "Ctrl-C and SIGTERM end a run whose folder is on a dead mount"
for signal in INT TERM; do
    touch dead
    BEGUN=$SECONDS
    start_mounted "${train[@]}" --out m/r --epochs 100
    wait_for 30 listens
    sleep 1
    kill -"$signal" "$PID"
    ended 30
    expect_exit 130
    expect_err "m/r: $GONE"
    rm -f dead
done

it "a run folder whose mount dies ends the run within the budget"
rm -rf m/r
BEGUN=$SECONDS
start_mounted "${train[@]}" --out m/r --budget 6
die_after_epoch m/r
ended 60
expect_exit 5
expect_err "cannot write m/r/.*: $GONE"
in_time 14
rm -f dead
expect_submission m/r/submission.csv k/sample_submission.csv "$labels"

it "Ctrl-C ends a run whose folder's mount died"
rm -rf m/r
start_mounted "${train[@]}" --out m/r --epochs 10000
die_after_epoch m/r
sleep 1
kill -INT "$PID"
ended 60
expect_exit 5
expect_err "cannot write m/r/.*: $GONE"
rm -f dead
expect_submission m/r/submission.csv k/sample_submission.csv "$labels"

it "a run folder that is away for a moment costs that moment"
rm -rf m/r
start_mounted "${train[@]}" --out m/r --epochs 10000
die_after_epoch m/r
sleep 1.5
rm dead
sleep 0.5
kill -INT "$PID"
ended 60
expect_exit 0
expect_summary m/r/summary.json stop_reason signal
expect_submission m/r/submission.csv k/sample_submission.csv "$labels"

it "a disk that does not come to storing costs neither the budget nor the model"
fake=$(dirname "$STOKER")/tests/bad_disk.so
if [ -e "$fake" ] && ! is_sanitized; then
    rm -rf r
    run_any env LD_PRELOAD="$fake" BAD_DISK_PATHS=r/ BAD_DISK_AT=1 BAD_DISK_DOES=lame \
        "$STOKER" "${train[@]}" --out r --budget 8
    expect_exit 0
    expect_out 'warning: the disk is slow: [0-9]+ times a file was put in place before it was stored'
    expect_summary r/summary.json status 'complete|partial'
    expect_summary r/summary.json stop_reason budget
    expect_took 8 "$(json r/summary.json used_s)"
    expect "it used its time" awk -v a="$(json r/summary.json used_s)" 'BEGIN { exit !(a > 4) }'
    expect_submission r/submission.csv k/sample_submission.csv "$labels"
    expect_weights r/weights/best.safetensors
    cp r/submission.csv before
    run predict --run r
    expect_exit 0
    expect_same r/submission.csv before
else
    skip "the preloaded library and the sanitizer do not go together"
fi

it "what is asked of a run on a dead mount can be stopped"
touch dead
for verb in "predict --run" "report" "status" "train --resume"; do
    # shellcheck disable=SC2086  # two words
    start_mounted $verb m/r
    wait_for 30 listens
    sleep 0.3
    kill -INT "$PID"
    ended 30
    expect "$verb is interrupted: $CODE" [ "$CODE" = 130 ]
    expect_err "m/r.*$GONE"
done
rm -f dead

it "what makes, copies and measures data can be stopped while a mount is dead"
cp -r k m/k
for words in "INT sample m/new" "TERM sample m/new" "INT stage k m/near" "INT stage m/k near" \
    "INT plan --budget 30s --data m/k" "INT bench loader m/k"; do
    touch dead
    # shellcheck disable=SC2086  # words
    start_mounted ${words#* }
    wait_for 30 listens
    sleep 0.3
    kill -"${words%% *}" "$PID"
    ended 30
    expect "it is interrupted by $words: $CODE" [ "$CODE" = 130 ]
    expect "it says why: $words" grep -Eq "$GONE|stopped" "$ERR"
    rm -rf dead near
done
expect_no_file m/new
expect_no_file m/near

it "weights on a dead mount are an error within the budget"
rm -rf r
echo weights >m/w.safetensors
touch dead
BEGUN=$SECONDS
mounted "${train[@]}" --out r --budget 4 --pretrained m/w.safetensors
expect_exit 5
expect_err "m/w.safetensors: $GONE"
in_time 12
rm -f dead
expect_no_file r

it "a home on a dead mount does not hold up a training or a command"
rm -rf r
touch dead
BEGUN=$SECONDS
HOME=$WORK/m mounted "${train[@]}" --out r --epochs 1
expect_exit 0
HOME=$WORK/m mounted run --out run -- sh -c 'echo epoch 1'
expect_exit 0
in_time 40
rm -rf r
BEGUN=$SECONDS
HOME=$WORK/m mounted "${train[@]}" --out r --budget 4
expect_exit 0
expect_took 4 "$(json r/summary.json used_s)"
in_time 6
rm -f dead

it "a home on a dead mount does not hold up reading from S3"
rm -rf r
if [ -x "$SERVER" ] && "$STOKER" help --markdown | grep -q anonymous; then
    serve --root . --bucket k=k
    touch dead
    AWS_ENDPOINT_URL=$URL HOME=$WORK/m XDG_CACHE_HOME=$WORK/m/cache \
        mounted train --data s3://k --out r --img-size 16 --epochs 1 --anonymous
    expect_exit 0
    expect_out "warning: going on without a cache: cannot open .*m/cache/stoker: $GONE"
    expect_file r/results.png
    rm -f dead
else
    skip "there is no object server"
fi
finish
