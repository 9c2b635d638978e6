#!/usr/bin/env bash
# `stoker run` over a real training of PyTorch, on the CPU, where PyTorch is installed.
# Measures no time.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

CHILDREN=$ROOT/tests/children
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
# Small enough for a busy machine to make some steps of it in seconds.
export IMAGES=320 IMG_SIZE=16 WIDTH=2 NUM_WORKERS=1 BATCH_SIZE=16

it "stops a training of PyTorch in time and predicts from what it left"
if ! python3 -c 'import torch' 2>/dev/null; then
    skip "python3 cannot import torch"
    finish
fi
run run --out run --budget 17s --reserve 50% --batch-env BATCH_SIZE --predict "python3 '$CHILDREN/torch_predict.py'" \
    --expect submission.csv -- python3 -u "$CHILDREN/torch_train.py"
expect_exit 0
expect_out '^RESOURCES: .*batch=16'
expect_out '^submission.csv written$'
expect_json run/summary.json
expect "both commands are told of" test "$(python3 -c 'import json
print([(a["part"], a["batch"], a["workers"]) for a in json.load(open("run/summary.json"))["attempts"]])')" = \
    "[('train', 16, 1), ('predict', None, None)]"
expect_file submission.csv '^199,'
expect_file run/output.log ' o  RESOURCES: '

finish
