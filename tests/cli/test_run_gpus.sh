#!/usr/bin/env bash
# `stoker run` and what it sees of a GPU: one that works late, hard or not at all, and one that is not left.
# Mostly waits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/supervised.sh
. "$ROOT/tests/cli/supervised.sh"

it "sees a GPU that is a script"
take_scripted_gpu

it "looks again when the GPU begins to work after the grace time"
# shellcheck disable=SC2016  # the shell that is run expands it
supervise_gpu --budget 150s --grace 1s --check-after 1s --batch-env BATCH_SIZE -- \
    sh -c '[ ! -e slept ] || exit 0; : >slept; sleep 4; exec python3 -u "$TRAIN" --util 10 --exit-after 20'
expect_exit 0
expect_err 'the GPU is not used'
expect "64 is tried" test "$(attempts '{batch}' | tr '\n' ',')" = '32,64,'

it "leaves a GPU alone that is busy"
supervise_gpu --batch-env BATCH_SIZE -- python3 -u "$TRAIN" --util 85 --exit-after 5
expect_exit 0
expect_err 'batch 32 stays: GPU memory'
expect "one attempt" test "$(attempts '{batch}' | tr '\n' ',')" = '32,'

it "says plainly that the GPU is not used"
supervise_gpu --grace 1s -- env -u FAKE_NVML python3 -u "$TRAIN" --exit-after 5
expect_exit 0
expect_err 'the GPU is not used'

it "takes for the command's what is held more than before where processes are not told"
supervise_gpu --quiet -- sh -c 'sed "s/^memory_used.*/memory_used 5000000000/; s/^util.*/util 50/" gpu >new; echo processes >>new; mv new gpu; sleep 2.5'
expect_exit 0
expect "4 GB" test "$(attempts '{gpu_memory_used:.0f}')" = 4000000000

it "takes a batch back with which the command hangs, whatever is done about others that do"
supervise_gpu --budget 150s --hang 3s --on-hang stop --batch-env BATCH_SIZE -- \
    python3 -u "$TRAIN" --util 20 --hang-above 32 --exit-after 5
expect_exit 0
expect "32, 64 and 32 again" test "$(attempts '{batch} {stop_reason}' | tr '\n' ',')" = '32 batch,64 hang,32 done,'
expect_err 'batch 64: it hung'
expect_err 'the GPU has 6.4 GB more in use than at the start'

finish
