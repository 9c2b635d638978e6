# test_bench_step.sh - `stoker bench step`: figures for people and programs, lists of batches, errors.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"

small=(--model convnet_s --img-size 16 --classes 10 --seconds 0)

# figure KEY LINE: the value of a key in that line of $OUT.
figure() {
    sed -n "$2p" "$OUT" | sed -n -E 's/.*"'"$1"'": ("[^"]*"|[^,}]*).*/\1/p'
}

it "prints one object a batch for programs"
run bench step "${small[@]}" --batch 2,5 --json
expect_exit 0
expect_empty "$ERR"
expect "there are two lines and the knee" [ "$(wc -l <"$OUT")" = 3 ]
for key in images_per_second ms_per_step bytes warmup_s arena_bytes rss_bytes steps windows threads \
    traffic_bytes; do
    expect "$key is above 0: $(figure "$key" 1)" \
        awk -v x="$(figure "$key" 1)" 'BEGIN { exit !(x + 0 > 0) }'
done
expect "the model is told" [ "$(figure model 2)" = '"convnet_s"' ]
expect "the batches are told" [ "$(figure batch 1) $(figure batch 2)" = "2 5" ]
expect "the size is told" [ "$(figure img_size 1)" = 16 ]
expect "the device is told" [ "$(figure device 1)" = '"cpu"' ]
expect "the precision is told" [ "$(figure precision 1)" = '"fp32"' ]
expect "the bandwidth of a CPU is not known" [ "$(figure traffic_fraction 1)" = null ]
expect "the knee is one of them: $(figure knee 3)" grep -q "\"knee\": [25]}" "$OUT"
expect "a larger batch needs more" [ "$(figure bytes 2)" -gt "$(figure bytes 1)" ]
training=$(figure bytes 1)

it "measures inference too, which needs less memory"
run bench step "${small[@]}" --batch 2 --inference --json
expect_exit 0
expect "it is told" [ "$(figure mode 1)" = '"inference"' ]
expect "less memory: $(figure bytes 1) of $training" [ "$(figure bytes 1)" -lt "$training" ]

it "prints a table for people, and nothing when it is to be quiet"
run bench step convnet_s --img-size 16 --classes 10 --seconds 0 --batch 2 --threads 1 --no-compile
expect_exit 0
expect_out '^convnet_s at 16 px on cpu, fp32, 1 thread: training'
expect_out '^ +2 +[0-9.]+ +[0-9.]+ \([0-9.]+ to [0-9.]+\) +[0-9.]+ [kMG]B'
run bench step "${small[@]}" --batch 2 --quiet
expect_exit 0
expect_empty "$OUT"

it "refuses what makes no sense"
run bench step --batch 2
expect_exit 2
expect_err '--model is missing'
run bench step --model resnet81 --batch 2
expect_exit 2
expect_err 'resnet18'
for batch in 0 -3 '2,' ',2' '2,,3' x 2x 70000000 99999999999999999999 '2 3'; do
    run bench step "${small[@]}" --batch="$batch"
    expect_exit 2
    expect_err '--batch'
done
run bench step --model resnet18 --img-size 4 --batch 2
expect_exit 2
expect_err '--img-size'
run bench step "${small[@]}" --batch 2 --compare jax
expect_exit 2
expect_err '--compare jax'
run bench step "${small[@]}" --device cuda:0
expect_exit 4

it "says how large a batch can be where one cannot fit"
run bench step --model resnet50 --batch 10000000
expect_exit 4
expect_err 'batch 10000000 of resnet50 at 224 px needs [0-9.]+ GiB of .* memory'
expect_err 'the largest that fits is [0-9]+'

it "draws how images/s grow with the batch"
run bench step "${small[@]}" --batch 1,4 --deterministic --precision fp32-strict
expect_exit 0
expect_out ', fp32-strict, '
expect_out '^ +4 #+ +[0-9.]+'
expect_out '^The smallest batch within 3 % of the best is [14]\.$'

# A python3 that answers what $1 says, in front of the one that is there.
answer_as() {
    mkdir -p fake
    printf '#!/bin/sh\ncat <<"END"\n%s\nEND\n' "$1" >fake/python3
    chmod +x fake/python3
}

it "compares with PyTorch where it is there"
answer_as '{"mode": "eager", "images_per_second": 0.001, "ms_per_step": 5, "warmup_s": 2, "version": "2.x"}
a warning
{"mode": "compile", "error": "no compiler", "version": "2.x"}'
PATH=$PWD/fake:$PATH run bench step "${small[@]}" --batch 2 --compare torch
expect_exit 0
expect_out 'torch 2.x, eager +0.00 images/s +5.0 ms per step, warm-up 2.0 s: Stoker is [0-9.]+ times'
expect_out 'torch 2.x, compile: no compiler'
PATH=$PWD/fake:$PATH run bench step "${small[@]}" --batch 2 --compare torch --json
expect_exit 0
expect "three objects" [ "$(grep -c '^{.*}$' "$OUT")" = 3 ]
expect "the ratio is told" grep -q '"compare": "torch".*"torch_mode": "eager".*"ratio": [0-9]' "$OUT"

it "says so where PyTorch is not there"
answer_as '{"missing": "No module named torch"}'
PATH=$PWD/fake:$PATH run bench step "${small[@]}" --batch 1,2 --compare torch
expect_exit 0
expect "once: $(cat "$ERR")" [ "$(grep -c 'no comparison with PyTorch: No module named torch' "$ERR")" = 1 ]
answer_as nonsense
PATH=$PWD/fake:$PATH run bench step "${small[@]}" --batch 2 --compare torch
expect_exit 0
expect_err 'no comparison with PyTorch: python3 ended without an answer'
mkdir -p nothing
ln -sf "$(command -v timeout)" nothing/
PATH=$PWD/nothing run bench step "${small[@]}" --batch 2 --compare torch
expect_exit 0
expect_err 'no comparison with PyTorch: python3 cannot be run'

it "ends at Ctrl-C"
start bench step --model resnet18 --batch 8 --seconds 1000
wait_for 30 listens || fail "it does not catch the signal"
kill -INT "$PID"
ended 60
expect_exit 130
expect_err 'stopped'

it "says why its figures could not be printed"
if [ -w /dev/full ]; then
    # shellcheck disable=SC2016  # the inner shell expands
    run_any sh -c '"$@" >/dev/full' sh "$STOKER" bench step "${small[@]}" --batch 2 --json
    expect_exit 5
    expect_err 'cannot write to standard output: '
else
    skip "there is no /dev/full"
fi

finish
