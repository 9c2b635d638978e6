#!/usr/bin/env bash
# `stoker run` over a real training of PyTorch, on the CPU, where PyTorch is installed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/supervised.sh
. "$ROOT/tests/cli/supervised.sh"

CHILDREN=$ROOT/tests/children
export OMP_NUM_THREADS=1
# Small enough for a busy machine to make some steps of it in seconds.
export IMAGES=320 IMG_SIZE=16 WIDTH=2 NUM_WORKERS=1 BATCH_SIZE=16

it "stops a training of PyTorch in time and predicts from what it left"
if ! python3 -c 'import torch' 2>/dev/null; then
    skip "python3 cannot import torch"
    finish
fi
supervise --budget 40s --reserve 50% --batch-env BATCH_SIZE --predict "python3 '$CHILDREN/torch_predict.py'" \
    --expect submission.csv -- python3 -u "$CHILDREN/torch_train.py"
expect_exit 0
expect_out '^RESOURCES: .*batch=16'
expect_out '^submission.csv written$'
expect "both commands are told of" test "$(attempts '{part} {batch} {workers}' | tr '\n' ',')" = 'train 16 1,predict None None,'
expect_file submission.csv '^199,'
expect_file run/output.log ' o  RESOURCES: '

finish
