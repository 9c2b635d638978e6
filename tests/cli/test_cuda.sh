# Whole runs on an emulated GPU: the device is lost, memory is short, gradients overflow, Ctrl-C; two runs
# give the same bits; kernels and tuning results are stored for the next run.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317,SC2016  # functions for wait_for; patterns
. "$(dirname "$0")/lib.sh"

it "trains on the GPU from pictures to a submission"
take_emulated_gpu
"$STOKER" sample k --layout kaggle --classes 2 --per-class 16 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
small=(--data k --device cuda:0 --img-size 16 --batch 8 --epochs 3 --workers 1)

run train "${small[@]}" --out r
expect_exit 0
expect_empty "$ERR"
expect_out '^cuda:0: Emulated GPU, .* \(given\)'
for key in device:cuda:0 precision:fp16 status:complete epochs_done:3 submission:submission.csv; do
    expect_summary r/summary.json "${key%%:*}" "${key#*:}"
done
expect_file r/events.jsonl '"event": "start".*"device": "cuda:0".*"precision": "fp16"'
expect_jsonl r/events.jsonl
expect_times r/events.jsonl
expect_file r/events.jsonl '"event": "epoch".*"update_s": [0-9.]*[1-9]'
expect_sound r k/sample_submission.csv "$labels"
expect_submission r/submission.csv k/sample_submission.csv "$labels"
expect_weights r/weights/best.safetensors
expect_tidy r

it "predicts, plans and, in soak, looks for a learning rate there"
cp r/submission.csv kept.csv
run predict --run r --device cuda:0
expect_exit 0
expect_same r/submission.csv kept.csv
if is_full; then
    run lr "${small[@]}" --out lr --steps 50
    expect "it ends with a rate, or says that there is none: $CODE" grep -q '^[03]$' <<<"$CODE"
    expect_file lr/lr.csv
fi
run plan "${small[@]}" --json
expect_exit 0
expect_out '"device": "cuda:0", "precision": "fp16", "batch": 8,'
expect_out '"workspace": 67108864,'

it "computes in float32 where that is asked for"
run train "${small[@]}" --out r32 --precision fp32 --epochs 1
expect_exit 0
expect_summary r32/summary.json precision fp32

it "does without copies and products of matrices on a GPU that is older than these"
STK_EMU_CAPABILITY=75 run train "${small[@]}" --out old --epochs 1
expect_exit 0
expect_empty "$ERR"
expect_summary old/summary.json precision fp16

it "compiles for the newest GPU that NVRTC knows where it does not know this one, and says so"
STK_EMU_CAPABILITY=145 run train "${small[@]}" --out new --epochs 1
expect_exit 0
expect_empty "$ERR"
expect_out '^cuda:0: Emulated GPU, .*, kernels for compute_121: NVRTC 13\.0 does not know sm_145 \(given\)'

it "takes what is there, and says why"
run train "${small[@]}" --out a --device auto --epochs 1
expect_exit 0
expect_out '^cuda:0: Emulated GPU, .* \(auto: '
STOKER_CUDA_LIBS=$PWD/nowhere run train "${small[@]}" --out b --device auto --epochs 1
expect_exit 0
expect_out '^cpu: .* \(auto: .*no libcu(da\.so\.1|dnn\.so\.9)' # NVIDIA's driver has the first
expect_summary b/summary.json device cpu
run train "${small[@]}" --out c --device cuda:7
expect_exit 4
expect_err 'no GPU number 7: there is one, number 0'
expect_no_file c

# The launch that fails is one of the second epoch.
it "a GPU that is lost ends the run, and --resume goes on"
STK_EMU_FAIL=launch:200 run train "${small[@]}" --out lost
expect_exit 4
expect_err 'the GPU was lost with all that it held: .* failed: .*CUDA_ERROR_LAUNCH_FAILED'
expect_err 'what was learnt up to epoch 1 is kept: `stoker train --resume lost` goes on from there'
expect "one sentence: $(cat "$ERR")" [ "$(wc -l <"$ERR")" = 1 ]
for key in status:failed stop_reason:error epochs_done:1 submission:submission.csv; do
    expect_summary lost/summary.json "${key%%:*}" "${key#*:}"
