# Folders of Stoker's own on a mount that does not answer. If Stoker can do without the folder, it does;
# otherwise it ends in time with a sentence.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so
[ -e "$SLOW" ] || { it "hung mounts" && skip "there is no $SLOW" && finish; }
export ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}

# A budget is 12 s where there is one, and everything else waits for a few seconds: whatever takes this
# long has hung.
RUN_TIMEOUT=240
GONE='its disk gave no answer within [0-9.]+ s; look whether it is mounted and alive'

"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
mkdir m
train=(train --data k --img-size 16)

# All below m is on the mount, which is dead while the file `dead` exists. The device waits instead of computing.
export SLOW_FILES_ROOT=$WORK/m SLOW_FILES_DEAD_WHILE=$WORK/dead ODD_DEVICE_US=5000
PRELOAD=$SLOW
is_sanitized || PRELOAD=$SLOW:$FAKES/odd_device.so

mounted() {
    run_any env LD_PRELOAD="$PRELOAD" "$STOKER" "$@"
}

start_mounted() {
    LD_PRELOAD=$PRELOAD start "$@"
}

# A second mount is always dead. What waits for it longest begins now, beside the other cases.
mkdir gone && cp -r k gone/ && touch always
"$STOKER" "${train[@]}" --out gone/r --epochs 1 --quiet || exit 1
launch_gone() {
    launch "$1" LD_PRELOAD="$PRELOAD" SLOW_FILES_ROOT="$WORK/gone" SLOW_FILES_DEAD_WHILE="$WORK/always" "${@:2}"
}
launch_gone cache "$STOKER" "${train[@]}" --out cache.run --epochs 1 --cache gone/cache
launch_gone metrics "$STOKER" "${train[@]}" --out metrics.run --epochs 1 --metrics-file gone/figures
launch_gone home HOME="$WORK/gone" "$STOKER" "${train[@]}" --out home.run --epochs 1
launch_gone home_command HOME="$WORK/gone" "$STOKER" run --out command.run -- sh -c 'echo epoch 1'
if [ -x "$SERVER" ] && "$STOKER" help --markdown | grep -q anonymous; then
    serve --root . --bucket k=k
    launch_gone s3 AWS_ENDPOINT_URL="$URL" HOME="$WORK/gone" XDG_CACHE_HOME="$WORK/gone/cache" \
        "$STOKER" train --data s3://k --out s3.run --img-size 16 --epochs 1 --anonymous
fi

# interrupted NAME SIGNAL ARGUMENTS...: the same for a command that gets this signal, in the background.
interrupted() {
    (
        OUT=$WORK/$1.out ERR=$WORK/$1.err
        export SLOW_FILES_ROOT=$WORK/gone SLOW_FILES_DEAD_WHILE=$WORK/always
        start_mounted "${@:3}"
        wait_for 30 listens
        sleep 0.5
        kill "-$2" "$PID"
        ended 30
        echo "$CODE" >"$1.end"
    ) &
}
count=0
verbs=("INT predict --run gone/r" "INT report gone/r" "INT status gone/r" "INT train --resume gone/r"
    "INT sample gone/new" "TERM sample gone/new" "INT stage k gone/near" "INT stage gone/k near"
    "INT plan --budget 30s --data gone/k" "INT bench loader gone/k")
for words in "${verbs[@]}"; do
    # shellcheck disable=SC2086  # words
    interrupted "verb$count" $words
    count=$((count + 1))
done

# in_time SECONDS: the last `mounted` or `ended` began at $BEGUN and took no longer.
in_time() {
    expect_took "$1" $((SECONDS - BEGUN))
}

# die_after_epoch RUN: waits for an epoch of the run that was started, and then the mount is dead.
has_epoch() { grep -q '"event": "epoch"' "$1/events.jsonl"; }
has_epoch_or_is_gone() { has_epoch "$1" || is_gone; }
die_after_epoch() {
    wait_for 40 has_epoch_or_is_gone "$1"
    has_epoch "$1" || fail "no epoch was done"
    touch dead
}

