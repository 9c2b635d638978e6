#!/usr/bin/env bash
# Tests and measures on the GPU of this machine: tools/gpu-test.sh BUILD_DIR
#
# The parts are:
#
#     unit       the unit tests of CUDA on the real GPU
#     sanitizer  the same under compute-sanitizer, where that is installed
#     train      a short training
#     samples    the samples of the GPU that Stoker takes, compared with nvidia-smi's
#     verdicts   trainings with a known limit, and the verdicts on them
#     bench      the speed of steps, written to bench/results/gpu-DATE.json
#
# Without a usable GPU the script says why and ends with exit code 0. Environment variables:
#
#     GPU_TEST_PARTS         which parts to run (all)
#     GPU_TEST_DEVICE        the device (cuda:0)
#     GPU_TEST_SECONDS       seconds of one measurement (5)
#     GPU_TEST_OUT           the file that `bench` writes
#     GPU_TEST_COMPARE=1     `bench` measures PyTorch, too
#     GPU_TEST_RACECHECK=1   `sanitizer` looks for races, too
set -u

cd "$(dirname "$0")/.." || exit 2
build=$(cd "${1:-build}" && pwd) || exit 2
stoker=$build/stoker
device=${GPU_TEST_DEVICE:-cuda:0}
seconds=${GPU_TEST_SECONDS:-5}
parts=" ${GPU_TEST_PARTS:-unit sanitizer train samples verdicts bench} "
failed=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/stoker-gpu-XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

say() {
    printf 'gpu-test: %s\n' "$*"
}

wants() {
    [[ $parts == *" $1 "* ]]
}

# fail WHAT: notes a failure for the exit code; the script goes on.
fail() {
    say "FAILED: $*"
    failed=1
}

# A message about --device means that there is no usable GPU. Any other failure is a failure of the test.
if ! "$stoker" bench step --model resnet18 --img-size 32 --classes 10 --batch 2 --seconds 0 \
    --device "$device" --quiet 2>"$scratch/why"; then
    if grep -q -- '--device' "$scratch/why"; then
        say "skipped: $(sed 's/^stoker: //' "$scratch/why")"
        exit 0
    fi
    fail "a first step: $(cat "$scratch/why")"
fi

if wants unit; then
    STK_TEST_GPU=real STK_TEST_FULL=1 tests/run.sh "$build" unit '^test_cuda_' || fail "unit tests"
fi

if wants sanitizer; then
    if command -v compute-sanitizer >/dev/null 2>&1; then
        tools=(memcheck)
        [ "${GPU_TEST_RACECHECK:-0}" = 1 ] && tools+=(racecheck)
        for tool in "${tools[@]}"; do
            for program in "$build"/tests/test_cuda_*; do
                [ -x "$program" ] || continue
                if STK_TEST_GPU=real STK_TEST_FULL=1 compute-sanitizer --tool "$tool" --error-exitcode 99 \
                    "$program" >"$scratch/sanitizer" 2>&1; then
                    say "$tool: ${program##*/} is clean"
                elif grep -q 'before first instrumented API call' "$scratch/sanitizer" &&
                    "$program" >/dev/null 2>&1; then
                    say "$tool: ${program##*/} calls no GPU"
                else
                    tail -n 40 "$scratch/sanitizer"
                    fail "$tool: ${program##*/}"
                fi
            done
        done
    else
        say "compute-sanitizer is not installed: memory is not checked"
    fi
fi

if wants train; then
    if "$stoker" sample "$scratch/data" --layout kaggle --quiet &&
        "$stoker" train --data "$scratch/data" --device "$device" --model convnet_s --epochs 8 --out "$scratch/run" &&
        [ -s "$scratch/run/submission.csv" ]; then
        # There are six classes. The pictures are easy, so a low accuracy means wrong results.
        best=$(sed -n -E 's/.*"best_acc1": ([0-9.]+).*/\1/p' "$scratch/run/summary.json" | head -n 1)
        awk -v x="${best:-0}" 'BEGIN { exit !(x > 60) }' || fail "accuracy of $best % after 8 epochs"
    else
        fail "training on sample data"
    fi
fi

# mean_of KEY: prints the mean of a number over the samples in the scratch file; nothing if it is unknown.
mean_of() {
    sed -n -E "s/.*\"$1\": ([0-9.e+]+).*/\1/p" "$scratch/samples" |
        awk '{ sum += $1; count++ } END { if (count > 0) printf "%.6g", sum / count }'
}

# near WHAT OURS THEIRS: fails unless our number is within 5 % of theirs.
near() {
    say "$1: $2, by nvidia-smi $3"
    awk -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !(a != "" && d * d <= 0.05 * 0.05 * b * b) }' ||
        fail "samples: $1 is $2, by nvidia-smi $3"
}

