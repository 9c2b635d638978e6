#!/usr/bin/env bash
# `stoker run` with a run folder on a disk that is full or does not answer: the expected file is delivered, and
# a message says what the run folder lacks.
# Mostly waits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

it "needs a disk that can be made to fail"
if ! can_fake bad_disk; then
    finish
fi

PREDICTS='printf "id,label\n1,a\n" >submission.csv'

# on_disk PATHS CALL WHAT OPTIONS... -- COMMAND...: a run whose files of these names meet a bad disk from this call on.
on_disk() {
    local paths=$1 call=$2 does=$3
    shift 3
    rm -rf run submission.csv
    run_any env LD_PRELOAD="$FAKES/bad_disk.so" BAD_DISK_PATHS="$paths" BAD_DISK_AT="$call" BAD_DISK_DOES="$does" \
        "$STOKER" run --out run "$@"
}

it "ends with 0 on a full disk where what was asked for is there, as its summary says, and tells what is missing"
on_disk events.jsonl 3 full --predict "$PREDICTS" --expect submission.csv -- echo trained
expect_exit 0
expect_file submission.csv '^1,a$'
expect_file run/summary.json '^  "exit_code": 0,$'
expect_summary run/summary.json status complete
expect_err 'files of the run folder could not be written \(lines of events.jsonl\): .*No space left on device'

it "tells of each file that is missing, and leaves none that is not true"
on_disk summary.json:report.html 1 full --predict "$PREDICTS" --expect submission.csv -- echo trained
expect_exit 0
expect_no_file run/summary.json
expect_err 'files of the run folder could not be written \(report.html, summary.json\): .*No space left on device'
expect_jsonl run/events.jsonl

it "ends as the command did when the disk is full as well"
on_disk events.jsonl 3 full -- sh -c 'exit 7'
expect_exit 7
expect_file run/summary.json '^  "exit_code": 7,$'
expect_summary run/summary.json status failed
on_disk events.jsonl 3 full --expect submission.csv -- true
expect_exit 3
expect_file run/summary.json '^  "exit_code": 3,$'

it "says that a disk is full before anything is started"
on_disk args.json 1 full -- sh -c 'echo started'
expect_exit 5
expect_no_out started
expect_err 'No space left on device'

# A training that says more than pipes and queues hold, and then waits to be stopped.
# shellcheck disable=SC2016  # the shell that is run expands it
LOUD='head -c 12000000 /dev/zero | tr "\\0" x; echo all said; trap "echo saved; exit 0" TERM; while :; do sleep 0.05; done'

it "stops training and predicts in time when the disk of the run folder hangs"
on_disk run/events.jsonl:run/output.log:run/report:run/summary 3 dead --budget 12s --predict "$PREDICTS; echo predicted" --expect submission.csv -- sh -c "$LOUD"
expect_exit 0
expect_out '^saved$'
expect_out '^predicted$'
expect_out 'all said$'
expect_file submission.csv '^1,a$'
expect_err 'the run folder run is not complete: its disk has not answered for '
expect_err 'output has gaps: cannot write run/output.log: its disk does not answer'

it "starts nothing where the disk does not answer from the beginning"
on_disk run/ 2 dead --budget 12s -- sh -c 'echo started'
expect_exit 5
expect_no_out started
expect_err 'the disk of the run folder run has not answered for .*: nothing was started'

it "does not wait for the disk of a file that was expected"
mkdir expected
printf 'id,label\n1,b\n' >expected/submission.csv
on_disk expected/ 1 dead --budget 12s --expect expected/submission.csv -- sh -c 'echo started'
expect_exit 5
expect_no_out started
expect_err 'the disk of --expect expected/submission.csv has not answered for .*: nothing was started'
on_disk expected/ 3 dead --budget 12s --expect expected/submission.csv -- sh -c 'echo started'
expect_exit 3
expect_err 'expected/submission.csv was expected, and its disk has not answered for '
expect_file run/summary.json '^  "exit_code": 3,$'

finish
