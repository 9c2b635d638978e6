# The batch size that Stoker chooses, on an emulated GPU and on a CPU: when memory is short, and with
# --assume-memory. The tests do not check which batch is fastest: that depends on the emulator.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --classes 2 --per-class 150 --quiet || exit 1 # 15 batches of 16
"$STOKER" sample few --layout kaggle --classes 2 --per-class 20 --quiet || exit 1
cpu=(--data k --device cpu --img-size 16 --epochs 1 --workers 1)

it "on a CPU it is the rule's, without a clock and without a line of its own"
run train "${cpu[@]}" --out c
expect_exit 0
expect_out ', batch 16 \(auto\), '
expect "no other word" [ "$(grep -c '^batch' "$OUT")" = 0 ]

it "on a CPU the plan goes by memory that is assumed"
run train "${cpu[@]}" --out small --assume-memory 1M
expect_exit 4
expect_err "of this machine's memory and .* not even one picture fits: .*, or more --assume-memory"
expect_no_file small

it "where the memory is short validation has fewer pictures at a time, before training has"
waits=(LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US=2000) # speed is measured for seconds, and does not matter
! is_sanitized || waits=()
run_any env "${waits[@]}" "$STOKER" plan "${cpu[@]}" --data few --img-size 64 --batch 8 --json
expect_exit 0
need=$(sed -n -E 's/.*"inference": ([0-9]+), "total": ([0-9]+), .*/\1 \2/p' "$OUT")
# As much as all of it but half of what inference takes, and a tenth of the machine's own.
least=$(awk -v need="$need" 'BEGIN { split(need, n, " "); printf "%.0f", (n[2] - n[1] / 2) * 1.15 }')
run train "${cpu[@]}" --data few --out fewer --img-size 64 --batch 8 --assume-memory "$least"
expect_exit 0
expect_out '^batch 8: validation has (8|16|32) at a time: there is no memory for more$'
expect_summary fewer/summary.json status complete
expect_summary fewer/summary.json batch 8
run train "${cpu[@]}" --data few --out auto --img-size 64 --assume-memory $((least * 2 / 3))
expect_exit 0
expect_out '^batch [24] x [24]: gradients are added up to 8 images an update; validation has [248] at a time; memory [0-9]+ %: '
expect_summary auto/summary.json status complete

it "refuses what is no policy and no size"
run plan "${cpu[@]}" --batch-policy empty
expect_exit 2
expect_err 'batch-policy'
run plan "${cpu[@]}" --assume-memory much
expect_exit 2
expect_err 'assume-memory'

it "on a GPU it is measured, once there is a submission, and said in one line"
take_emulated_gpu
gpu=(--data k --device cuda:0 --img-size 16 --epochs 1 --workers 1)
run train "${gpu[@]}" --out r
expect_exit 0
expect_empty "$ERR"
expect_out '^model .*, batch to be measured \(auto\), .*, lr by the batch \(default\), '
expect_out '^batch (8|16): [0-9]+ images/s, .*the best of 2 batches measured in [0-9.]+ s; memory [0-9.]+ %: a larger batch would (not be faster|leave an epoch fewer than 15 steps)$'
expect_out '^lr 0\.0(15625|3125): the default for (8|16) images an update$'
expect "the submission is older" awk '/^submission: r\// { s = 1 } /^batch/ { exit !s }' "$OUT"
batch=$(sed -n -E 's/^batch ([0-9]+):.*/\1/p' "$OUT")
expect_summary r/summary.json batch "$batch"
expect_file r/args.yaml "^batch: $batch  # auto"
run train --resume r --epochs 2
expect_exit 0
expect_out "batch $batch \\(run\\)"
expect "it is not measured again" [ "$(grep -c 'images/s, ' "$OUT")" = 0 ]

it "plan says the same, in JSON too"
run plan "${gpu[@]}" --json
expect_exit 0
expect_json "$OUT"
expect_out '"batch": (8|16), "accumulate": 1, "batch_why": "[0-9]+ images/s, .*", "batches_measured": \[\{"batch": 16, "images_per_second": [0-9.]+\}, \{"batch": 8, "images_per_second": [0-9.]+\}\]'

it "says why it is not measured"
run plan "${gpu[@]}" --budget 30s
expect_exit 0
expect_out '^batch 16: not measured: [0-9]+ s are too short a time for it; memory '

it "fills the memory as far as the data set goes"
run plan "${gpu[@]}" --budget 30s --batch-policy fill
expect_exit 0
expect_out '^batch 16: memory [0-9.]+ %: a larger batch would leave an epoch fewer than 15 steps$'
if is_full; then
    run train "${gpu[@]}" --out f --batch-policy fill
    expect_exit 0
    expect_summary f/summary.json batch 16
fi

it "memory that is assumed makes the batch smaller, and accumulation keeps the update"
run plan "${gpu[@]}" --assume-memory 160M
expect_exit 0
expect_out '^cuda:0: Emulated GPU, 2\.0 GiB, held to 0\.156 GiB, '
expect_out '^batch 8 x 2: gradients are added up to 16 images an update; memory 8[0-9] %: a larger batch needs more than 85 %'

it "where not even one picture fits it is refused"
run train "${gpu[@]}" --out b --assume-memory 32M
expect_exit 4
expect_err "needs [0-9]+ MiB of the GPU's memory and 3[0-9] MiB are free; not even one picture fits: use a smaller --img-size, or more --assume-memory"
expect_no_file b
run bench step --model convnet_s --img-size 32 --batch 64 --device cuda:0 --assume-memory 32M
expect_exit 4
expect_err 'and 3[0-9] MiB are free'

it "memory that somebody else took while batches are measured costs the measurement alone"
STK_EMU_FAIL=memory:2 run train "${gpu[@]}" --out taken
expect_exit 0
expect_out '^batch 16: not measured: the device could not do it; memory '
expect_summary taken/summary.json status complete

it "a GPU that is lost while batches are measured still leaves a submission"
STK_EMU_FAIL=launch:30 run train "${gpu[@]}" --out lost
expect_exit 4
expect_err 'the GPU was lost'
expect_file lost/submission.csv
expect_summary lost/summary.json status failed

finish
