# `stoker train`: the run folder, the screen, and the same files from the same seed.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
quick=(--img-size 16 --epochs 2 --seed 1)

it "leaves a whole run folder and says where things are"
run train --data k --out r "${quick[@]}"
expect_exit 0
expect_empty "$ERR"
for file in args.yaml args.json results.csv events.jsonl summary.json submission.csv bad_images.csv \
    weights/best.safetensors weights/last.safetensors; do
    expect_file "r/$file"
done
expect "there is a plot" [ -s r/results.png -o -s r/results.svg ]
expect_sound r k/sample_submission.csv "$labels"
expect_tidy r
for pattern in 'run folder +r$' 'submission +r/submission.csv' 'plot +r/results\.(png|svg)' \
    'weights +r/weights/best.safetensors'; do
    expect_out "$pattern"
done

it "says in its first line what was chosen and why"
head -n 1 "$OUT" >first
expect_file first 'batch 8 \(auto\)'
expect_file first 'model convnet_s \(auto\)'
expect_file first 'epochs 2'
expect_file first 'lr [0-9.]+ \(default\)'

it "writes plain lines when nobody watches"
expect_not "carriage returns or escapes are printed" grep -q $'[\r\033]' "$OUT"
expect_out '^epoch 1/2  2/2 100%  loss [0-9.]+  acc [0-9.]+%.*it/s  [0-9.]+ img/s  wait [0-9]+%'
expect "one line per epoch" [ "$(grep -c '^epoch' "$OUT")" = 2 ]

it "writes results.csv with its header and a row per epoch"
expect "the header is the agreed one" [ "$(head -n 1 r/results.csv)" = \
    'fold,epoch,train/loss,train/acc1,val/loss,val/acc1,val/acc5,lr,images_per_second,wait_fraction,seconds' ]
expect "the rows are numbered" [ "$(tail -n +2 r/results.csv | cut -d , -f 1,2 | tr '\n' ' ')" = '0,1 0,2 ' ]
expect "every cell is a number" awk -F , 'NR > 1 { for (i = 1; i <= NF; i++)
    if ($i !~ /^-?[0-9.]+(e-?[0-9]+)?$/) exit 1 }' r/results.csv

