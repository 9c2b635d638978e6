# --resume: a run that was stopped or killed goes on and ends as if nothing had happened.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 40 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
small=(--data k --img-size 16 --batch 8)

# begin FOLDER OPTIONS...: a run in the background whose state is saved after every step.
begin() {
    rm -rf "$1"
    start train "${small[@]}" --out "$1" --save-every 0 --quiet "${@:2}"
}
# Where the run has come to, or that it was faster than whoever waits for it.
note() { head -c 9000 r/state/train.safetensors 2>/dev/null | grep -Eaq "\"$1\": \"$2\"" || is_gone; }
at_step() { note steps_done '([3-9]|[1-9][0-9]+)'; }
at_epoch() { note epochs_done "[$1-9]"; }
in_fold() { note fold "[$1-9]"; }

# figures FILE: results.csv without what depends on the clock.
figures() { cut -d , -f 1-8 "$1"; }

# expect_equal A B: weights, predictions and figures of two runs are the same.
expect_equal() {
    local file
    while read -r file; do
        expect_same "$1/$file" "$2/$file"
    done < <(cd "$1" && find . -name '*.safetensors' -path '*weights*' -o -name submission.csv \
        -o -name oof.csv -o -name validation.csv)
    [ "$(figures "$1/results.csv")" = "$(figures "$2/results.csv")" ] || fail "results.csv of $1 and $2 differ"
    expect_summary "$2/summary.json" status "$(json "$1/summary.json" status)"
    expect_summary "$2/summary.json" epochs_done "$(json "$1/summary.json" epochs_done)"
    expect_summary "$2/summary.json" folds_done "$(json "$1/summary.json" folds_done)"
    expect_summary "$2/summary.json" best_acc1 "$(json "$1/summary.json" best_acc1)"
    expect_jsonl "$2/events.jsonl"
    [ "$(grep -c '"event": "epoch"' "$2/events.jsonl")" = "$(grep -c '"event": "epoch"' "$1/events.jsonl")" ] ||
        fail "events.jsonl of $2 has an epoch twice, or lacks one"
    expect_no_file "$2/state/best.safetensors"
    expect_no_file "$2/state/validation.csv"
    expect_tidy "$2"
}

run train "${small[@]}" --epochs 4 --out whole --quiet
[ "$(json whole/args.json tta)" = 2 ] || exit 1 # so that the runs below keep what was chosen for them

it "goes on after Ctrl-C in the middle of an epoch"
begin r --epochs 4
wait_for 60 at_step || fail "no step was done"
kill -INT "$PID"
ended 60
expect_exit 0
run train --resume r
expect_exit 0
if grep -q '"resumed"' r/events.jsonl; then # it may have been faster than the signal
    expect_out 'goes on at epoch [1-4], step [0-9]+: resumed'
fi
expect_equal whole r
expect_submission r/submission.csv k/sample_submission.csv "$labels"

if is_full; then
    it "goes on after SIGTERM"
    begin r --epochs 4
    wait_for 60 at_epoch 1 || fail "no epoch was done"
    kill -TERM "$PID"
    ended 60
    run train --resume r/ --quiet
    expect_exit 0
    expect_equal whole r
fi

it "goes on after kill -9, as often as it comes"
begin r --epochs 4
moments=(at_step 'at_epoch 2')
! is_full || moments=(at_step 'at_epoch 1' 'at_epoch 2')
for want in "${moments[@]}"; do
    # shellcheck disable=SC2086  # a function and its words
    wait_for 60 $want || fail "$want never came"
    kill -9 "$PID" 2>/dev/null
    ended 60
    start train --resume r --quiet
done
ended 120
expect_exit 0
expect_equal whole r

it "is exact with everything that a step can depend on"
all=(--epochs 3 --optimizer adamw --ema 0.9 --accumulate 3 --mixup 0.4 --cutmix 0.4 --clip-grad 1
    --freeze-epochs 1 --label-smoothing 0.1 --sampling balanced --patience 2)
run train "${small[@]}" "${all[@]}" --out all --quiet
begin r "${all[@]}"
wait_for 60 at_step || fail "no step was done"
kill -9 "$PID" 2>/dev/null
ended 60
start train --resume r --quiet
wait_for 60 at_epoch 2 || fail "no second epoch was done"
kill -TERM "$PID" 2>/dev/null
ended 60
run train --resume r --quiet
expect_exit 0
expect_equal all r

it "does not train finished folds again, and delivers all of them"
run train "${small[@]}" --epochs 2 --folds 2 --out folds --quiet
begin r --epochs 2 --folds 2
wait_for 60 in_fold 1 || fail "no second fold was begun"
kill -9 "$PID" 2>/dev/null
ended 60
cp r/weights/fold0/best.safetensors kept
run train --resume r --json
expect_exit 0
expect_same kept r/weights/fold0/best.safetensors
! grep -q '"event": "step", "fold": 0,' "$OUT" || fail "the first fold was trained again"
expect_equal folds r
expect_submission r/submission.csv k/sample_submission.csv "$labels"

it "says that a complete run is complete"
run train --resume whole
expect_exit 0
expect_out 'nothing left to do.*whole is complete'
expect_file whole/summary.json

it "trains more epochs when they are asked for"
cp -r whole more
run train --resume more --epochs 5
expect_exit 0
expect_out 'epochs 5: it was 4'
expect_out 'learning rate as after 80 % of the training'
expect_summary more/summary.json epochs_done 5
expect_summary more/summary.json status complete
expect_file more/results.csv '^0,5,'
expect_file more/args.json '"epochs": 5'
run train --resume folds --epochs 3
expect_exit 2
expect_err 'folds that are done were trained for 2'

