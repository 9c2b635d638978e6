# Memory that runs out during training: the batch is halved, an update still sees as many pictures, and the
# run goes on from the last saved state. A preloaded library refuses memory to the CPU backend; test_cuda.sh
# tests the same on a GPU.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2016,SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"

build=$(dirname "$STOKER")
it "begins again with half the batch when there is no memory for the first step"
if is_sanitized; then
    skip "a sanitizer has an allocator of its own"
    finish
fi
"$STOKER" sample k --layout kaggle --classes 2 --per-class 16 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
small=(--data k --device cpu --img-size 16 --workers 1 --prefetch 4 --seed 3)

# refusing N[-M] ARGUMENTS...: as run, and the requests with these numbers find no memory. Three are
# the weights, gradients and momentum; the fourth is for validation and the fifth for training.
refusing() {
    run_any env STK_NO_MEMORY="$1" LD_PRELOAD="$build/tests/no_memory.so" "$STOKER" "${@:2}"
}

# figures FILE: results.csv without what depends on the clock.
figures() { cut -d , -f 1-8 "$1"; }

# expect_equal A B: weights, predictions and figures of two runs are the same.
expect_equal() {
    expect_same "$1/weights/best.safetensors" "$2/weights/best.safetensors"
    expect_same "$1/submission.csv" "$2/submission.csv"
    [ "$(figures "$1/results.csv")" = "$(figures "$2/results.csv")" ] || fail "results.csv of $1 and $2 differ"
}

# expect_numbers RUN BATCH: what the summary says was used, and what args.json says was asked for.
expect_numbers() {
    expect_summary "$1/summary.json" batch "$2"
    expect_file "$1/args.json" '"batch": 8,'
    expect_file "$1/args.json" '"accumulate": 1,'
}

run train "${small[@]}" --epochs 3 --batch 4 --accumulate 2 --out small
expect_exit 0
refusing 5 train "${small[@]}" --epochs 3 --batch 8 --out first
expect_exit 0
expect_empty "$ERR"
expect_out '^batch 4 x 2 instead of 8 x 1, from the start: batch 8 at 16 px needs .* which cannot be had$'
expect "one line tells it" [ "$(grep -c '"event": "decision".*instead of 8 x 1' first/events.jsonl)" = 1 ]
expect_summary first/summary.json status complete
expect_numbers first 4
expect_submission first/submission.csv k/sample_submission.csv "$labels"
expect_equal small first
expect_tidy first

it "comes as near as it can to the pictures of an update of an odd batch"
refusing 5 train "${small[@]}" --epochs 1 --batch 11 --out odd
expect_exit 0
expect_out '^batch 5 x 2 instead of 11 x 1, '
expect_summary odd/summary.json batch 5

it "goes back to the second epoch when there is none left in the third"
refusing 6 train "${small[@]}" --epochs 4 --freeze-epochs 2 --batch 8 --out third
expect_exit 0
expect_out '^batch 4 x 2 instead of 8 x 1, from step 1 of epoch 3: '
expect_summary third/summary.json status complete
expect_summary third/summary.json epochs_done 4
expect_numbers third 4
expect "each epoch is in results.csv once" \
    [ "$(tail -n +2 third/results.csv | cut -d , -f 2 | tr '\n' ' ')" = "1 2 3 4 " ]
expect_submission third/submission.csv k/sample_submission.csv "$labels"

it "stays with the smaller batch in the folds that follow, and after kill -9"
is_halved() { head -c 9000 killed/state/train.safetensors 2>/dev/null | grep -aq '"accumulate": "2"' || is_gone; }
whole=(train "${small[@]}" --epochs 3 --folds 3 --batch 8)
refusing 5 "${whole[@]}" --out whole
expect_exit 0
expect_numbers whole 4
expect "it is halved once" [ "$(grep -c 'batch.* instead of' whole/events.jsonl)" = 1 ]
export STK_NO_MEMORY=5 LD_PRELOAD=$build/tests/no_memory.so
start "${whole[@]}" --out killed
unset STK_NO_MEMORY LD_PRELOAD
wait_for 60 is_halved || fail "the batch was not halved"
kill -9 "$PID" 2>/dev/null
ended 60
run train --resume killed
expect_exit 0
expect_out '^batch 4 x 2: there was no memory for 8$'
expect_numbers killed 4
expect_same whole/oof.csv killed/oof.csv
expect_same whole/submission.csv killed/submission.csv

