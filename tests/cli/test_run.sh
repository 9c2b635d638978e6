#!/usr/bin/env bash
# `stoker run` with scripted trainings that misbehave: each ends in time, and no process is left.
# Mostly waits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/supervised.sh
. "$ROOT/tests/cli/supervised.sh"

# rebuilt STREAM: what output.log has of a stream (o or e), without stamps.
rebuilt() {
    python3 -c 'import sys
ends = {32: b"\n", 114: b"\r", 43: b""}
for line in open("run/output.log", "rb").read().split(b"\n")[:-1]:
    if line[11:12] == sys.argv[1].encode(): sys.stdout.buffer.write(line[14:] + ends[line[12]])' "$1"
}

it "passes output on unchanged, keeps it with times, and ends as the command does"
take_python
cat >say.sh <<'END'
printf 'one\ntwo\r\nthree\rfour'
printf 'wrong\n' >&2
exit 7
END
supervise -- sh say.sh
expect_exit 7
printf 'one\ntwo\r\nthree\rfour' >wanted
expect_same "$OUT" wanted
expect_err '^wrong$'
rebuilt o >kept
expect_same kept wanted
expect "the log has the wrong line" grep -q '^ *[0-9.]* e  wrong$' run/output.log
expect "the summary says failed" test "$(summary status)" = failed
expect "the code is in the summary" test "$(summary exit_code)" = 7
expect "why it ended is in the summary" test "$(attempts '{part} {stop_reason} {exit_code}')" = 'train crash 7'
expect_file run/report.html 'say.sh'
expect_file run/args.yaml

it "says what a wrong call lacks"
run run --budget 30s
expect_exit 2
expect_err 'no command was given; write it after two dashes'
run run python3 train.py
expect_exit 2
expect_err "'python3' is no option; the command stands after two dashes"
run run --out run -- no-such-program-of-this-name
expect_exit 127
expect_err 'no-such-program-of-this-name'
run run --budget 10s --reserve 99% -- true
expect_exit 2
run run --stop-signal NOISE -- true
expect_exit 2
expect_err 'none of TERM, INT'
run run --json-fd 77 -- true
expect_exit 2
expect_err 'json-fd 77 is not open'

it "stops training in time and predicts, with what training wrote when it was asked to stop"
supervise --budget 24s --reserve 30% --predict 'cat model; printf "id,label\n1,a\n" >submission.csv' \
    --expect submission.csv -- python3 -u "$TRAIN" --model model
expect_exit 0
expect_out '^batch 32$'
expect_out '^stopping as I was asked to$'
expect "it is partial" test "$(summary status) $(summary stop_reason)" = 'partial budget'
expect "two attempts are told" test "$(attempts '{part} {stop_reason}' | tr '\n' ',')" = 'train budget,predict done,'
expect_took 24 "$(summary used_s)"
# Which of both depends on how fast its steps are here.
expect_err 'estimate: 1000 epochs need .*(consider --epochs|stopping before the first epoch is over)'

it "asks the first process once, and those that it started only when it has ended"
cat >saves.py <<'END'
import os, signal, subprocess, sys, time

asked = 0


def stop(*_):
    global asked
    asked += 1
    if asked == 1:
        time.sleep(0.6)
        fed = feeder.poll() is None
        open("saved", "w").write(f"asked {asked}, fed {fed}\n")
        sys.exit(0)


feeder = subprocess.Popen(["sleep", "300"])
signal.signal(signal.SIGTERM, stop)
time.sleep(300)
END
supervise --budget 30s --stop-at 10s -- python3 -u saves.py
expect_exit 0
expect_file saved '^asked 1, fed True$'

it "keeps the grace that was asked for, and refuses one that there is no room for"
cat >slow_save.sh <<'END'
trap '(trap "" TERM; sleep 1); echo saved; exit 0' TERM
echo begun
while :; do sleep 0.05; done
END
supervise --budget 6s --stop-grace 3s -- sh slow_save.sh
expect_exit 0
expect_out '^saved$'
expect_err 'budget 6 s, 3 s of grace'
expect "it ended by itself" test "$(attempts '{exit_code} {stop_reason}')" = '0 budget'
run run --out refused --budget 6s --stop-grace 6s -- sh slow_save.sh
expect_exit 2
expect_err '6 s of grace leave nothing of the budget of 6 s for training; .*smaller --stop-grace'
expect_no_file refused
run run --out refused --budget 6s --stop-at 80% --stop-grace 3s -- sh slow_save.sh
expect_exit 2
expect_err 'stop-at leaves .* before the end of the budget of 6 s, and --stop-grace asks for 3 s'

