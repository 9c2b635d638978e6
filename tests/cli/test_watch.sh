# Runs seen from outside: train --detach, status, top and stop.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"

# Runs that go on by themselves end with this script, however it ends.
pids=()
end_runs() {
    local pid
    for pid in "${pids[@]}"; do
        [ ! "/proc/$pid/exe" -ef "$STOKER" ] || kill -9 "$pid"
    done
    lib_end
}
# note_process: $RUN_PID is the process that the last command has told of.
note_process() {
    RUN_PID=$(sed -n -E 's/^process: //p; s/.*"pid": ([0-9]+).*/\1/p' "$OUT")
    [ -z "$RUN_PID" ] || pids+=("$RUN_PID")
}
trap end_runs EXIT

"$STOKER" sample k --layout kaggle --classes 3 --per-class 20 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')

# detach ARGUMENTS...: a run with more epochs than anyone waits for; $RUN_PID writes it.
detach() {
    run train --data k --img-size 16 --epochs 100000 --workers 1 --detach "$@"
    note_process
}
has_epoch() { grep -q '"event": "epoch"' "$1/events.jsonl"; }
no_process() { ! kill -0 "$RUN_PID" || grep -q '^State:.Z' "/proc/$RUN_PID/status"; }

# value KEY: of the one object that the last command printed.
value() {
    sed -n -E 's/.*[{ ]"'"$1"'": ("([^"]*)"|([^,}]*)).*/\2\3/p' "$OUT"
}

expect_value() {
    local is
    is=$(value "$1")
    [[ $is =~ ^($2)$ ]] || fail "$1 is '$is', expected $2"
}

it "train --detach comes back when the run has begun"
detach
expect_exit 0
expect_out '^run folder: runs/train$'
expect_out '^process: [0-9]+$'
expect_empty "$ERR"
expect_file runs/train/events.jsonl '"event": "start"'
expect_file runs/train/state/lock "\"pid\": $RUN_PID,"
expect_not "detach is among the options that are written" grep -q detach runs/train/args.json
expect "the process does not go on" kill -0 "$RUN_PID"
expect "the process has no session of its own" \
    [ "$(cut -d ' ' -f 6 "/proc/$RUN_PID/stat")" = "$RUN_PID" ]
expect "the process can read something" [ "$(readlink "/proc/$RUN_PID/fd/0")" = /dev/null ]
expect "the process writes elsewhere" \
    [ "$(readlink "/proc/$RUN_PID/fd/2")" = "$WORK/runs/train/log.txt" ]

it "status says how a run stands"
wait_for 60 has_epoch runs/train || fail "no epoch was done"
kill -HUP "$RUN_PID" # its terminal ends, and it does not
run status
expect_exit 0
expect_out "^runs/train: running, process $RUN_PID, since 20"
expect_out '^  training +epoch [0-9]+/100000, step '
expect_out '^  submission +runs/train/submission.csv \(prior\)$'
run status runs/train/ --json
expect_exit 0
expect_json "$OUT"
expect_value state running
expect_value pid "$RUN_PID"
expect_value status null
expect_value epochs 100000
expect_value submission submission.csv
run status --run runs/train --quiet
expect "more than a line is printed" [ "$(wc -l <"$OUT")" = 1 ]

it "top draws one picture where there is no terminal"
run top
expect_exit 0
expect_out "^runs/train  running  process $RUN_PID\$"
expect_out '^epoch +[0-9]+/100000 '
expect_not "the picture has commands for a terminal" grep -q $'\x1b' "$OUT"
LC_ALL=C run top runs/train --once
expect_out '^epoch +[0-9]+/100000 [#-]+'
expect_not "letters beyond ASCII" grep -qP '[^\x00-\x7f]' "$OUT"
run top --json
expect_json "$OUT"
expect_value state running

