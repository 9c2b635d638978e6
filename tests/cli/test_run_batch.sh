#!/usr/bin/env bash
# `stoker run` and the batch size: a GPU that a scripted training draws, and what is made of it.
# Measures no time.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

TRAIN="$ROOT/tests/children/train.py"
FAKES=$(dirname "$STOKER")/tests/emulated
it "sees a GPU that is a script"
if ! command -v python3 >/dev/null; then
    skip "there is no python3"
    finish
elif [ ! -e "$FAKES/libnvidia-ml.so.1" ]; then
    skip "the stand-in for NVML was not built"
    finish
fi
export PYTHONDONTWRITEBYTECODE=1 STOKER_CUDA_LIBS=$FAKES FAKE_NVML=$WORK/gpu
unset CUDA_VISIBLE_DEVICES

# A GPU that nobody uses.
idle_gpu() {
    printf 'bus 0000:19:00.0\nutil 0\nmemory_used 1000000000\nmemory_total 24000000000\n' >gpu
}

summary() {
    python3 -c 'import json, sys; print(json.load(open("run/summary.json"))[sys.argv[1]])' "$1"
}

attempts() {
    python3 -c 'import json, sys
for a in json.load(open("run/summary.json"))["attempts"]: print(sys.argv[1].format(**a))' "$1"
}

supervise() {
    rm -rf run
    idle_gpu
    run run --out run --check-after 2s --grace 30s "$@"
    expect_json run/summary.json
}

# Steps take 20 ms and 0.2 ms an image: 64 images are 1.6 times as fast as 32. A batch of 256 is too much.
SLOW='--step-s 0.02 --image-s 0.0002 --memory-per-image 1e8'

it "doubles the batch while that makes it faster, by a variable"
# shellcheck disable=SC2086  # several words
BATCH_SIZE=32 supervise --budget 60s --reserve 5% --batch-env BATCH_SIZE --predict 'echo predicted' -- \
    python3 -u "$TRAIN" $SLOW --exit-after 7
expect_exit 0
expect_out '^predicted$'
expect "32, 64, 128 were tried" test "$(attempts '{part} {batch}' | grep train | tr '\n' ',')" = 'train 32,train 64,train 128,'
expect "the last one is told" test "$(summary batch)" = 128
expect_err 'GPU memory 13 %'

it "takes a batch back that there is no memory for"
supervise --budget 60s --batch-arg --batch-size -- \
    python3 -u "$TRAIN" --step-s 0.03 --oom-above 64 --util 20 --exit-after 7 --batch-size 64
expect_exit 0
expect "64, 128 and 64 again" test "$(attempts '{batch}' | tr '\n' ',')" = '64,128,64,'
expect "why is told" test "$(attempts '{stop_reason}' | tr '\n' ',')" = 'batch,memory,done,'

it "takes a batch back that is not faster, and puts the configuration back"
printf 'model: net\nbatch_size: 32  # as in the paper\nepochs: 3\n' >c.yaml
cp c.yaml before.yaml
supervise --budget 60s --batch-key batch_size --config-file c.yaml -- \
    python3 -u "$TRAIN" --config c.yaml --step-s 0.0 --image-s 0.001 --memory-per-image 1e7 --util 30 --exit-after 7
expect_exit 0
expect "32, 64 and 32 again" test "$(attempts '{batch} {kept}' | tr '\n' ',')" = '32 False,64 False,32 False,'
expect_same c.yaml before.yaml

it "halves a first batch that there is no memory for"
supervise --batch-arg --batch-size -- python3 -u "$TRAIN" --util 90 --batch-size 300 --exit-after 1
expect_exit 0
expect "300 and 150" test "$(attempts '{batch}' | tr '\n' ',')" = '300,150,'

it "raises the workers and never the batch when the input limits"
supervise --budget 60s --batch-env BATCH_SIZE --workers-env NUM_WORKERS -- \
    python3 -u "$TRAIN" --feeders 2 --util 20 --exit-after 7
expect_exit 0
expect "the batch is the same" test "$(attempts '{batch}' | sort -u)" = 32
expect "the workers are more" test "$(attempts '{workers}' | sort -nu | tail -1)" -gt 0

it "only says what it would do with --dry-run"
supervise --dry-run --batch-env BATCH_SIZE -- python3 -u "$TRAIN" --util 10 --exit-after 5.5
expect_exit 0
expect_err 'would start again: batch 64'
expect "one attempt" test "$(attempts '{batch}' | tr '\n' ',')" = '32,'

