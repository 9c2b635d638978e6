# test_gpu.sh - the command on an emulated GPU: device, precision, memory, steps that run ahead.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

build=$(dirname "$STOKER")
export XDG_CACHE_HOME=$PWD/cache
small=(--model cifar_resnet20 --img-size 16 --batch 8)

it "without a GPU gpu-test says why and ends well"
STOKER_CUDA_LIBS=$PWD/nowhere run_any "$ROOT/tools/gpu-test.sh" "$build"
expect_exit 0
expect_out '^gpu-test: skipped: --device cuda:0: '

it "takes the GPU that is there and says so"
take_emulated_gpu
run sample data --classes 2 --per-class 6 --layout kaggle
expect_exit 0
run train --data data --out r "${small[@]}" --epochs 1 --folds 1
expect_exit 0
expect_out '^cuda:0: .*\(auto: '
expect_out 'device cuda:0 \(auto\), precision fp16 \(auto\)'
expect_summary r/summary.json device cuda:0
expect_summary r/summary.json precision fp16
expect_summary r/summary.json epochs_done 1
expect_file r/submission.csv
expect_file r/weights/best.safetensors

it "goes on where it was, on the CPU too"
run train --resume r --epochs 2 --device cpu
expect_exit 0
expect_summary r/summary.json device cpu
expect_summary r/summary.json epochs_done 2
run predict --run r --device cuda --precision bf16 --deterministic --out again.csv
expect_exit 0
expect_file again.csv

it "foresees what does not fit"
run bench step --model resnet50 --batch 100000 --device cuda:0
expect_exit 4
expect_err "needs [0-9.]+ GiB of the GPU's memory and [0-9.]+ [GM]iB are free; the largest that fits is [0-9]+"
run train --data data --out r2 --device cuda:5 "${small[@]}" --epochs 1
expect_exit 4
expect_err 'cuda:5'
expect "nothing was written" [ ! -e r2 ]

finish