# in_terminal SIZE WAIT_FOR DO ARGUMENTS...: the command in a terminal of that size.
in_terminal() {
    run_any python3 "$ROOT/tests/cli/in_terminal.py" "${@:1:3}" "$STOKER" "${@:4}"
}
# widest [FILE]: columns of the widest line of a picture, cursor movements and colours left out.
widest() {
    sed -E $'s/\x1b\\[[?0-9;]*[a-zA-Z]//g' "${1:-$OUT}" | tr -d '\r' | LC_ALL=C.UTF-8 wc -L
}

it "top follows in a terminal, fits it, and leaves it as it was"
export TERM=xterm
if ! command -v python3 >/dev/null; then
    skip "there is no python3 to be a terminal"
else
    kill -STOP "$RUN_PID" # it need not compute meanwhile
    in_terminal 40x20 'q ends' keys:q top
    expect_exit 0
    expect "it is wider than 40 columns: $(widest)" [ "$(widest)" -le 40 ]
    expect_out $'\x1b\\[\\?1049h.*'
    expect "the first screen does not come back" grep -q $'\x1b\\[?1049l' "$OUT"
    expect "there is no colour" grep -q $'\x1b\\[3[26]m' "$OUT"
    in_terminal 80x24 'q ends' 'keys:x\x03' top runs/train
    expect_exit 0
    in_terminal 80x24 'q ends' signal:15 top runs/train
    expect_exit 0
    in_terminal 100x30 'q ends' size:30x12 top runs/train
    expect_exit 0
    # The last picture before the view was left, which is the one after the change.
    awk -v RS=$'\x1b\\[H' '{ last = $0 } END { print last }' "$OUT" |
        sed $'/\x1b\\[J/,$d' >small
    expect_file small 'runs/train'
    expect "it is wider than the smaller terminal: $(widest small)" [ "$(widest small)" -le 30 ]
    expect "it is higher than that" [ "$(wc -l <small)" -le 11 ]
    NO_COLOR=1 in_terminal 80x24 'q ends' keys:q top runs/train
    expect_exit 0
    expect_not "there is colour with NO_COLOR" grep -q $'\x1b\\[[0-9;]*m' "$OUT"
    TERM=dumb in_terminal 80x24 nothing nothing top runs/train
    expect_exit 0
    expect_not "commands for a dumb terminal" grep -q $'\x1b' "$OUT"
    kill -CONT "$RUN_PID"
fi

it "stop ends a run that delivers"
first_pid=$RUN_PID
run stop runs/train
expect_exit 0
expect_out "^process $first_pid is asked to end"
# What it has learnt by then may be worth less than class priors.
expect_out '^runs/train: ended, (partial|prior) \(signal\)$'
expect_out '^  submission +runs/train/submission.csv'
expect_summary runs/train/summary.json stop_reason signal
expect_submission runs/train/submission.csv k/sample_submission.csv "$labels"
expect_file runs/train/log.txt '; it was asked to stop$'
wait_for 10 no_process || fail "the process lives on"
run status runs/train --json
expect_value state ended
expect_value status 'partial|prior'
expect_value pid null

it "stop of a run that has ended says so"
run stop runs/train
expect_exit 0
expect_out 'had ended already'
run stop runs/train --json
expect_exit 0
expect_json "$OUT"
expect_value already_ended true
expect_value stopped true
expect_value submission submission.csv

it "two runs at once, each known by its own process"
detach --json
expect_json "$OUT"
expect_value run_dir runs/train-2
expect_value pid '[0-9]+'
expect "more than the object is printed" [ "$(wc -l <"$OUT")" = 1 ]
second_pid=$RUN_PID
detach --out elsewhere
third_pid=$RUN_PID
run status --json
expect_value run_dir runs/train-2
expect_value pid "$second_pid"
run status elsewhere --json
expect_value pid "$third_pid"
detach --out elsewhere
expect_exit 2
expect_err 'another run is writing there'
run stop elsewhere --json
expect_exit 0
expect_value stopped true
expect "the other one was stopped" kill -0 "$second_pid"