it "predicts when training crashed, and its exit code counts"
supervise --predict 'echo predicted; exit 3' -- python3 -u "$TRAIN" --crash-after 0.3
expect_exit 3
expect_out '^predicted$'
expect_err 'the loss became a pumpkin'
expect "the reasons are told" test "$(attempts '{part} {stop_reason} {exit_code}' | tr '\n' ',')" = 'train crash 1,predict crash 3,'
expect "the prediction's is that of the whole" test "$(summary stop_reason)" = error

it "runs a prediction that is written while training runs"
supervise --predict 'sh predict.sh' -- sh -c 'sleep 0.2; echo "echo late" >predict.sh'
expect_exit 0
expect_out '^late$'
expect "it is complete" test "$(summary status)" = complete

it "stops a prediction at the deadline"
supervise --budget 16s --predict 'sleep 100' -- true
expect_exit 143
expect_took 16 "$(summary used_s)"
expect "it failed" test "$(summary status) $(summary stop_reason)" = 'failed budget'

it "misses a file that was expected, an old one and an empty one"
supervise --expect lacking.csv -- true
expect_exit 3
expect_err 'lacking.csv'
printf 'id,label\n1,a\n' >old.csv
supervise --expect old.csv -- true
expect_exit 3
supervise --expect empty.csv -- sh -c 'printf "id,label\n" >empty.csv'
expect_exit 3

it "loses nothing of many megabytes"
lines=400000
! is_full || lines=1400000 # a hundred megabytes
supervise -- python3 -c 'import sys
line = b"0123456789" * 7 + b"\n"
sys.stdout.buffer.write(line * int(sys.argv[1]))' "$lines"
expect_exit 0
expect "all of it was passed on" test "$(wc -c <"$OUT")" = $((71 * lines))
expect "all of it was kept" test "$(wc -l <run/output.log)" = "$lines"

it "keeps a line that never ends"
supervise --budget 16s -- python3 -uc 'import sys, time
while True: sys.stdout.write("x"); sys.stdout.flush(); time.sleep(0.01)'
expect_exit 0
rebuilt o >kept
expect_same kept "$OUT"

it "starts a command that hangs again, with a record of where it was"
supervise --hang 2s --retries 1 --predict 'echo predicted' -- \
    python3 -u "$TRAIN" --hang-after 0.5 --say nothing
expect_exit 0
expect_err 'hangs: '
expect_file run/hang-1.txt 'train.py'
expect_file run/hang-2.txt
expect "it was started twice" test "$(attempts '{part} {stop_reason}' | tr '\n' ',')" = 'train hang,train hang,predict done,'
expect_err 'Fatal Python error: Aborted'

it "hides secrets in all that it stores and says, gives them to the command, and keeps its files for their owner"
export MY_API_KEY=secret-7-of-all
cat >given.sh <<'END'
printf '%s\n' "$HF_TOKEN" "$@" >given
sleep 100
END
supervise --hang 1s --retries 0 --predict 'echo --token secret-1 | wc -w' -- env HF_TOKEN=secret-2 sh given.sh \
    --auth-token secret-3 --password=secret-4 "$MY_API_KEY" https://user:secret-5@host/x?signature=secret-6
expect_exit 0
expect_out '^2$'
expect "it had its arguments" test "$(tr '\n' ' ' <given)" = \
    "secret-2 --auth-token secret-3 --password=secret-4 $MY_API_KEY https://user:secret-5@host/x?signature=secret-6 "
expect_file run/hang-1.txt 'HF_TOKEN=\*\*\*|auth-token \*\*\*'
expect_file run/summary.json 'auth-token \*\*\* --password=\*\*\* \*\*\* .https://\*\*\*@host/x\?signature=\*\*\*'
expect_file run/args.yaml 'token \*\*\*'
run report run --out again.html
run status run --json
cp "$OUT" status
for file in run/*.* again.html status; do
    expect_not "$file has a secret" grep -q 'secret-[1-7]' "$file"
done
expect_no_err 'secret-[1-7]'
others=$(find run -type f -perm /077 ! -path run/state/lock)
expect "others may read: $others" test -z "$others"
unset MY_API_KEY

it "takes printing without progress for a hang"
supervise --hang 2s --on-hang stop -- python3 -u "$TRAIN" --hang-after 1 --hang-printing
expect "it is told as a hang" test "$(attempts '{stop_reason}')" = hang
expect_not "it did not succeed" test "$CODE" = 0

it "tells programs what happens on a descriptor of their own"
rm -rf run
run_any sh -c "'$STOKER' run --out run --json-fd 3 -- echo hello 3>events"
expect_exit 0
expect_jsonl events
expect_file events '"event": ?"attempt"'
expect_out '^hello$'
rm -rf run
run run --out run --json -- echo hello
expect_jsonl "$OUT"
expect_err '^hello$'

it "says nothing of its own with --quiet"
supervise --quiet -- sh -c 'echo out; echo err >&2'
expect_exit 0
expect "one line" test "$(cat "$OUT" "$ERR")" = "$(printf 'out\nerr')"

finish
