# Data on a mount that is slow, hangs or dies: the run goes on as long as possible and never hangs.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so
[ -e "$SLOW" ] || { it "slow files" && skip "there is no $SLOW" && finish; }
export ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}

# With a time-out of half a second everything here ends in a few seconds; none may take this long.
RUN_TIMEOUT=240

"$STOKER" sample k --layout kaggle --classes 3 --per-class 30 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
one=$(find k/train -name '*.jpg' -printf '%f\n' | sort | head -n 1)

# The device waits instead of computing.
PRELOAD=$SLOW
is_sanitized || PRELOAD=$SLOW:$FAKES/odd_device.so
export ODD_DEVICE_US=200

# Runs that use their time up, beside the cases before theirs.
slow_mount=(LD_PRELOAD="$PRELOAD" SLOW_FILES_ROOT="$WORK/k.budget")
cp -r k k.budget && touch always
launch hung "${slow_mount[@]}" SLOW_FILES_HANG="$one" "$STOKER" train --data k.budget --out hung --img-size 16 --budget 8
launch died "${slow_mount[@]}" SLOW_FILES_DEAD_AFTER=140 "$STOKER" train --data k.budget --out died --img-size 16 --budget 8
launch listed "${slow_mount[@]}" SLOW_FILES_DEAD_WHILE="$WORK/always" \
    "$STOKER" train --data k.budget --out listed --img-size 16 --budget 5

# mounted FAULT=VALUE... -- ARGUMENTS...: runs the command; k, or $MOUNT, is on a mount with these faults.
mounted() {
    local faults=()
    while [ "$1" != -- ]; do
        faults+=("SLOW_FILES_$1")
        shift
    done
    shift
    run_any env "${faults[@]}" SLOW_FILES_ROOT="$WORK/${MOUNT:-k}" LD_PRELOAD="$PRELOAD" "$STOKER" "$@"
}

# The same in the background, for signals; then `ended`.
start_mounted() {
    SLOW_FILES_ROOT="$WORK/k" LD_PRELOAD="$PRELOAD" start "$@"
}

train=(train --data k --out r --img-size 16 --read-timeout 0.5)
bench=(bench loader --data k --img-size 16 --batch 16 --seconds 1 --read-timeout 0.5)

# number KEY: of the one JSON object that a benchmark prints.
number() {
    sed -n -E 's/.*"'"$1"'": ([0-9.]+).*/\1/p' "$OUT"
}

# expect_bad NAME REASON: the run has one bad image, of this name and for this reason.
expect_bad() {
    expect_file r/bad_images.csv "$1.*$2"
    [ "$(wc -l <r/bad_images.csv)" = 2 ] || fail "there are other bad images: $(cat r/bad_images.csv)"
}

it "reads in flight follow the latency, not the cores"
mounted OPEN_MS=30 REPORT=report -- "${bench[@]}" --json
expect_exit 0
cores=$(nproc)
expect "there are $(number readers) readers on $cores cores" [ "$(number readers)" -gt "$cores" ]
expect "so many reads waited at a time: $(json report max_waiting)" \
    [ "$(json report max_waiting)" -gt "$cores" ]
expect "no picture is bad" [ "$(number bad)" = 0 ]

it "trains on slow files"
rm -rf r
mounted OPEN_MS=30 READ_MS=5 STAT_MS=5 -- "${train[@]}" --epochs 2
expect_exit 0
expect_summary r/summary.json status complete
expect_summary r/summary.json bad_images 0
expect_submission r/submission.csv k/sample_submission.csv "$labels"

it "a file that hangs is a bad picture"
rm -rf r
# The file is not asked for again within twenty time-outs, in which all epochs have to be done: there are few
# pictures, and at most an epoch of them is read ahead.
"$STOKER" sample few --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
hung=$(tail -n +2 few/train.csv | head -n 1 | cut -d , -f 1)
MOUNT=few mounted HANG="$hung.jpg" REPORT=report -- train --data few --out r --img-size 16 --read-timeout 2 \
    --epochs 3 --batch 4 --workers 1 --prefetch 1
expect_exit 0
expect_summary r/summary.json status complete
expect_summary r/summary.json bad_images 1
expect_bad "$hung" 'no answer within 2 s'
is_sanitized || expect "it was asked for twice, not in every epoch: $(json report hangs)" \
    [ "$(json report hangs)" -le 4 ]
mounted HANG="$one" -- "${bench[@]}" --json
expect_exit 0
expect "one picture is bad" [ "$(number bad)" = 1 ]

it "a file that opens and then hangs is a bad picture"
rm -rf r
mounted HANG="$one" HANG_AT=read -- "${train[@]}" --epochs 2
expect_exit 0
expect_bad "$one" 'no answer within 0.5 s'

it "a file that hangs once is read again"
rm -rf r
mounted HANG="$one" HANG_TIMES=1 -- "${train[@]}" --epochs 2
expect_exit 0
expect_summary r/summary.json bad_images 0