it "a cache whose mount dies does not cost the budget"
rm -rf r
BEGUN=$SECONDS
start_mounted "${train[@]}" --out r --budget 12 --cache m/cache
die_after_epoch r
ended 60
expect_exit 0
expect_summary r/summary.json stop_reason budget
expect_submission r/submission.csv k/sample_submission.csv "$labels"
in_time 20
rm -f dead

it "a file of metrics whose mount dies is not waited for"
rm -rf r
BEGUN=$SECONDS
start_mounted "${train[@]}" --out r --budget 12 --metrics-file m/figures
die_after_epoch r
ended 60
expect_exit 0
expect_out 'warning: --metrics-file: cannot write m/figures in time: its disk does not answer'
expect_submission r/submission.csv k/sample_submission.csv "$labels"
in_time 20
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
start_mounted "${train[@]}" --out m/r --budget 12
die_after_epoch m/r
ended 60
expect_exit 5
expect_err "cannot (read|write) m/r/.*: $GONE"
in_time 20
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
expect_err "cannot (read|write) m/r/.*: $GONE"
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
    # Hardly anything but one class to train on, and all three to validate with: a model that learns nothing beats
    # class priors, however many steps there is time for.
    "$STOKER" sample lopsided --layout kaggle --classes 3 --per-class 20 --quiet || exit 1
    awk -F , -v OFS=, 'NR > 1 && ++seen[$2] > 8 { $2 = "triangle_dots" } 1' lopsided/train.csv >skewed
    mv skewed lopsided/train.csv
    run_any env LD_PRELOAD="$fake" BAD_DISK_PATHS=r/ BAD_DISK_AT=1 BAD_DISK_DOES=lame \
        "$STOKER" train --data lopsided --img-size 16 --val-per-class 4 --lr 1e-9 --out r --epochs 100000 --budget 8
    expect_exit 0
    expect_out 'warning: the disk is slow: [0-9]+ times a file was put in place before it was stored'
    expect_summary r/summary.json status 'complete|partial'
    expect_summary r/summary.json stop_reason budget
    expect_took 8 "$(json r/summary.json used_s)"
    ! is_full || expect "it used its time" awk -v a="$(json r/summary.json used_s)" 'BEGIN { exit !(a > 4) }'
    expect_submission r/submission.csv lopsided/sample_submission.csv "$labels"
    expect_weights r/weights/best.safetensors
    cp r/submission.csv before
    run predict --run r
    expect_exit 0
    expect_same r/submission.csv before
else
    skip "the preloaded library and the sanitizer do not go together"
fi

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
HOME=$WORK/m mounted "${train[@]}" --out r --budget 4
expect_exit 0
expect_took 4 "$(json r/summary.json used_s)"
rm -f dead
for name in home home_command; do
    landed "$name"
    expect_exit 0
    expect_took 40
done

it "a cache on a dead mount is done without"
landed cache
expect_exit 0
expect_out "warning: going on without a cache: cannot open gone/cache: $GONE"
expect_submission cache.run/submission.csv k/sample_submission.csv "$labels"

it "a file of metrics on a dead mount is done without"
landed metrics
expect_exit 0
expect_out "warning: going on without it: --metrics-file gone/figures: $GONE"
expect_submission metrics.run/submission.csv k/sample_submission.csv "$labels"
expect_no_file gone/figures

it "what is asked of a run, and what makes, copies and measures data, can be stopped while a mount is dead"
for ((i = 0; i < count; i++)); do
    wait_for 60 test -s "verb$i.end" || fail "${verbs[i]} does not end"
    expect "${verbs[i]} is interrupted: $(cat "verb$i.end")" [ "$(cat "verb$i.end")" = 130 ]
    expect "it says why: ${verbs[i]}" grep -Eq "$GONE|stopped" "verb$i.err"
done
expect_no_file gone/new
expect_no_file gone/near

it "a home on a dead mount does not hold up reading from S3"
if [ -n "$URL" ]; then
    landed s3
    expect_exit 0
    expect_out "warning: going on without a cache: cannot open .*gone/cache/stoker: $GONE"
    expect "there is a plot" [ -s s3.run/results.png -o -s s3.run/results.svg ]
else
    skip "there is no object server"
fi
finish
