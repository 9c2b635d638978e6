# Files for other programs: event files, which the tensorboard package reads back (in a Python environment
# that is made once in the build folder), and text for Prometheus.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"

VENV=$ROOT/build/tests/tensorboard-venv

"$STOKER" sample k --layout kaggle --classes 3 --per-class 16 --quiet || exit 1
small=(--data k --img-size 24 --batch 8 --quiet)

# files FOLDER: how many event files it has.
files() {
    find "$1" -maxdepth 1 -name 'events.out.tfevents.*' | wc -l
}

it "writes one event file"
run train "${small[@]}" --out r --epochs 3
expect_exit 0
expect "one file of training" test "$(files r/tensorboard)" = 1

it "gives each fold a folder of its own"
run train "${small[@]}" --out f --epochs 2 --folds 2
expect_exit 0
expect "no file of training beside the folds'" test "$(files f/tensorboard)" = 0
for fold in 0 1; do
    expect "one file of the fold" test "$(files f/tensorboard/fold$fold)" = 1
done

it "writes none where nobody wants them"
run train "${small[@]}" --out none --epochs 1 --no-tensorboard
expect_exit 0
expect_no_file none/tensorboard

it "begins another file when a run that was killed is resumed"
start train "${small[@]}" --out q --epochs 6 --save-every 0
wait_for 60 grep -q '"event": "epoch"' q/events.jsonl || fail "no epoch was done"
kill -9 "$PID"
ended 60
cp -r q/tensorboard killed
wanted=$([ -e q/summary.json ] && echo 1 || echo 2) # it may have been faster than the signal
run train --resume q --quiet
expect_exit 0
expect "$wanted files" test "$(files q/tensorboard)" = "$wanted"

# FOLDER.seen has `TAG STEP VALUE` for every scalar and `image TAG STEP WIDTHxHEIGHT` for every picture,
# as TensorBoard shows them: steps that were trained again count once.
cat >look.py <<'PYTHON'
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

for folder in sys.argv[1:]:
    events = EventAccumulator(folder, size_guidance={"scalars": 0, "images": 0})
    events.Reload()
    with open(folder + ".seen", "w") as out:
        for tag in events.Tags()["scalars"]:
            for event in events.Scalars(tag):
                print(tag, event.step, "%.9g" % event.value, file=out)
        for tag in events.Tags()["images"]:
            for event in events.Images(tag):
                assert event.encoded_image_string[:3] == b"\xff\xd8\xff", event
                print("image", tag, event.step, "%dx%d" % (event.width, event.height), file=out)
PYTHON

# same_figures A B: as many figures, at least one, and each differs by at most 2 in 10,000.
same_figures() {
    paste "$1" "$2" | awk -F '\t' '
        function size(x) { return x < 0 ? -x : x }
        $1 == "" || $2 == "" || size($1 - $2) > 2e-4 * size($1) { bad = 1 }
        END { exit bad || NR == 0 }'
}

# expect_epochs SEEN RUN FOLD: it has the epochs of results.csv, each once and with its figures. The table
# rounds to six digits of a loss and three decimals of a percentage; an event has a float32.
expect_epochs() {
    local tag column
    for tag in train/loss val/loss val/acc1 lr; do
        column=$(head -n 1 "$2/results.csv" | tr , '\n' | grep -nx "$tag" | cut -d : -f 1)
        awk -F , -v c="$column" -v f="$3" 'NR > 1 && $1 == f { print $c }' "$2/results.csv" >want
        awk -v t="$tag" '$1 == t { print $3 }' "$1" >have
        expect "$1 has $(tr '\n' ' ' <have)for $tag, results.csv $(tr '\n' ' ' <want)" \
            same_figures want have
    done
    # shellcheck disable=SC2016  # awk's dollars
    expect "the steps of a curve of $1 do not rise" \
        awk '$1 == "image" { next } $1 in last && $2 + 0 <= last[$1] { exit 1 } { last[$1] = $2 + 0 }' "$1"
}

it "writes what the tensorboard package reads: curves, pictures, of folds, after a kill and a resume"
CANNOT='packages from PyPI are for make soak'
if is_full && python_with "$VENV" tensorboard; then
    run_any "$VENV/bin/python" look.py r/tensorboard f/tensorboard/fold0 f/tensorboard/fold1 killed q/tensorboard
    expect_exit 0
    expect_file r/tensorboard.seen '^step/loss 1 '
    expect_file r/tensorboard.seen '^epoch [0-9]+ 3$'
    expect_file r/tensorboard.seen '^time/compute [0-9]+ 0\.[0-9]+$'
    expect_file r/tensorboard.seen '^image batch/train 0 76x76$'
    expect_epochs r/tensorboard.seen r 0
    expect_epochs f/tensorboard/fold0.seen f 0
    expect_epochs f/tensorboard/fold1.seen f 1
    expect_file killed.seen '^step/loss 1 '
    expect_file killed.seen '^val/acc1 '
    expect "the first pictures of q came twice" test "$(grep -c '^image batch/train 0 ' q/tensorboard.seen)" = 1
    expect_file q/tensorboard.seen '^epoch [0-9]+ 6$'
    expect_epochs q/tensorboard.seen q 0