it "a run that was killed can be taken up again"
RUN_PID=$second_pid
wait_for 60 has_epoch runs/train-2 || fail "no epoch was done"
kill -9 "$second_pid"
wait_for 10 no_process || fail "the process lives on"
run status runs/train-2
expect_exit 0
expect_out '^runs/train-2: was killed; can be resumed with: stoker train --resume runs/train-2$'
run status runs/train-2 --json
expect_value state killed
expect_value resumable true
run top
expect_exit 2
expect_err 'no run below runs/ is running'
run stop runs/train-2
expect_exit 0
run train --resume runs/train-2 --detach --budget 9000
expect_exit 0
note_process
run status runs/train-2 --json
expect_value state running
expect_value budget_s '9000\.[0-9]+|900[1-9].*|90[1-9].*' # what was used before is on top of it
expect_value pid "$RUN_PID"
run stop runs/train-2 --quiet
expect_exit 0
expect_empty "$OUT"
expect_submission runs/train-2/submission.csv k/sample_submission.csv "$labels"

it "errors before the start reach who has called, with their exit codes"
for more in '' --json; do
    run train --data nowhere --out never --detach $more
    expect_exit 3
    expect_err 'no such folder: nowhere'
    expect_empty "$OUT"
    expect_no_file never
done
run train --data k --out never --detach --device cuda:77
expect_exit 4
run train --detach --epochs never
expect_exit 2
run plan --data k --detach
expect_exit 2

it "Ctrl-C before the start ends what was detached"
child_of() { grep -l -E "^PPid:.$1\$" /proc/[0-9]*/status | sed -n 's|/proc/\([0-9]*\)/.*|\1|p' | grep .; }
run train --data s3:/// --out never
if grep -q 'no S3 support' "$ERR"; then
    skip "built without S3, which can be made to wait"
else
    serve --root k --hang-percent 100
    export AWS_ENDPOINT_URL=$URL AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b no_proxy=127.0.0.1
    start train --data s3://bucket/k --out never --detach
    wait_for 20 child_of "$PID" || fail "there is no other process"
    RUN_PID=$(child_of "$PID")
    kill -INT "$PID"
    ended 30
    expect_exit 130
    expect_err 'stopped while'
    expect_empty "$OUT"
    expect_no_file never
    expect_not "the other process lives on" kill -0 "$RUN_PID"
fi

it "what cannot be looked at is said"
for verb in status top stop; do
    run $verb nowhere
    expect_exit 2
    expect_err 'there is no such folder'
    run $verb k
    expect_exit 2
    expect_err 'holds no run: it has no events.jsonl'
    run $verb '' # a variable that is not set: not the newest run
    expect_exit 2
    expect_err 'an empty word was given for --run'
done
run stop
expect_exit 2
expect_err 'say which run'
mkdir empty && cd empty || exit 1
run status
expect_exit 2
expect_err 'no run below runs/'
cd ..

it "says when nothing could be printed, and takes no file for a closed stream"
run train --data k --img-size 16 --epochs 1 --out short --quiet
if [ -w /dev/full ]; then
    # shellcheck disable=SC2016  # the inner shell expands
    run_any sh -c '"$@" >/dev/full' sh "$STOKER" status short --json
    expect_exit 5
    expect_err 'cannot write to standard output'
fi
# shellcheck disable=SC2016  # the inner shell expands
run_any sh -c '"$@" <&- >&- 2>&-' sh "$STOKER" train --data k --img-size 16 --epochs 1 --out unheard --detach
expect_exit 0
wait_for 60 [ -e unheard/summary.json ] || fail "it does not end"
expect_file unheard/log.txt '^run folder: unheard$'

it "top ends with a run and leaves its last picture"
if ! command -v python3 >/dev/null; then
    skip "there is no python3 to be a terminal"
else
    run train --data k --img-size 16 --epochs 100000 --workers 1 --detach --out short --budget 3s
    expect_exit 0
    in_terminal 80x24 nothing nothing top short
    expect_exit 0
    sed $'s/.*\x1b\\[?1049l//' "$OUT" | sed -n '/short/,$p' | tail -n +1 >last
    expect_file last 'ended'
    expect_took 3 "$(json short/summary.json used_s)"
fi
finish