it "a file that cannot be read is tried again and is a bad picture"
rm -rf r
mounted EIO="$one" -- "${train[@]}" --epochs 2
expect_exit 0
expect_bad "$one" 'Input/output error'

it "several files that hang are as many bad pictures, not the end"
rm -rf r
mkdir k/train/hung # a text that their paths contain, and no other
find k/train -maxdepth 1 -name '*.jpg' | sort | head -n 6 | xargs mv -t k/train/hung
mounted HANG=/hung/ -- "${train[@]}" --epochs 2 --max-bad 50
expect_exit 0
expect_summary r/summary.json status complete
expect_summary r/summary.json bad_images 6
mv k/train/hung/* k/train/ && rmdir k/train/hung

it "a mount that dies while training ends the run with a sentence"
rm -rf r
mounted DEAD_AFTER=140 -- "${train[@]}" --epochs 100 --outage 0
expect_exit 5
expect_err 'nothing can be read from k any more: 4 reads in a row failed'
expect_err 'no answer within 0.5 s'
expect_summary r/summary.json status failed
expect_summary r/summary.json stop_reason error
expect_summary r/summary.json bad_images 0
expect_submission r/submission.csv k/sample_submission.csv "$labels"
expect_sound r k/sample_submission.csv "$labels"

it "a mount that is away for longer than an outage may last ends the run"
rm -rf r
mounted DEAD_AFTER=140 -- "${train[@]}" --epochs 100 --outage 2s
expect_exit 5
expect_err 'nothing can be read from k any more: no answer for 2 s, as long as --outage allows'
expect_summary r/summary.json bad_images 0
expect_sound r k/sample_submission.csv "$labels"

it "a mount that dies while it is measured ends that too"
mounted DEAD_AFTER=140 -- "${bench[@]}"
expect_exit 5
expect_err 'nothing can be read from k any more'

it "a mount that is dead from the start is an error at once"
rm -rf r
touch dead
mounted DEAD_WHILE="$WORK/dead" -- "${train[@]}"
expect_exit 5
expect_err 'cannot read k: no answer within 0.5 s'
expect_no_file r
mounted DEAD_WHILE="$WORK/dead" -- "${bench[@]}"
expect_exit 5
expect_err 'no answer within 0.5 s'
rm dead

it "a mount that is away for a moment costs that moment"
rm -rf r
SLOW_FILES_DEAD_WHILE=$WORK/dead start_mounted train --data k --out r --img-size 16 --epochs 300 \
    --read-timeout 5
wait_for 30 grep -q '"event": "epoch"' r/events.jsonl || fail "no epoch was done"
touch dead
sleep 2
rm dead
kill -INT "$PID"
ended 40
expect_exit 0
expect_summary r/summary.json stop_reason signal
expect_summary r/summary.json bad_images 0
expect_submission r/submission.csv k/sample_submission.csv "$labels"

# From here on with the usual time-out, which is longer than anybody waits for the command to end.

it "Ctrl-C ends a run whose mount has died"
rm -rf r
SLOW_FILES_DEAD_AFTER=140 start_mounted train --data k --out r --img-size 16 --epochs 100
wait_for 30 test -e r/submission.csv || fail "there is no submission"
sleep 1
kill -INT "$PID"
ended 25
expect_exit 0
expect_summary r/summary.json stop_reason signal
expect_submission r/submission.csv k/sample_submission.csv "$labels"

it "Ctrl-C ends a command that lists a dead mount"
rm -rf r
touch dead
for verb in "train --out r" "bench loader"; do
    # shellcheck disable=SC2086  # two words
    SLOW_FILES_DEAD_WHILE=$WORK/dead start_mounted $verb --data k
    wait_for 30 listens
    sleep 0.5
    kill -INT "$PID"
    ended 25
    expect_exit 130
    expect_err 'stopped while k was read'
done
expect_no_file r
rm dead

it "a budget is kept while a file hangs, and when the mount dies"
for name in hung died; do
    landed "$name"
    expect_exit 0
    expect_summary "$name/summary.json" stop_reason budget
    expect_submission "$name/submission.csv" k/sample_submission.csv "$labels"
    expect_took 8 "$(json "$name/summary.json" used_s)"
done

it "a budget is kept while a dead mount is listed"
landed listed
expect_exit 5
expect_err 'the time budget ended while k.budget was read'

it "predicting from a dead mount is an error"
rm -rf r
run train --data k --out r --img-size 16 --epochs 1 --quiet
expect_exit 0
cp r/submission.csv kept
touch dead
mounted DEAD_WHILE="$WORK/dead" -- predict --run r --read-timeout 0.5
expect_exit 5
expect_err 'no answer within 0.5 s'
expect_same r/submission.csv kept
mounted DEAD_AFTER=15 -- predict --run r --read-timeout 0.5 --outage 0
expect_exit 5
expect_err 'nothing can be read from .*k any more'
expect_same r/submission.csv kept
rm dead
finish
