# Paths to be written that the user gives: files, links, pipes, devices; and links that Stoker refuses to
# follow. The devices and /dev/stdout of this test lie in its own folder, so that a failing test does not
# replace those of the machine.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for and expect
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
small=(--data k --img-size 16 --quiet)
"$STOKER" train "${small[@]}" --out a --epochs 2 || exit 1
"$STOKER" train "${small[@]}" --out b --epochs 1 --seed 7 || exit 1
cp a/submission.csv first
cp b/submission.csv second
ln -s /proc/self/fd/1 stdout

# through_pipe PATH ARGUMENTS...: runs the command beside a reader of the pipe, who leaves what he read
# in `got`.
through_pipe() {
    rm -f "$1" got
    mkfifo "$1"
    timeout 300 cat "$1" >got &
    local reader=$!
    run "${@:2}"
    wait_for 10 has_ended "$reader" || kill "$reader"
    wait "$reader"
    expect "$1 is still a pipe" [ -p "$1" ]
}

has_ended() { ! kill -0 "$1" 2>/dev/null; }

# Whether the process has its handler of SIGTERM: before that the signal would end it at once.
listens() { [ $((16#$(sed -n 's/^SigCgt:\s*//p' "/proc/$PID/status") & 1 << 14)) != 0 ]; }

# has_device NAME MINOR: makes a device as /dev/NAME here; false where that is not allowed.
has_device() {
    [ -c "$1" ] || mknod "$1" c 1 "$2" 2>/dev/null || return 1
    (exec 7<"$1") 2>/dev/null
}

it "predict writes into a named pipe"
through_pipe pipe predict a --out pipe
expect_exit 0
expect_same got first
through_pipe pipe predict a --out pipe --budget 1m # only the last of the files that a budget makes
expect_exit 0
expect_same got first

it "predict follows links, and leaves them links"
mkdir -p d/e
echo old >d/real
chmod 640 d/real
ln -s d/real link
ln -s e/new d/lost
for link in link d/lost; do
    run predict a --out "$link"
    expect_exit 0
    expect "$link is still a link" [ -L "$link" ]
done
expect_same d/real first
expect_same d/e/new first
expect "the mode is kept" [ "$(stat -c %a d/real)" = 640 ]
expect_tidy d

it "standard output gets the rows, and lines for people go elsewhere"
"$STOKER" predict a --out stdout 2>"$ERR" | cat >piped
expect_same piped first
expect_err 'submission: stdout'
echo before >file
"$STOKER" predict a --out stdout >>file 2>"$ERR"
expect_same file <(echo before && cat first)
"$STOKER" predict a --out /dev/fd/9 9>file --quiet
expect_same file first
"$STOKER" predict a --quiet --out >(cat >substituted) && wait_for 10 cmp substituted first
expect_same substituted first
expect "stdout is still a link" [ -L stdout ]
run predict a --out stdout --json
expect_exit 2
expect_err 'both write to standard output'
"$STOKER" report a --out stdout 2>"$ERR" | cat >page
expect_file page '</html>'
expect "the page alone" [ "$(head -c 9 page | tr '[:upper:]' '[:lower:]')" = '<!doctype' ]
expect_err 'page: stdout'

it "a sheet, a plot and the metrics have standard output to themselves too"
ln -s stdout bars.svg
"$STOKER" bench loader k/train --seconds 0.1 --img-size 16 --sheet stdout 2>"$ERR" | cat >page
expect_err '^sheet +stdout'
expect_err '^loader '
expect "nothing follows the picture" [ "$(tail -c 8 page | head -c 4)" = IEND ]
"$STOKER" doctor --data k --img-size 16 --batch 4 --seconds 0.1 --plot bars.svg 2>"$ERR" | cat >page
expect_err 'the picture is bars.svg'
expect "the picture comes first" [ "$(head -c 5 page)" = '<?xml' ]
expect "nothing follows the picture" [ "$(tail -n 1 page)" = '</svg>' ]
"$STOKER" train --data k --img-size 16 --out c --epochs 1 --metrics-file stdout 2>"$ERR" | cat >page
expect_err '^epoch 1/1'
expect_not "there are other lines" grep -Evq '^(# |stoker_)' page
for verb in "bench loader k/train --seconds 0 --img-size 16 --sheet stdout" \
    "doctor --data k --plot bars.svg" "train --data k --out c --metrics-file stdout"; do
    # shellcheck disable=SC2086  # words
    run $verb --json
    expect_exit 2
    expect_err 'both write to standard output'
done
rm bars.svg

it "devices are written to"
if has_device null 3 && has_device full 7; then
    run predict a --out null
    expect_exit 0
    run predict a --out full
    expect_exit 5
    expect_err 'cannot write full: No space left'
    run report a --out full
    expect_exit 5
    expect "both are still devices" [ -c null -a -c full ]
else
    skip "no device can be made here"
fi

it "what was asked for and could not be printed is an error, however long it is"
if has_device full 7; then
    for verb in "help train" "train --help" "--version" "bench loader k/train --seconds 0 --img-size 16 --sheet sheet.png" \
        "lr --data k --img-size 16 --steps 50 --out rates --json" \
        "plan --data k --img-size 16 --epochs 1" "bench step --model convnet_s --img-size 16 --batch 2 --seconds 0"; do
        # shellcheck disable=SC2086  # words
        run_any sh -c '"$@" >full' sh "$STOKER" $verb
        expect_exit 5
        expect_err 'cannot write to standard output'
    done
    run_any sh -c '"$@" >&-' sh "$STOKER" bench step --model convnet_s --img-size 16 --batch 2 --seconds 0 # nobody wants it
    expect_exit 0
else
    skip "no device can be made here"
fi

it "a folder is refused"
run predict a --out d
expect_exit 5
expect_err 'cannot write d: it is a folder'

it "a pipe that nobody reads does not hold up a budget or a request to stop"
rm -f pipe && mkfifo pipe
RUN_TIMEOUT=240 run predict a --out pipe --budget 2s
expect_exit 5
expect_err 'nobody reads it'
start predict a --out pipe
wait_for 60 listens
sleep 1 # most of this it waits at the pipe; a signal before that ends it as well
kill -TERM "$PID"
ended 60
expect_exit 130
expect "it is still a pipe" [ -p pipe ]
rm -f pipe && mkfifo pipe
start report a --out pipe
wait_for 60 listens
sleep 0.3
kill -TERM "$PID"
ended 60
expect_exit 130

it "every other output takes pipes and links as well"
through_pipe page report a --out page
expect_exit 0
expect_file got '</html>'
through_pipe page report a b --out page
expect_exit 0
expect_file got '</html>'
through_pipe sheet.png bench loader k/train --seconds 0 --img-size 16 --sheet sheet.png
expect_exit 0
expect "a PNG" [ "$(head -c 4 got | tail -c 3)" = PNG ]
through_pipe bars.svg doctor --data k --img-size 16 --batch 4 --seconds 0.1 --plot bars.svg
expect_exit 0
expect_file got '</svg>'
through_pipe run.prom train "${small[@]}" --out c --epochs 1 --metrics-file run.prom
expect_exit 0
expect_file got '^stoker_run_info'
for option in "report a --out" "bench loader k/train --seconds 0 --img-size 16 --sheet" \
    "train --data k --img-size 16 --out c --epochs 1 --metrics-file"; do
    rm -f target link.png && ln -s target link.png
    # shellcheck disable=SC2086  # words
    run $option link.png
    expect_exit 0
    expect "$option leaves the link" [ -L link.png ]
    expect_file target
done
rm -f pipe && mkfifo pipe
run train "${small[@]}" --out c --epochs 1 --metrics-file pipe # nobody reads it: the run goes on
expect_exit 0
expect "it is still a pipe" [ -p pipe ]

it "several runs make a new file, and leave those of the runs alone"
run predict --run a --run b
expect_exit 0
expect_out '^submission: submission.csv \(6 rows, from 2 models\)'
expect_submission submission.csv k/sample_submission.csv
cp submission.csv both
run predict --run a --run b
expect_exit 0
expect_out '^submission: submission-2.csv '
expect_same submission-2.csv both
expect_same submission.csv both
run predict --run b --run a --data k/train
expect_exit 0
expect_out '^submission: predictions.csv '
expect_no_file b/predictions.csv
expect_same a/submission.csv first
expect_same b/submission.csv second

it "a link that waits under a name of a hidden file is not followed"
echo precious >victim
# The process has the number of the shell that becomes it.
bash -c 'ln -s ../victim "a/.submission.csv.$$.tmp" && exec "$0" predict a --quiet' "$STOKER"
expect_same victim <(echo precious)
expect_same a/submission.csv first
rm -f a/.submission.csv.*.tmp

# planted NAME: a resumed run finds a link of that name in its folder.
planted() {
    rm -rf p && cp -a stopped p && rm -rf "p/$1"
    echo precious >victim
    ln -s "$WORK/victim" "p/$1"
    run train --resume p
    expect_exit 5
    expect_err "p/$1: it is a link"
    expect_same victim <(echo precious)
}

it "a run is not resumed through planted links"
start train "${small[@]}" --out stopped --epochs 2000 --save-every 0
has_state() { [ -s stopped/state/train.safetensors ]; }
wait_for 60 has_state
kill -INT "$PID"
ended 60
for name in events.jsonl results.csv bad_images.csv state/lock submission.csv weights/best.safetensors lr.csv; do
    planted "$name"
done
mkdir elsewhere
echo precious >elsewhere/.some.tmp
for name in state weights; do
    rm -rf p moved && cp -a stopped p && mv "p/$name" moved && ln -s "$WORK/moved" "p/$name"
    run train --resume p
    expect_exit 5
    expect_err "p/$name: it is a link"
done
rm -rf p && cp -a stopped p && ln -s "$WORK/elsewhere" p/notes
start train --resume p --quiet
goes_on() { [ ! -e p/summary.json ]; } # it is taken away behind the clean-up
wait_for 60 goes_on
kill -INT "$PID"
ended 60
expect "what a link leads to is not cleaned up" [ -s elsewhere/.some.tmp ]
expect "nothing else came there" [ "$(ls -A elsewhere)" = .some.tmp ]

it "what a run folder has is not written through planted links by other commands"
ln -sf "$WORK/victim" b/report.html
run report b
expect_exit 5
expect_err 'b/report.html: it is a link'
rm b/submission.csv && ln -s "$WORK/victim" b/submission.csv
run predict b
expect_exit 5
expect_err 'b/submission.csv: it is a link'
expect_same victim <(echo precious)

finish