it "writes summary.json with every key"
keys='status stop_reason task best_acc1 metric best_metric epochs_done folds_done folds_planned oof_acc1 oof_metric'
keys+=' held_out held_out_from temperature pool images_per_second wait_fraction budget_s used_s reserve_s batch workers prefetch device'
keys+=' precision bad_images verdict submission'
expect "the keys are the agreed ones" \
    [ "$(grep -Eo '^  "[a-z0-9_]+"' r/summary.json | tr -d ' "' | tr '\n' ' ')" = "$keys " ]
expect_summary r/summary.json status complete
expect_summary r/summary.json stop_reason epochs
expect_summary r/summary.json epochs_done 2
expect_summary r/summary.json folds_done 1
expect_summary r/summary.json budget_s null
expect_summary r/summary.json batch 8
expect_summary r/summary.json device cpu
expect_summary r/summary.json bad_images 0
expect_summary r/summary.json submission submission.csv
expect_summary r/summary.json best_acc1 '[0-9.]+'
expect_summary r/summary.json used_s '[0-9.]+'
best=$(tail -n +2 r/results.csv | cut -d , -f 6 | sort -g | tail -n 1)
expect "best_acc1 is the best of results.csv" \
    awk -v a="$best" -v b="$(json r/summary.json best_acc1)" 'BEGIN { exit !(a - b < 0.01 && b - a < 0.01) }'

it "writes events.jsonl: a start, epochs, a submission and a stop, in the order of time"
expect_jsonl r/events.jsonl
expect "it begins with start" [ "$(head -n 1 r/events.jsonl | grep -c '"event": "start"')" = 1 ]
expect "it ends with stop" [ "$(tail -n 1 r/events.jsonl | grep -c '"event": "stop"')" = 1 ]
expect "two epochs" [ "$(grep -c '"event": "epoch"' r/events.jsonl)" = 2 ]
expect "two submissions, first from priors" [ "$(grep '"event": "submission"' r/events.jsonl |
    grep -Eo '"status": "[a-z]+"' | tr -d '\n')" = '"status": "prior""status": "complete"' ]
expect_times r/events.jsonl
expect "time does not go back" awk -F '[:,]' '$2 + 0 < last { exit 1 } { last = $2 + 0 }' r/events.jsonl
documented=$(sed -n '/^| `start`/,/^| `stop`/s/^| `\([a-z_]*\)`.*/\1/p' "$ROOT/docs/run-folder.md" | paste -sd '|')
expect_not "there is an event that is not documented" grep -Evq "\"event\": \"($documented)\"" r/events.jsonl

it "names every option in args.yaml, and a run can be started from it"
expect_file r/args.yaml '^data: /'
expect_file r/args.yaml '^epochs: 2'
expect_file r/args.yaml '^batch: 8 '
if grep -q 'no YAML' <("$STOKER" train --config r/args.yaml --data nowhere 2>&1); then
    echo "(this build has no YAML)"
else
    run train --config r/args.yaml --out r-again
    expect_exit 0
    expect_same r-again/submission.csv r/submission.csv
    expect_same r-again/weights/best.safetensors r/weights/best.safetensors
fi

it "prints one JSON object a line with --json, and nothing else"
run train --data k --out r-json --json "${quick[@]}"
expect_exit 0
expect_empty "$ERR"
expect_jsonl "$OUT"
expect_out '"event": "start"'
expect_out '"event": "stop"'
expect_same r-json/submission.csv r/submission.csv

it "prints nothing with --quiet"
run train --data k --out r-quiet --quiet "${quick[@]}"
expect_exit 0
expect_empty "$OUT"
expect_empty "$ERR"
expect_file r-quiet/submission.csv

it "repeats itself byte for byte, with any number of workers"
for workers in 1 4 0; do
    run train --data k --out "r-w$workers" --workers "$workers" "${quick[@]}"
    expect_exit 0
    expect_same "r-w$workers/submission.csv" r/submission.csv
    expect_same "r-w$workers/weights/best.safetensors" r/weights/best.safetensors
done
expect_summary r-w0/summary.json workers 1
run train --data k --out r-other --img-size 16 --epochs 2 --seed 2
expect_not "another seed gives the same weights" cmp -s r-other/weights/best.safetensors r/weights/best.safetensors

it "keeps the earlier run when --out is given twice"
cp r/submission.csv kept
run train --data k --out r --img-size 16 --epochs 1 --seed 9
expect_exit 0
expect_out 'r\.1'
expect_same r.1/submission.csv kept
expect_sound r.1 k/sample_submission.csv "$labels"
expect_summary r.1/summary.json epochs_done 2
expect_summary r/summary.json epochs_done 1
run train --data k --out r/ --img-size 16 --epochs 1 --seed 9
expect_exit 0
expect_summary r.2/summary.json epochs_done 1
expect_same r.1/submission.csv kept

it "does not touch a folder that holds something else"
mkdir mine && echo precious >mine/thesis.txt
run train --data k --out mine "${quick[@]}"
expect_exit 2
expect_err 'mine.*not empty'
expect "nothing was added" [ "$(ls -A mine)" = thesis.txt ]
mkdir hollow
run train --data k --out hollow --img-size 16 --epochs 1
expect_exit 0
expect_file hollow/submission.csv

it "numbers runs with one name"
for want in runs/night runs/night-2 runs/night-3; do
    run train --data k --name night --img-size 16 --epochs 1
    expect_exit 0
    expect_out "run folder +$want\$"
    expect_file "$want/submission.csv"
done
run train --data k --img-size 16 --epochs 1
expect_exit 0
expect_file runs/train/submission.csv

it "trains folds, each with its weights, and averages them"
run train --data k --out r-folds --folds 3 --img-size 16 --epochs 1
expect_exit 0
for fold in 0 1 2; do
    expect_weights "r-folds/weights/fold$fold/best.safetensors"
done
expect_summary r-folds/summary.json folds_done 3
expect_summary r-folds/summary.json folds_planned 3
expect_out 'from 3 models'
expect_submission r-folds/submission.csv k/sample_submission.csv "$labels"
expect "a row per fold" [ "$(tail -n +2 r-folds/results.csv | cut -d , -f 1 | tr '\n' ' ')" = '0 1 2 ' ]

it "trains resnet18 with a tag of timm, and saves timm's names"
run train --data k --out r-resnet --model resnet18.a1_in1k --img-size 32 --epochs 1
expect_exit 0
expect_weights r-resnet/weights/best.safetensors
head -c 20000 r-resnet/weights/best.safetensors | tr -d '\0' >names
for name in conv1.weight bn1.running_mean layer1.0.conv1.weight layer4.1.bn2.bias \
    layer2.0.downsample.0.weight fc.weight fc.bias; do
    grep -aq "\"$name\"" names || fail "the checkpoint lacks $name"
done
expect "classes, size, mean and std are in its metadata" grep -aq '__metadata__.*classes' names
for key in img_size mean std model; do
    grep -aq "\"$key\"" names || fail "the metadata lack $key"
done

it "stops when patience runs out, and says so"
run train --data k --out r-patience --img-size 16 --epochs 60 --patience 2 --lr 0
expect_exit 0
expect_summary r-patience/summary.json stop_reason patience
expect_summary r-patience/summary.json status complete
highest=$(awk -F , 'NR > 1 && $6 > most { most = $6; epoch = $2 } END { print epoch }' r-patience/results.csv)
expect_summary r-patience/summary.json epochs_done $((highest + 2))

it "picks the best weights by any metric"
for metric in logloss macro_f1 auc qwk; do
    run train --data k --out "r-$metric" --metric "$metric" --img-size 16 --epochs 1
    expect_exit 0
    expect_summary "r-$metric/summary.json" metric "$metric"
    expect_summary "r-$metric/summary.json" best_metric '-?[0-9.]+'
done
head -n 1 r-qwk/results.csv | grep -q ',seconds,val/qwk$' || fail "results.csv of qwk has no column for it"
head -n 1 r-logloss/results.csv | grep -q ',seconds$' || fail "results.csv of logloss has another column"
best=$(awk -F , 'NR == 2 { print $NF }' r-qwk/results.csv)
expect_summary r-qwk/summary.json best_metric "$best"

it "refuses metrics that cannot rate classes"
run train --data k --out r-rmse --metric rmse --img-size 16 --epochs 1
expect_exit 2
expect_err '--metric rmse: it cannot rate .*; pass acc1, acc5, error, logloss'

it "trains with mixup, CutMix, accumulation and label smoothing"
run train --data k --out r-mix --img-size 16 --epochs 1 --mixup 0.2 --cutmix 1 --accumulate 2 \
    --label-smoothing 0.1
expect_exit 0
expect_submission r-mix/submission.csv k/sample_submission.csv "$labels"

it "cuts a batch to the training set, with the learning rate, and says so"
run train --data k --out r-wide --img-size 16 --epochs 1 --batch 100000 --lr 2
expect_exit 0
expect_out 'batch [0-9]+ \(cut to the training set\)'
expect_out 'lr [0-9.e-]+ \(scaled with the batch\)'

it "goes on when the reader of its output leaves"
run_any bash -c '"$0" train --data k --out r-pipe --img-size 16 --epochs 2 | head -n 1; exit ${PIPESTATUS[0]}' "$STOKER"
expect_exit 0
expect_submission r-pipe/submission.csv k/sample_submission.csv "$labels"
run_any bash -c '"$0" train --data k --out r-pipe2 --json --img-size 16 --epochs 2 | head -n 1; exit ${PIPESTATUS[0]}' "$STOKER"
expect_exit 0
expect_file r-pipe2/summary.json complete

it "redraws one line on a terminal"
if script -qec true /dev/null >/dev/null 2>&1; then
    "$STOKER" sample t --layout kaggle --classes 3 --per-class 30 --quiet
    export STOKER
    # 200 columns, so that nothing is cut.
    run_any script -qec 'stty cols 200; "$STOKER" train --data t --out r-screen --img-size 32 --epochs 2' /dev/null
    expect_exit 0
    tr '\r' '\n' <"$OUT" | sed 's/\x1b\[K//g' >screen
    expect "a line is drawn over" grep -q $'\r.*\x1b\[K' "$OUT"
    expect_file screen \
        '^epoch [12]/2  [0-9]+/[0-9]+ [0-9]+%  loss [0-9]+\.[0-9]{3}  acc [0-9.]+%  [0-9.]+ it/s  [0-9.]+ img/s  wait [0-9]+%  left [0-9]+:[0-9]{2}$'
    expect "what stays on the screen is one line per epoch" \
        [ "$(sed 's/.*\r//' "$OUT" | tr -d '\r' | grep -c 'epoch [12]/2')" -le 2 ]
    run_any script -qec 'stty cols 40; "$STOKER" train --data t --out r-narrow --img-size 16 --epochs 1' /dev/null
    expect_exit 0
    expect "redrawn lines are cut to the width" awk 'BEGIN { RS = "\r" }
        /\033\[K$/ { sub(/\033\[K$/, ""); if (length($0) > 39) exit 1 }' "$OUT"
else
    skip "there is no pseudo-terminal, or no script (util-linux) to make one"
fi
finish