done
expect_sound lost k/sample_submission.csv "$labels"
expect_submission lost/submission.csv k/sample_submission.csv "$labels"
expect "one epoch is told" [ "$(wc -l <lost/results.csv)" = 2 ]
expect_weights lost/weights/best.safetensors
expect_weights lost/weights/last.safetensors
expect_tidy lost
cp lost/weights/best.safetensors first
run predict --run lost --out predicted.csv
expect_exit 0
run train --resume lost
expect_exit 0
expect_out '^goes on at epoch 2, step 1: resumed'
expect_summary lost/summary.json status complete
expect_summary lost/summary.json epochs_done 3

it "a GPU that is lost at any moment costs no more than what came after the last epoch"
for launch in 1 160 400; do
    rm -rf any
    STK_EMU_FAIL=launch:$launch run train "${small[@]}" --out any
    expect_exit 4
    expect_err 'the GPU was lost with all that it held'
    expect_err '--resume any'
    expect_summary any/summary.json status failed
    expect_sound any k/sample_submission.csv "$labels"
    expect_tidy any
done
run train --resume any # predicting was all that was left
expect_exit 0
expect_summary any/summary.json status complete
expect_submission any/submission.csv k/sample_submission.csv "$labels"

it "the verbs without a run folder say it too"
STK_EMU_FAIL=launch:50 run bench step --model convnet_s --img-size 16 --batch 4 --seconds 0 --device cuda:0
expect_exit 4
expect_err 'the GPU was lost'
STK_EMU_FAIL=launch:20 run predict --run r --device cuda:0 --out predicted.csv
expect_exit 4
expect_err 'the GPU was lost'
STK_EMU_FAIL=launch:50 run lr "${small[@]}" --out lr
expect_exit 4
expect_err 'the GPU was lost'

# A batch that does not fit was refused; it now becomes smaller ones that are the same update.
it "a batch that does not fit is divided into steps, or refused where not even one picture fits"
wide=(--data k --device cuda:0 --img-size 32 --epochs 1 --workers 1 --deterministic)
STK_EMU_MEMORY=140M run train "${wide[@]}" --out wide --batch 26 --lr 0.1
expect_exit 0
expect_out '^batch 13 x 2: 26 at a time need [0-9]+ MB of memory and 14[0-9] MB are free; gradients are added up to 26 images an update$'
expect_summary wide/summary.json batch 13
expect_file wide/args.yaml '^accumulate: 2  # keeps the images of an update'
expect_file wide/args.yaml '^lr: 0\.1$'
run train --resume wide --epochs 2
expect_exit 0
expect_out 'batch 13 \(run\), accumulate 2 \(run\)'
run train --resume wide --epochs 3 --assume-memory 139M
expect_exit 0
expect_out '^batch 3 x 9: there was no memory for 13$'
expect_summary wide/summary.json batch 3
run train --resume wide --epochs 4 --assume-memory 32M
expect_exit 4
expect_err 'batch 3 of convnet_s at 32 px needs .*, or more --assume-memory'
STK_EMU_MEMORY=32M run train "${wide[@]}" --out wider --batch 1
expect_exit 4
expect_err "batch 1 of convnet_s at 32 px needs [0-9]+ MiB of the GPU's memory and 3[0-9] MiB are free"
expect_err 'not even one picture fits'
expect_no_file wider

# Parameters, validation and training take memory in this order; the network that validates predicts, too.
it "memory that somebody else took meanwhile is told, and half the batch is used"
STK_EMU_FAIL=memory:1 run train "${small[@]}" --out taken
expect_exit 4
expect_err 'the GPU has no memory left'
expect_no_file taken
for taken in 2:validation 3:'batch 4 x 2 instead of 8 x 1,'; do
    rm -rf taken
    STK_EMU_FAIL=memory:${taken%%:*} run train "${small[@]}" --epochs 1 --out taken
    expect_exit 0
    expect_empty "$ERR"
    expect_out "^${taken#*:} .*of the GPU's memory, and [0-9.]+ MiB are free now"
    expect_summary taken/summary.json status complete