it "delivers what there is when not even the smallest batch fits"
refusing 5-13 train "${small[@]}" --epochs 2 --batch 8 --out none
expect_exit 4
expect_err '^stoker: batch 1 at 16 px needs .*; nothing smaller than batch 2 can be tried: .*; no epoch was done yet: .*--resume none'
expect_summary none/summary.json status prior
expect_summary none/summary.json stop_reason error
expect_summary none/summary.json epochs_done 0
expect_numbers none 2
expect_submission none/submission.csv k/sample_submission.csv "$labels"
expect_sound none k/sample_submission.csv "$labels"
run train --resume none
expect_exit 0
expect_out '^batch 2 x 4: there was no memory for 8$'
expect_summary none/summary.json status complete
expect_numbers none 2

refusing 6-14 train "${small[@]}" --epochs 4 --freeze-epochs 2 --batch 8 --out some
expect_exit 4
expect_err 'what was learnt up to epoch 2 is kept: .*--resume some'
expect_out '^submission: some/submission.csv \(8 rows, from 1 model\)$'
expect_summary some/summary.json status partial
expect_summary some/summary.json stop_reason error
expect_summary some/summary.json epochs_done 2
expect_numbers some 2
expect_submission some/submission.csv k/sample_submission.csv "$labels"

it "halves the batches of validation and prediction by themselves"
refusing 4 train "${small[@]}" --epochs 1 --batch 8 --out val
expect_exit 0
expect_out '^validation and prediction in batches of 32 instead of 64, from the start: '
expect_numbers val 8
refusing 6 train "${small[@]}" --epochs 1 --batch 8 --out test
expect_exit 0
expect_out '^prediction in batches of 32 instead of 64: '
expect_summary test/summary.json status complete
expect_same val/submission.csv test/submission.csv
refusing 2-3 predict --run val --device cpu --out again.csv
expect_exit 0
expect_same val/submission.csv again.csv
refusing 6-12 train "${small[@]}" --epochs 1 --batch 8 --out lost
expect_exit 4
expect_err 'nothing smaller than batch 1 can be tried'
expect_summary lost/summary.json status prior
expect_summary lost/summary.json stop_reason error
run train --resume lost
expect_exit 0
expect_summary lost/summary.json status complete
expect_same val/submission.csv lost/submission.csv

it "looks for the learning rate with the smaller batch too"
refusing 4 train "${small[@]}" --epochs 1 --batch 8 --lr auto --out lr
expect_exit 0
expect_out '^batch 4 x 2 instead of 8 x 1, from the start: '
expect_out '^lr [0-9.e-]+: '
expect_numbers lr 4

it "neither hangs nor crashes at any limit of the address space"
# limited ARGUMENTS...: as run, with so many megabytes.
limited() {
    run_any bash -c 'ulimit -v $1; shift; exec "$@"' - $((megabytes << 10)) "$STOKER" "$@"
}
# Without memory OpenBLAS hangs and fontconfig crashes. OpenBLAS may do so before main(): such limits
# are passed over. It has no threads here: when it cannot start one of many it sends itself SIGINT.
export OPENBLAS_NUM_THREADS=1
apart=80
! is_full || apart=40
for megabytes in $(seq 180 "$apart" 500); do
    RUN_TIMEOUT=60 limited --version
    [ "$CODE" = 0 ] || continue
    limited train "${small[@]}" --epochs 1 --batch 8 --out limited
    case $CODE in
    0) ;;
    4) expect_err 'memory|thread' ;;
    *) fail "exit code $CODE with $megabytes MB of address space: $(tail -n 1 "$ERR")" ;;
    esac
    rm -rf limited
done
finish
