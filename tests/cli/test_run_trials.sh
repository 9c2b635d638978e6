#!/usr/bin/env bash
# `stoker run` and trials that do not happen or go wrong: only said, not taken, not to be told, broken.
# Mostly waits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/supervised.sh
. "$ROOT/tests/cli/supervised.sh"

it "sees a GPU that is a script"
take_scripted_gpu

it "only says what it would do with --dry-run"
supervise_gpu --dry-run --batch-env BATCH_SIZE -- python3 -u "$TRAIN" --util 10 --exit-after 5
expect_exit 0
expect_err 'would start again: batch 64'
expect "one attempt" test "$(attempts '{batch}' | tr '\n' ',')" = '32,'

it "does not start again with --dry-run either when the command crashes"
supervise_gpu --dry-run --batch-env BATCH_SIZE -- python3 -u "$TRAIN" --util 10 --crash-after 5
expect_exit 1
expect_err 'would start again: batch 64'
expect "one attempt" test "$(attempts '{batch} {stop_reason}' | tr '\n' ',')" = '32 crash,'

it "sees that a batch was told and not taken"
supervise_gpu --budget 60s --batch-env NOT_ITS_BATCH -- python3 -u "$TRAIN" --util 10 --exit-after 5
expect_exit 0
expect "64 is tried once, and taken back" test "$(attempts '{batch} {kept}' | tr '\n' ',')" = '32 False,32 False,32 False,'
expect_err 'ignored the requested batch 64 and ran with its previous one, 32'

it "goes on as it can where the command cannot be told, and predicts"
echo '{"batch_size": 32}' >c.json
# shellcheck disable=SC2016  # the shell that is run expands it
supervise_gpu --budget 60s --batch-key batch_size --config-file c.json --predict 'echo predicted' -- \
    sh -c 'echo "epochs: 3" >c.json; exec python3 -u "$TRAIN" --util 10 --exit-after 5'
expect_exit 0
expect_out '^predicted$'
expect_err 'batch 64 could not be set for the command'
expect "32 twice" test "$(attempts '{part} {batch}' | tr '\n' ',')" = 'train 32,train 32,predict None,'
expect "the file is as somebody else left it" grep -q epochs c.json

it "does not take what one start said last for the words of the next"
# shellcheck disable=SC2016  # the shell that is run expands it
BATCH_SIZE=32 supervise_gpu --budget 60s --batch-env BATCH_SIZE -- sh -c \
    '[ $BATCH_SIZE = 32 ] || { echo broken >&2; exit 9; }
    [ ! -e spoken ] || exit 0
    : >spoken; exec python3 -u "$TRAIN" --util 20 --exit-after 20'
expect_exit 0
expect "the second failed, without a speed" test "$(attempts '{stop_reason} {images_per_second}' | sed -n 2p)" = 'crash None'
expect "the third is done" test "$(attempts '{stop_reason}' | tr '\n' ',')" = 'batch,crash,done,'

it "goes on with a command that cannot be told what was to be tried"
echo '{"batch_size": 32}' >gone.json
# shellcheck disable=SC2016  # the shell that is run expands it
supervise_gpu --budget 60s --batch-key batch_size --config-file gone.json --predict 'echo predicted' -- \
    sh -c 'rm gone.json || exit 0; exec python3 -u "$TRAIN" --util 20 --exit-after 20'
expect_exit 0
expect_out '^predicted$'
expect_err 'warning: batch 64 could not be set for the command: .*gone.json'
expect "stopped once, and then done" test "$(attempts '{part} {stop_reason}' | tr '\n' ',')" = 'train batch,train done,predict done,'

finish