done
STK_EMU_FAIL=memory:2 run predict --run taken --device cuda:0 --out taken.csv
expect_exit 0
expect_out "^prediction .*of the GPU's memory, and [0-9.]+ MiB are free now"

# step_without_memory LINE BATCH OPTIONS...: a step that finds no memory is done again, which LINE says.
step_without_memory() {
    rm -rf taken
    STK_EMU_CHECK=1 STK_EMU_FAIL=graph:18 run train "${small[@]}" "${@:3}" --out taken
    expect_exit 0
    expect_empty "$ERR"
    expect_out "^$1: launching a step failed: the GPU has no memory left$"
    expect_summary taken/summary.json status complete
    expect_summary taken/summary.json batch "$2"
    expect_sound taken k/sample_submission.csv "$labels"
}

it "a step of epoch 3 that finds no memory is done again with half the batch"
step_without_memory 'batch 4 x 2 instead of 8 x 1, from step 1 of epoch 3' 4

it "networks that are kept for later are given up before the batch is halved"
step_without_memory 'batch 8 x 1 again, without networks kept for later, from step 1 of epoch [23]' 8 --freeze-epochs 1

it "nothing is lost when not even the smallest batch fits"
rm -rf taken
STK_EMU_FAIL=memory:4+ run train "${small[@]}" --freeze-epochs 2 --out taken
expect_exit 4
expect_err 'nothing smaller than batch [12] can be tried: .*; what was learnt up to epoch 2 is kept'
expect_summary taken/summary.json status prior
expect_sound taken k/sample_submission.csv "$labels"
run train --resume taken
expect_exit 0
expect_summary taken/summary.json status complete

# scale RUN BYTE: sets the loss scale that a resume begins with; BYTE is the highest of a float32. The
# file's checksum gets another name, as if an older version had written it.
scale() {
    local file=$1/state/train.safetensors length at
    length=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
    at=$(tail -c +9 "$file" | head -c "$length" |
        sed -E 's/.*"extras"[^}]*"data_offsets": *\[([0-9]+).*/\1/')
    printf '\000\000\000%b' "\\0$2" |
        dd of="$file" bs=1 seek=$((8 + length + at)) conv=notrunc 2>/dev/null
    LC_ALL=C sed -i '0,/"checksum"/s//"_hecksum"/' "$file"
}

it "--deterministic gives the same bits twice, whole or in parts"
exact=("${small[@]}" --deterministic --save-every 0 --epochs 2)
run train "${exact[@]}" --out d1
expect_exit 0
run train "${exact[@]}" --out d2
expect_exit 0
expect_same d1/weights/last.safetensors d2/weights/last.safetensors
STK_EMU_FAIL=launch:220 run train "${exact[@]}" --out d3
expect_exit 4
expect_err 'what was learnt up to step [12] of epoch 2 is kept'
cp -r d3 d4
run train --resume d3
expect_exit 0
expect_same d1/weights/last.safetensors d3/weights/last.safetensors
expect_same d1/weights/best.safetensors d3/weights/best.safetensors

it "gradients that overflow are left out until the loss scale fits, across a resume too"
scale d4 113 # 2^25, from where it falls to below 2^18
! is_full || cp -r d4 d5
run train --resume d4 --epochs 5
expect_exit 0
expect_out '^loss scale [0-9.e+]+: [0-9]+ updates? (was|were) left out: gradients left the range of fp16'
expect_summary d4/summary.json status complete
expect "the losses are numbers" awk -F , 'NR > 1 && !($3 > 0 && $3 < 10) { exit 1 }' d4/results.csv
if is_full; then
    STK_EMU_FAIL=launch:190 run train --resume d5 --epochs 5
    expect_exit 4
    expect_err 'of epoch [345] is kept'
    run train --resume d5
    expect_exit 0
    expect_same d4/weights/last.safetensors d5/weights/last.safetensors
