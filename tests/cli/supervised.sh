# supervised.sh - helpers for tests of `stoker run`: the training that it runs, the files that it writes, and a
# GPU whose readings are a script. Sourced after lib.sh.
# shellcheck shell=bash source=tests/cli/lib.sh

export TRAIN="$ROOT/tests/children/train.py"

# take_python: the trainings are written in Python. Without it, the case is skipped and the script ends.
take_python() {
    if ! command -v python3 >/dev/null; then
        skip "there is no python3"
        finish
    fi
    # python3 may be a script that looks for the real one each time.
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
}

# take_scripted_gpu: from here on the readings of the GPU come from the file gpu, which the training writes. If that
# is not possible, the case is skipped and the script ends.
take_scripted_gpu() {
    local fakes
    fakes=$(dirname "$STOKER")/tests/emulated
    take_python
    if [ ! -e "$fakes/libnvidia-ml.so.1" ]; then
        skip "the stand-in for NVML was not built"
        finish
    fi
    export STOKER_CUDA_LIBS=$fakes FAKE_NVML=$WORK/gpu
    unset CUDA_VISIBLE_DEVICES
}

# supervise OPTIONS... -- COMMAND...: runs `stoker run` with the run folder run/, after removing an earlier one.
supervise() {
    rm -rf run
    run run --out run "$@"
    expect_json run/summary.json
    expect_jsonl run/events.jsonl
}

# supervise_gpu OPTIONS... -- COMMAND...: as supervise, with a GPU that nobody uses yet and an early check. Stoker
# recognises GPU work after three seconds and checks two seconds later: the work must last longer.
supervise_gpu() {
    printf 'bus 0000:19:00.0\nutil 0\nmemory_used 1000000000\nmemory_total 24000000000\n' >gpu
    supervise --check-after 2s --grace 30s "$@"
}

# summary KEY: prints the value of a key of run/summary.json, texts without quotes.
summary() {
    python3 -c 'import json, sys; print(json.load(open("run/summary.json"))[sys.argv[1]])' "$1"
}

# attempts FORMAT: prints one line for each attempt of run/summary.json.
attempts() {
    python3 -c 'import json, sys
for a in json.load(open("run/summary.json"))["attempts"]: print(sys.argv[1].format(**a))' "$1"
}
