#!/usr/bin/env bash
# `stoker run` and the batch size: a scripted training and a fake GPU, and the batch that is tried next.
# Mostly waits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/supervised.sh
. "$ROOT/tests/cli/supervised.sh"

it "sees a GPU that is a script"
take_scripted_gpu

# Steps take 100 ms and 0.2 ms an image: 64 images are 1.9 times as fast as 32. A batch of 256 is too much.
SLOW='--step-s 0.1 --image-s 0.0002 --memory-per-image 1e8'

it "doubles the batch while that makes it faster, by a variable"
# shellcheck disable=SC2086  # several words
BATCH_SIZE=32 supervise_gpu --budget 150s --reserve 5% --batch-env BATCH_SIZE --predict 'echo predicted' -- \
    python3 -u "$TRAIN" $SLOW --exit-after 5
expect_exit 0
expect_out '^predicted$'
expect "32, 64, 128 were tried" test "$(attempts '{part} {batch}' | grep train | tr '\n' ',')" = 'train 32,train 64,train 128,'
expect "the last one is told" test "$(summary batch)" = 128
expect_err 'GPU memory 13 %'

it "takes a batch back that there is no memory for"
supervise_gpu --budget 150s --batch-arg --batch-size -- \
    python3 -u "$TRAIN" --step-s 0.03 --oom-above 64 --util 20 --exit-after 5 --batch-size 64
expect_exit 0
expect "64, 128 and 64 again" test "$(attempts '{batch}' | tr '\n' ',')" = '64,128,64,'
expect "why is told" test "$(attempts '{stop_reason}' | tr '\n' ',')" = 'batch,memory,done,'

it "takes a batch back that is not faster, and puts the configuration back"
printf '{"model": "net",\n "batch_size":  32,\n "epochs": 3}\n' >c.json
cp c.json before.json
supervise_gpu --budget 150s --batch-key batch_size --config-file c.json -- \
    python3 -u "$TRAIN" --config c.json --step-s 0.0 --image-s 0.001 --best-batch 32 --memory-per-image 1e7 --util 30 --exit-after 5
expect_exit 0
expect "32, 64 and 32 again" test "$(attempts '{batch} {kept}' | tr '\n' ',')" = '32 False,64 False,32 False,'
expect_same c.json before.json

it "halves a first batch that there is no memory for"
supervise_gpu --batch-arg --batch-size -- python3 -u "$TRAIN" --util 90 --batch-size 300 --exit-after 1
expect_exit 0
expect "300 and 150" test "$(attempts '{batch}' | tr '\n' ',')" = '300,150,'

it "raises the workers and never the batch when the input limits"
supervise_gpu --budget 150s --batch-env BATCH_SIZE --workers-env NUM_WORKERS -- \
    python3 -u "$TRAIN" --feeders 1 --util 20 --exit-after 5.5
expect_exit 0
expect "the batch is the same" test "$(attempts '{batch}' | sort -u)" = 32
expect "the workers are more" test "$(attempts '{workers}' | sort -nu | tail -1)" -gt 0

it "refuses one name for batch and workers"
run run --out run --batch-env SIZE --workers-env SIZE -- true
expect_exit 2
expect_err 'SIZE cannot be the batch size and the number of workers at once'

finish