fi

# counts: what the last `bench step --json` made and found.
counts() {
    grep -Eo '"(kernels|plans)_[a-z]+": [0-9]+' "$OUT" | sed 's/.*: //' | tr '\n' ' '
}

it "the second start compiles and times nothing"
step=(bench step --model convnet_s --img-size 16 --batch 4 --seconds 0 --device cuda:0 --json)
XDG_CACHE_HOME=$PWD/anew run "${step[@]}"
expect_exit 0
first=$(counts)
expect "kernels were compiled and plans timed: $first" \
    grep -Eq '^[1-9][0-9]* 0 [1-9][0-9]* 0 $' <<<"$first"
XDG_CACHE_HOME=$PWD/anew run "${step[@]}"
expect_exit 0
expect "nothing was made: $(counts)" grep -Eq '^0 [1-9][0-9]* 0 [1-9][0-9]* $' <<<"$(counts)"
expect_empty "$ERR"

it "a folder that cannot be written to is said once and does no harm"
touch plain
XDG_CACHE_HOME=$PWD/plain run "${step[@]}" --batch 4,5
expect_exit 0
expect "once: $(cat "$ERR")" [ "$(grep -c 'the next start compiles and times all of it again: ' "$ERR")" = 1 ]
if is_full; then
    XDG_CACHE_HOME=$PWD/plain run train "${small[@]}" --out ro --epochs 1
    expect_exit 0
    expect "once" [ "$(grep -c 'the next start compiles and times all of it again: ' "$OUT")" = 1 ]
fi

# A network whose plans take a while to be timed.
slow=(train --data k --device cuda:0 --model resnet18 --img-size 32 --batch 8 --epochs 3 --workers 1)
is_saved() { [ -e "$1/state/train.safetensors" ]; }
has_plans() { [ "$(find "$1" -type f | wc -l)" -gt 20 ]; }

it "Ctrl-C while kernels are compiled and plans are timed ends at once"
for moment in is_saved has_plans; do
    rm -rf i ci
    XDG_CACHE_HOME=$PWD/ci start "${slow[@]}" --out i
    wait_for 60 is_saved i || fail "it has not begun"
    [ "$moment" = is_saved ] || wait_for 60 has_plans ci || fail "no plan was made"
    kill -INT "$PID"
    ended 60
    expect_exit 0
    expect_summary i/summary.json stop_reason signal
    expect_summary i/summary.json status prior
    expect_submission i/submission.csv k/sample_submission.csv "$labels"
    expect_tidy i
done

it "Ctrl-C while it trains keeps the best and predicts"
start train "${small[@]}" --epochs 1000 --recipe plain --out i2
wait_for 60 grep -q '"event": "epoch", "fold": 0, "epoch": 8,' i2/events.jsonl || fail "no eight epochs were done"
kill -INT "$PID"
ended 60
expect_exit 0
expect_summary i2/summary.json stop_reason signal
expect_summary i2/summary.json status partial
expect_weights i2/weights/best.safetensors
expect_submission i2/submission.csv k/sample_submission.csv "$labels"

it "Ctrl-C ends the measurement of a step and the search for a rate"
rm -rf ci
XDG_CACHE_HOME=$PWD/ci start bench step --model resnet18 --img-size 32 --batch 8 --device cuda:0 --seconds 1000
wait_for 60 has_plans ci || fail "no plan was made"
kill -INT "$PID"
ended 60
expect_exit 130
rm -rf ci
XDG_CACHE_HOME=$PWD/ci start lr "${slow[@]:1}" --out lri
wait_for 60 has_plans ci || fail "no plan was made"
kill -INT "$PID"
ended 60
expect_exit 130

it "a budget that is over while plans are timed still delivers"
XDG_CACHE_HOME=$PWD/cb run "${slow[@]}" --out late --budget 2s
expect_exit 0
expect_summary late/summary.json stop_reason budget
expect_submission late/submission.csv k/sample_submission.csv "$labels"

finish
