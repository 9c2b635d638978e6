#!/usr/bin/env bash
# `stoker run`: the ways in which people and machines end it, and starts that fail.
# Mostly waits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/supervised.sh
. "$ROOT/tests/cli/supervised.sh"

it "needs Python"
take_python

# expect_gone PID...: none of these processes lives any more.
expect_gone() {
    local pid
    for pid in "$@"; do
        ! kill -0 "$pid" 2>/dev/null || fail "process $pid lives on"
    done
}

# says KEY VALUE: what the summary says of a key, as text.
says() {
    expect_file run/summary.json "\"$1\": ?$2[,}]?"
}

# A training that saves when it is asked to, and one that does not listen; both say that they run.
LISTENS='trap "echo saved; exit 0" TERM; echo begun; while :; do sleep 0.05; done'
DEAF='trap "" TERM; echo begun; while :; do sleep 0.05; done'

# supervised SIGNAL OPTIONS... -- COMMAND...: sends the signal to a run whose command has begun.
supervised() {
    local signal=$1
    shift
    rm -rf run
    start run --out run "$@"
    wait_for 30 grep -q begun "$OUT" || fail "it did not begin"
    kill "-$signal" "$PID"
}

it "predicts when its terminal is closed"
supervised HUP --predict 'echo predicted' -- sh -c "$LISTENS"
ended
expect_exit 0
expect_out '^saved$'
expect_out '^predicted$'
says stop_reason '"signal"'

it "ends at once at the second Ctrl-C, and says so in its files"
supervised INT --predict 'echo predicted' -- sh -c "$DEAF"
sleep 0.3
kill -INT "$PID"
begun=$EPOCHREALTIME
ended 30
since "$begun"
expect_exit 130
expect_took 9
expect_no_out 'predicted'
says status '"failed"'
says stop_reason '"signal"'

it "ends in ten seconds when SIGTERM follows Ctrl-C"
supervised INT --predict 'echo predicting; sleep 100' -- sh -c "$LISTENS"
wait_for 30 grep -q predicting "$OUT" || fail "it does not predict"
kill -TERM "$PID"
begun=$EPOCHREALTIME
ended 30
since "$begun"
expect_exit 143
expect_took 10

it "ends commands that ignore signals, hide, and fork away, and no others"
sleep 300 &
other=$!
supervise --budget 10s --predict 'echo predicted' -- \
    python3 -u "$TRAIN" --ignore-term --away away --feeders 1
expect_exit 0
expect_out '^predicted$'
expect "somebody hid" test -s away
expect_gone "$(cat away)"
expect "killed" test "$(attempts '{part} {signal}' | tr '\n' ',')" = 'train 9,predict 0,'
expect_err 'attempt 1: its time was up \(killed: it did not end within its grace\)'
expect "the neighbour lives" kill -0 "$other"
kill "$other"

it "leaves nobody behind when it is killed itself"
rm -rf run
"$STOKER" run --out run -- python3 -u "$TRAIN" --away away2 --ignore-term >/dev/null 2>&1 &
stoker=$!
expect "somebody hid" wait_for 20 test -s away2
{
    kill -9 "$stoker"
    wait "$stoker"
} 2>/dev/null
# shellcheck disable=SC2317  # for wait_for
hidden_gone() { ! kill -0 "$(cat away2)"; }
expect "who hid is gone" wait_for 10 hidden_gone
expect_not "the training lives on" pgrep -f "$TRAIN --away away2"

it "ends the command after its budget also when it is stopped itself"
rm -rf run
start run --out run --budget 10s -- sh -c 'echo $$ >command; exec sleep 300'
expect "the command runs" wait_for 20 test -s command
kill -STOP "$PID"
# shellcheck disable=SC2317  # for wait_for
gone() { ! kill -0 "$(cat command)" 2>/dev/null; }
expect "the command ends" wait_for 30 gone
kill -CONT "$PID"
ended 30
expect_exit 130
expect_err 'its guardian has ended the command'
expect "the summary says so" test "$(summary status) $(summary exit_code)" = 'failed 130'