else
    skip "$CANNOT"
fi

# expect_documented: docs/outputs.md has the names on standard input, of which there are some.
expect_documented() {
    local name count=0
    while read -r name; do
        grep -Eq "\`$name(\`|\{)" "$ROOT/docs/outputs.md" || fail "docs/outputs.md lacks $name"
        count=$((count + 1))
    done
    [ "$count" -gt 10 ] || fail "there are $count names"
}

it "has every curve in its papers"
if [ -e r/tensorboard.seen ]; then
    expect_documented < <(cut -d ' ' -f 1 r/tensorboard.seen | sort -u | grep -vx image)
else
    skip "$CANNOT"
fi

# ---- Prometheus text ----

# expect_prometheus FILE: lines are comments, or figures whose kind was said before, each name in one
# piece; labels are quoted and escaped.
expect_prometheus() {
    local trouble
    trouble=$(awk '
        function bad(why) { print "line " NR ": " why ": " $0; exit }
        /^# HELP / { if ($3 in helped) bad("comes twice"); helped[$3] = 1; next }
        /^# TYPE / { if ($4 !~ /^(gauge|counter)$/ || !($3 in helped)) bad("no kind"); kind = $3; next }
        {
            if ($0 !~ /^[a-z_:][a-z0-9_:]*(\{[a-z_]+="([^"\\]|\\[\\"n])*"(,[a-z_]+="([^"\\]|\\[\\"n])*")*\})? -?[0-9.]+(e[-+]?[0-9]+)?$/) bad("no figure")
            name = $0
            sub(/[{ ].*/, "", name)
            if (name != kind) bad("no kind before")
            if ($0 in seen) bad("comes twice")
            seen[$0] = 1
        }
        END { if (NR == 0) print "empty" }' "$1" 2>&1)
    [ -z "$trouble" ] || fail "$1: $trouble"
    [ "$(tail -c 1 "$1" | od -An -c | tr -d ' ')" = '\n' ] || fail "$1 ends within a line"
    if command -v promtool >/dev/null; then
        run_any promtool check metrics <"$1"
        expect_exit 0
    fi
}

it "keeps Prometheus text for node_exporter"
mkdir metrics
(umask 077 && "$STOKER" train "${small[@]}" --out p --epochs 2 --budget 60 --metrics-file metrics/stoker.prom) ||
    fail "the run has failed"
expect_prometheus metrics/stoker.prom
expect_file metrics/stoker.prom '^stoker_run_info\{run="p",model="convnet_s",device="cpu",.*precision="fp32"\} 1$'
expect_file metrics/stoker.prom '^stoker_epoch 2$'
expect_file metrics/stoker.prom '^stoker_val_accuracy_ratio (0|1|0\.[0-9]+)$'
expect_file metrics/stoker.prom '^stoker_budget_seconds 60$'
expect_file metrics/stoker.prom '^stoker_finished 1$'
expect_file metrics/stoker.prom '^stoker_exit_status 0$'
expect "the file can be read by everybody" test "$(stat -c %a metrics/stoker.prom)" = 644
expect_documented < <(sed -n 's/^# TYPE \(.*\) gauge$/\1/p' metrics/stoker.prom)
expect_tidy metrics

it "shows a run that goes on, trains all the same while nothing can be written, and shows how it ended"
mkdir live
start train "${small[@]}" --out s --epochs 1000 --metrics-file live/stoker.prom
wait_for 60 grep -q '^stoker_val_loss ' live/stoker.prom || fail "no epoch is shown"
expect_prometheus live/stoker.prom
expect_file live/stoker.prom '^stoker_finished 0$'
mv live away
sleep 1.1 # after so long the next event is to be shown
seen=$(grep -c '"event": "epoch"' s/events.jsonl)
more_epochs() { [ "$(grep -c '"event": "epoch"' s/events.jsonl)" -gt "$seen" ]; }
wait_for 60 more_epochs || fail "the run does not go on"
mv away live
kill -INT "$PID"
ended 60
expect_exit 0
expect_out 'warning: --metrics-file: cannot write live/stoker.prom'
expect_file live/stoker.prom '^stoker_ended\{status="partial",reason="signal"\} 1$'
expect_file live/stoker.prom '^stoker_exit_status 0$'

it "refuses a place for the figures where none can be, before anything is done"
for place in nowhere/stoker.prom metrics metrics/; do
    run train "${small[@]}" --out refused --epochs 1 --metrics-file "$place"
    expect_exit 2
    expect_err "--metrics-file $place.* folder"
    expect_no_file refused
done

finish