it "does not start again with --dry-run either when the command crashes"
supervise --dry-run --batch-env BATCH_SIZE -- python3 -u "$TRAIN" --util 10 --crash-after 5.5
expect_exit 1
expect_err 'would start again: batch 64'
expect "one attempt" test "$(attempts '{batch} {stop_reason}' | tr '\n' ',')" = '32 crash,'

it "sees that a batch was told and not taken"
supervise --budget 60s --check-after 1s --batch-env NOT_ITS_BATCH -- python3 -u "$TRAIN" --util 10 --exit-after 5
expect_exit 0
expect "64 is tried once, and taken back" test "$(attempts '{batch} {kept}' | tr '\n' ',')" = '32 False,32 False,32 False,'
expect_err 'told batch 64 and still says 32'

it "takes a batch back with which the command hangs, whatever is done about others that do"
supervise --budget 60s --check-after 1s --hang 3s --on-hang stop --batch-env BATCH_SIZE -- \
    python3 -u "$TRAIN" --util 20 --hang-above 32 --exit-after 5
expect_exit 0
expect "32, 64 and 32 again" test "$(attempts '{batch} {stop_reason}' | tr '\n' ',')" = '32 batch,64 hang,32 done,'
expect_err 'batch 64: it hung'

it "goes on as it can where the command cannot be told, and predicts"
echo 'batch_size: 32' >c.yaml
# shellcheck disable=SC2016  # for the shell that is started
supervise --budget 60s --check-after 1s --batch-key batch_size --config-file c.yaml --predict 'echo predicted' -- \
    sh -c 'echo "epochs: 3" >c.yaml; exec python3 -u "$0" --util 10 --exit-after 5' "$TRAIN"
expect_exit 0
expect_out '^predicted$'
expect_err 'batch 64 cannot be told to the command'
expect "32 twice" test "$(attempts '{part} {batch}' | tr '\n' ',')" = 'train 32,train 32,predict None,'
expect "the file is as somebody else left it" grep -q epochs c.yaml

it "looks again when the GPU begins to work after the grace time"
# shellcheck disable=SC2016  # for the shell that is started
supervise --budget 60s --grace 1s --check-after 1s --batch-env BATCH_SIZE -- \
    sh -c 'sleep 4; exec python3 -u "$0" --util 10 --oom-above 64 --exit-after 5' "$TRAIN"
expect_exit 0
expect_err 'the GPU is not used'
expect "64 is tried" test "$(attempts '{batch}' | sed -n 2p)" = 64

it "leaves a GPU alone that is busy"
supervise --batch-env BATCH_SIZE -- python3 -u "$TRAIN" --util 85 --exit-after 5.5
expect "one attempt" test "$(attempts '{batch}' | tr '\n' ',')" = '32,'

it "says plainly that the GPU is not used"
supervise --grace 1s --check-after 2s -- env -u FAKE_NVML python3 -u "$TRAIN" --exit-after 5.5
expect_exit 0
expect_err 'the GPU is not used'

it "takes for the command's what is held more than before where processes are not told"
supervise --quiet -- sh -c 'sed "s/^memory_used.*/memory_used 5000000000/; s/^util.*/util 50/" gpu >new; echo processes >>new; mv new gpu; sleep 2.5'
expect_exit 0
expect "4 GB" test "$(attempts '{gpu_memory_used:.0f}')" = 4000000000

it "does not take what one start said last for the words of the next"
export TRAIN
# shellcheck disable=SC2016  # the shell that is run expands it
BATCH_SIZE=32 supervise --budget 60s --batch-env BATCH_SIZE -- sh -c \
    '[ $BATCH_SIZE = 32 ] || { echo broken >&2; exit 9; }; exec python3 -u "$TRAIN" --util 20 --exit-after 4.1'
expect_exit 0
expect "the second failed, without a speed" test "$(attempts '{stop_reason} {images_per_second}' | sed -n 2p)" = 'crash None'

it "goes on with a command that cannot be told what was to be tried"
echo 'batch_size: 32' >gone.yaml
# shellcheck disable=SC2016  # the shell that is run expands it
supervise --budget 60s --batch-key batch_size --config-file gone.yaml --predict 'echo predicted' -- \
    sh -c 'rm -f gone.yaml; exec python3 -u "$TRAIN" --util 20 --exit-after 4.1'
expect_exit 0
expect_out '^predicted$'
expect_err 'warning: .*gone.yaml.*; nothing else is tried'
expect "stopped once, and then done" test "$(attempts '{part} {stop_reason}' | tr '\n' ',')" = 'train batch,train done,predict done,'

it "refuses one name for batch and workers"
run run --out run --batch-env SIZE --workers-env SIZE -- true
expect_exit 2
expect_err 'SIZE cannot be the batch size and the number of workers at once'

finish