# compare_samples BUS: samples the GPU during repeated steps for ten seconds, by Stoker and by nvidia-smi,
# and compares. The last column of nvidia-smi is SM activity.
compare_samples() {
    local bus=$1 work seen cost
    local step=("$stoker" bench step --model resnet50 --img-size 224 --batch 128 --device "$device" --quiet)
    cmake --build "$build" --target sampler_cost >/dev/null || return 1
    "${step[@]}" --seconds 0 || return 1 # compiles the kernels
    "${step[@]}" --seconds 30 &
    work=$!
    sleep 10
    nvidia-smi dmon -i "$bus" -s u --gpm-metrics 2 -c 12 >"$scratch/dmon" 2>&1 &
    seen=$!
    "$build/sampler_cost" 10 "$bus" >"$scratch/samples" || fail "sampler_cost"
    near "bytes in use" "$(mean_of gpu_memory_used)" "$(nvidia-smi -i "$bus" --format=csv,noheader,nounits \
        --query-gpu=memory.used | awk '{ printf "%.0f", $1 * 1024 * 1024 }')"
    wait "$seen"
    kill "$work" 2>/dev/null
    wait "$work"
    if [ -n "$(mean_of sm_activity)" ]; then
        near "SM activity" "$(mean_of sm_activity)" \
            "$(awk '$NF ~ /^[0-9.]+$/ { sum += $NF; n++ } END { if (n > 0) print sum / n }' "$scratch/dmon")"
    else
        say "this GPU does not tell its SM activity"
    fi
    cost=$(sed -n -E 's/.*"core_percent": ([0-9.]+).*/\1/p' "$scratch/samples")
    say "looking takes ${cost:-?} % of a core"
    awk -v x="${cost:-9}" 'BEGIN { exit !(x < 0.5) }' || fail "samples: looking takes $cost % of a core"
}

if wants samples; then
    bus=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i "${device#cuda:}" 2>/dev/null | head -n 1)
    if [ -z "$bus" ]; then
        say "nvidia-smi is not there: samples are not compared"
    else
        compare_samples "$bus" || fail "samples"
    fi
fi

# expect_verdict NAME OPTION...: trains with these options and expects this verdict.
expect_verdict() {
    local name=$1 said
    shift
    rm -rf "$scratch/run"
    "$stoker" train --data "$scratch/seen" --device "$device" --model convnet_s --budget 20 --out "$scratch/run" --quiet "$@" ||
        fail "training with $*"
    said=$(sed -n -E 's/.*"verdict": "([^"]*)".*/\1/p' "$scratch/run/summary.json")
    say "$*: $said"
    [ "$said" = "$name" ] || fail "the verdict on $* is $said, not $name"
}

if wants verdicts; then
    "$stoker" sample "$scratch/seen" --per-class 2000 --quiet || fail "sample data"
    expect_verdict launch-bound --model resnet50 --img-size 64 --batch 8
    expect_verdict decode-bound --model resnet18 --img-size 64 --batch 256 --workers 1
    expect_verdict fine --model resnet50 --img-size 224 --batch 128 --cache decoded
fi

# measure MODEL BATCHES [OPTION...]: measures steps; appends JSON objects, one a line, to the scratch file.
measure() {
    local model=$1 batches=$2
    shift 2
    local compare=()
    [ "${GPU_TEST_COMPARE:-0}" = 1 ] && compare=(--compare torch)
    "$stoker" bench step --model "$model" --batch "$batches" --img-size 224 --device "$device" \
        --seconds "$seconds" --json "${compare[@]}" "$@" >"$scratch/figures" || fail "$model $*"
    cat "$scratch/figures" >>"$scratch/lines"
    local told='"model": "([^"]*)", "batch": ([0-9]+).*"images_per_second": ([0-9.]+), "ms_per_step": ([0-9.]+).*'
    grep -v '"knee"' "$scratch/figures" |
        sed -E -e "s/.*\"torch_mode\": \"([^\"]*)\".*$told/    torch \1: \4 images\/s, \5 ms/" \
            -e "s/.*$told/\1 batch \2: \3 images\/s, \4 ms/"
}

if wants bench; then
    : >"$scratch/lines"
    measure resnet50 32,64,128,256 --precision fp16
    measure resnet50 256 --precision bf16
    measure resnet50 256 --precision fp16 --inference
    measure efficientnet_b4 32,128 --precision fp16
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader -i "${device#cuda:}" 2>/dev/null | head -n 1)
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    date=$(date +%Y-%m-%d)
    out=${GPU_TEST_OUT:-bench/results/gpu-$date.json}
    head='"date": "'$date'", "machine": "'${gpu:-GPU}', '$(nproc)' cores", "versions": {"stoker": "'
    head+=$("$stoker" --version | sed 's/^stoker //')'", "driver": "'${driver:-unknown}'"}, "bench": "step", '
    {
        echo '['
        grep -v '"knee"' "$scratch/lines" | sed -e 's/^{/ {'"${head//\//\\/}"'/' -e '$!s/$/,/'
        echo ']'
    } >"$scratch/out.json"
    if [ -s "$scratch/lines" ] && cp "$scratch/out.json" "$out"; then
        say "wrote $out; tools/performance-page.py makes docs/performance.md from it"
    else
        fail "writing $out"
    fi
fi

[ "$failed" = 0 ] && say "all is well"
exit "$failed"