it "has more time with a new budget"
begin r --epochs auto --budget 1h
wait_for 60 at_epoch 1 || fail "no epoch was done"
kill -INT "$PID"
ended 60
expect_exit 0
start train --resume r --budget 2h
wait_for 60 grep -q 'goes on at epoch' "$OUT" || fail "it does not go on"
kill -INT "$PID"
ended 60
expect_exit 0
expect_summary r/summary.json stop_reason signal

it "looks for the learning rate again when it was stopped while looking"
run train "${small[@]}" --epochs 1 --lr auto --out found --quiet
expect_exit 0
signals=(9)
! is_full || signals=(INT 9)
for signal in "${signals[@]}"; do
    begin r --epochs 1 --lr auto
    wait_for 60 note steps_done 0 || fail "nothing was saved before the test"
    kill "-$signal" "$PID" 2>/dev/null
    ended 60
    ! grep -q 'there was no time' r/events.jsonl || fail "the default rate was taken"
    run train --resume r --quiet
    expect_exit 0
    expect_file r/args.json "\"lr\": $(json found/args.json lr)"
    expect_equal found r
done

it "refuses options that would change what was computed"
begin r --epochs 4
wait_for 60 at_step || fail "no step was done"
kill -9 "$PID" 2>/dev/null
ended 60
cp r/state/train.safetensors kept
for option in '--batch 5' '--lr 0.3' '--seed 9' '--img-size 32' '--optimizer adamw' '--folds 3' '--model resnet18' \
    '--data elsewhere' '--out elsewhere'; do
    # shellcheck disable=SC2086  # a flag and its value
    run train --resume r $option
    expect_exit 2
    expect_err "$option: the run was begun with "
done
expect_same kept r/state/train.safetensors

it "takes the same options again, and others that do not matter"
run train --resume r "${small[@]}" --data ./k --epochs 4 --save-every 5m --workers 1 --max-bad 50
expect_exit 0
expect_out 'workers 1: it was'
expect_equal whole r

it "refuses data that has changed"
"$STOKER" sample d --classes 3 --per-class 6 --quiet || exit 1
run train --data d --img-size 16 --epochs 1 --out changed --quiet
expect_exit 0
sed -i 's/"complete"/"partial"/' changed/summary.json # as if something were left to do
class=$(find d/train -mindepth 1 -type d | sort | head -n 1)
picture=$(find "$class" -type f | sort | head -n 1)
mv "$picture" "$class/zzz.${picture##*.}"
run train --resume changed
expect_exit 3
expect_err 'names or labels of the images of .* changed between train and resume'
rm "$class/zzz.${picture##*.}"
run train --resume changed
expect_exit 3
expect_err 'number of images changed between train and resume: the run has [0-9]+ for training'
rm -r "$class" "d/val/${class##*/}"
run train --resume changed
expect_exit 3
expect_err 'class count changed between train and resume: the run has 3 classes, .* has 2 now'

it "refuses what is no run, and runs without a state"
run train --resume nowhere
expect_exit 2
expect_err 'nowhere: there is no such folder'
run train --resume k
expect_exit 2
expect_err 'k is not a run folder'
expect_no_file k/state
rm -rf old && cp -r whole old && rm old/state/train.safetensors
run train --resume old
expect_exit 2
expect_err 'there is no state/train.safetensors to go on from'
run train --resume ''
expect_exit 2
expect_err 'resume is empty'
head -c 1000 whole/state/train.safetensors >old/state/train.safetensors
run train --resume old
expect_exit 3
expect_err 'train.safetensors .*begin a new run with another --out'

it "goes back with half the learning rate when training goes wrong, and repeats that"
run train "${small[@]}" --epochs 3 --lr 100 --out wrong
expect_exit 0
expect_out 'back to (the start|epoch [0-9]+) with half the learning rate: the (loss|weights|validation)'
run train "${small[@]}" --epochs 3 --lr 100 --out wrong2 --save-every 0 --quiet
[ "$(figures wrong/results.csv)" = "$(figures wrong2/results.csv)" ] || fail "it does not repeat"
[ "$(grep -c 'back to' wrong/events.jsonl)" -le 3 ] || fail "it went back more than three times"
expect_sound wrong k/sample_submission.csv "$labels"
expect_submission wrong/submission.csv k/sample_submission.csv "$labels"

it "sees an explosion in a few steps"
run train --data k --img-size 24 --batch 32 --lr 20 --momentum 0.99 --epochs 4 --out few
expect_out 'back to (the start|epoch [0-9]+) with half the learning rate: the (validation )?loss of epoch'

it "goes on, and predicts, where names are not UTF-8"
latin=$'caf\xe9'
"$STOKER" sample f --classes 2 --per-class 8 --quiet || exit 1
mkdir "$latin" && mv f "$latin/set"
class=$(find "$latin/set/train" -mindepth 1 -maxdepth 1 -printf '%f\n' | head -n 1)
for part in train val; do
    mv "$latin/set/$part/$class" "$latin/set/$part/$latin"
done
run train --data "$latin/set" --img-size 16 --epochs 1 --out "$latin/r" --quiet
expect_exit 0
expect_file "$latin/r/args.json" 'caf\\udce9/set"'
expect "the class is called as its folder" env LC_ALL=C grep -q "$latin" "$latin/r/submission.csv"
run train --resume "$latin/r" --epochs 2
expect_exit 0
expect_out '^goes on at epoch 2, step 1: resumed'
cp "$latin/r/submission.csv" as-trained
run predict --run "$latin/r"
expect_exit 0
expect_same "$latin/r/submission.csv" as-trained

finish