it "ends in ten seconds after SIGTERM, with a prediction"
rm -rf run
: >"$ERR" # so that nothing of the case before is taken for its words
start run --out run --predict 'echo predicted' -- python3 -u "$TRAIN" --ignore-term
expect "it trains" wait_for 20 grep -q Epoch "$ERR"
kill "$PID"
begun=$EPOCHREALTIME
ended 30
since "$begun"
expect_exit 0
expect_took 10
expect_out '^predicted$'
expect "the summary says signal" test "$(summary stop_reason)" = signal

it "was interrupted where what was expected is not there"
supervised INT --expect lacking.csv -- sh -c "$LISTENS"
ended
expect_exit 130
expect_err 'lacking.csv was expected and is not there'

it "predicts when the command cannot be started again"
rm -rf run
printf '#!/bin/sh\nrm once.sh\nsleep 100\n' >once.sh
chmod +x once.sh
run run --out run --hang 1s --predict 'echo predicted' -- ./once.sh
expect_exit 0
expect_out '^predicted$'
expect_err "not started again: cannot run './once.sh'"
says stop_reason '"error"'

it "says that output was lost, of its own log too"
rm -rf run
run_any sh -c "'$STOKER' run --out run -- echo hello >/dev/full"
expect_exit 0
expect_err "the command's output could not be passed on whole"
expect_file run/output.log ' o  hello$'
rm -rf run
# The command ends once all of it was read: nobody waits long for a reader after that.
cat >says_much.sh <<'END'
yes | head -c 300000
n=0
until [ -e all_read ] || [ $((n += 1)) -gt 600 ]; do sleep 0.1; done
END
run_any bash -c "ulimit -f 64; '$STOKER' run --out run -- sh says_much.sh | { head -c 300000 | wc -c; touch all_read; cat; }"
expect_out '^300000$'
expect_err 'the log of the command.s output has gaps'

it "leaves a folder that the next run can take when it cannot begin"
rm -rf run
run_any bash -c "ulimit -n 12; '$STOKER' run --out run -- true"
expect_err 'Too many open files'
run run --out run -- true
expect_exit 0

it "takes signals by any name, and none for the usual one"
rm -rf run
for name in '' term SIGTERM sigterm 15; do
    run run --out run "--stop-signal=$name" -- true
    expect_exit 0
done

it "tells the last that a command said of its progress, however soon it ended"
rm -rf run
# shellcheck disable=SC2016  # the shell that is run expands it
run run --out run --quiet -- sh -c 'for i in 1 2 3; do echo "epoch $i/3 loss 0.$i"; sleep 0.1; done'
expect_file run/events.jsonl '"event": "step".*"loss": 0.3'

it "does not know how many epochs a command made that was never started"
rm -rf run
run run --out run -- ./nowhere
expect_exit 127
says epochs_done null
expect_no_err 'epochs'

it "leaves room on a full disk for the summary"
mkdir small
if ! mount -t tmpfs -o size=100m stoker-test small 2>/dev/null; then
    skip "a small disk cannot be mounted here"
else
    run run --out small/run -- python3 -c 'import sys
for _ in range(100): sys.stdout.buffer.write((b"x" * 99 + b"\n") * 10000)'
    expect_exit 0
    expect "all of it was passed on" test "$(wc -c <"$OUT")" = 100000000
    expect_json small/run/summary.json
    expect_err 'has gaps'
    expect "room was left" test "$(stat -f -c '%a * %S' small | awk '{ print ($1 * $3 > 50000000) }')" = 1
    umount small
fi

it "leaves room on a disk that is small from the beginning"
if ! mount -t tmpfs -o size=2m stoker-test small 2>/dev/null; then
    skip "a small disk cannot be mounted here"
else
    run run --out small/run -- python3 -c 'print(("x" * 99 + "\n") * 30000)'
    expect_exit 0
    expect_json small/run/summary.json
    expect_file small/run/report.html
    expect_file small/run/output.log 'xxx'
    expect_err 'has gaps'
    umount small
fi

finish
