#!/usr/bin/env bash
# Runs tests and prints the total.
#
#     tests/run.sh BUILD_DIR [unit|cli|all|soak] [FILTER]
#
# A test is a program or a script. unit: every program BUILD_DIR/tests/test_*. cli: every script
# tests/cli/test_*.sh. all: both. soak: every tests/soak/test_*.sh; the scripts of tests/cli that bound
# real time or have cases for soak, in full (STK_TEST_FULL=1, `is_full` of lib.sh); the programs for CUDA,
# for models and for pictures, in full; and the fuzz targets with two million mutations.
#
# FILTER is a regular expression that names must match; with a `!` before it, names must not match.
#
# Tests run at the same time, two more than there are cores, because many wait for disks. A script with
# a line `# Mostly waits.` starts first and is not counted. In soak, scripts run one at a time.
#
# A test prints `N passed, N failed, N skipped` at its end. A test that crashes, prints no such line,
# takes more than TEST_TIMEOUT seconds (1200), or leaves a file in TMPDIR or a process is one failure.
# The last line is the total. The exit code is 1 when anything failed.
set -u

if [ $# -lt 1 ] || [ ! -d "$1" ]; then
    echo "usage: tests/run.sh BUILD_DIR [unit|cli|all|soak] [filter]" >&2
    exit 2
fi
build=$(cd "$1" && pwd)
kind=${2:-all}
filter=${3:-}
limit=${TEST_TIMEOUT:-1200}
cd "$(dirname "$0")/.." || exit 2

scratch=$(mktemp -d "${TMPDIR:-/tmp}/stoker-tests-XXXXXX") || exit 2

# Ends the tests that still run.
end() {
    local running
    running=$(jobs -pr)
    # shellcheck disable=SC2086  # numbers are words
    [ -z "$running" ] || { kill $running && wait; } 2>/dev/null
    rm -rf "$scratch"
}
trap end EXIT
trap 'exit 130' INT TERM
# Tests have a cache folder and a home of their own: they do not touch the user's, and do not find pretrained
# weights there, which Stoker takes without --model.
mkdir "$scratch/home"
export STOKER=$build/stoker LC_ALL=C.UTF-8 XDG_CACHE_HOME=$scratch/cache HOME=$scratch/home
unset HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HOME
# Without --device Stoker takes a GPU that it finds, so hide it. Tests of CUDA use the emulated GPU, with
# STK_TEST_GPU=real the real one.
[ "${STK_TEST_GPU:-}" = real ] || export CUDA_VISIBLE_DEVICES='' STK_TEST_GPU=emulated
# In every process OpenBLAS starts a thread per core, which spins for a while though nobody uses it. In soak
# it does so, as users have it.
[ "$kind" = soak ] || export OPENBLAS_NUM_THREADS=1
# Cairo keeps fonts until the process ends. fontconfig refers to them by offsets, which a leak checker
# cannot follow.
echo 'leak:libfontconfig' >"$scratch/leaks"
export LSAN_OPTIONS=suppressions=$scratch/leaks:print_suppressions=0
passed=0
failed=0
skipped=0
names=() # of all tests that were started
slots=$(($(nproc) + 2))
[ "$slots" -le 5 ] || slots=5
# The tests that take longest. They start first, so that none runs alone at the end.
long='^(test_(cuda_(operations|networks|conv|norm|backend|depthwise|fuse_(join_back|norm_conv|layer_back|stats))|'
long+='cudnn_api|models_golden|storage_reader|image_part|image_halt|job_resume)|'
long+='cli_(cuda|recipes|calibration|resume|bad_disk|batch|report_browser))$'

# processes_of NAME: prints the processes of a test: those whose TMPDIR is the test's, or which work in
# it. Processes that have ended but were not waited for do not count.
processes_of() {
    local pid
    for pid in $({
        grep -lzs "^TMPDIR=$scratch/$1\.tmp" /proc/[0-9]*/environ
        find /proc/[0-9]*/cwd -maxdepth 0 -lname "$scratch/$1.tmp*" 2>/dev/null
    } | cut -d / -f 3 | sort -u); do
        grep -qs '^State:.[^ZX]' "/proc/$pid/status" && echo "$pid"
    done
}

# left_over NAME: prints which processes and files a test left; nothing if it left none. Processes get ten
# seconds to end and are then killed.
left_over() {
    local pid files pids
    for _ in {1..50}; do
        pids=$(processes_of "$1")
        [ -n "$pids" ] || break
        sleep 0.2
    done
    for pid in $pids; do
        echo "left process $pid running: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-100)"
        kill -9 "$pid"
    done 2>/dev/null
    files=$(find "$scratch/$1.tmp" -mindepth 1 -printf '%P ' 2>/dev/null | cut -c 1-100)
    [ -z "$files" ] || echo "left files in TMPDIR: $files"
}

# run_one NAME COMMAND...: runs a test. Its output, its exit code, its seconds and its seconds of CPU time
# go to files NAME.* in the scratch folder.
run_one() {
    local name=$1 code=0 child='' TIMEFORMAT='%R %U %S'
    shift
    mkdir -p "$scratch/$name.tmp"
    trap '[ -z "$child" ] || kill "$child"; exit 130' TERM
    {
        time {
            TMPDIR=$scratch/$name.tmp timeout -k 10 "$limit" "$@" >"$scratch/$name.out" 2>&1 </dev/null &
            child=$!
            wait "$child"
        }
    } 2>"$scratch/$name.time" || code=$?
    left_over "$name" >"$scratch/$name.left"
    awk -v code="$code" 'END { printf "%d %.1f %.1f\n", code, $1, $2 + $3 }' \
        "$scratch/$name.time" >"$scratch/$name.end"
    chmod -R u+rwX "$scratch/$name.tmp" 2>/dev/null
    rm -rf "$scratch/$name.tmp"
}

# count_one NAME: adds the results of a test to the total and prints its line. If the test failed, its
# output follows; otherwise its lines about skipped cases and its tables (lines that begin with a bar).
count_one() {
    local name=$1 code seconds cpu line trouble='' p=0 f=0 s=0
    local pattern='^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$'
    read -r code seconds cpu <"$scratch/$name.end"
    line=$(grep -E "$pattern" "$scratch/$name.out" | tail -n 1)
    if [[ $line =~ $pattern ]]; then
        p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
    fi
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        trouble="took over $limit s or was killed"
    elif [ -z "$line" ]; then
        trouble="ended with exit code $code and no totals"
    elif [ "$code" != 0 ] && [ "$f" = 0 ]; then
        trouble="ended with exit code $code though no test failed"
    elif [ "$code" = 0 ] && [ "$f" != 0 ]; then
        trouble="ended with exit code 0 though a test failed"
    elif [ $((p + f + s)) = 0 ]; then
        trouble="ran no test"
    elif [ -s "$scratch/$name.left" ]; then
        trouble=$(head -n 1 "$scratch/$name.left")
    fi
    [ -z "$trouble" ] || [ "$f" != 0 ] || f=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" = 0 ]; then
        printf 'ok    %-32s %4d passed%s  %s s (CPU %s s)\n' "$name" "$p" \
            "$([ "$s" = 0 ] || printf ', %d skipped' "$s")" "$seconds" "$cpu"
        grep -E '^(skip|\|) ' "$scratch/$name.out" | sed 's/^/      /'
    else
        printf 'FAIL  %-32s %4d failed  %s s%s\n' "$name" "$f" "$seconds" "${trouble:+: it $trouble}"
        tail -n 80 "$scratch/$name.out" | grep -v '^ok ' | sed 's/^/      /'
    fi
}

# begin SLOTS NAME COMMAND...: waits until fewer than SLOTS tests run, then runs a test in the background.
# Tests that mostly wait do not count.
idle=() # process ids of the tests that mostly wait
begin() {
    while [ "$(jobs -pr | grep -vxc -F "$(printf '%s\n' none "${idle[@]}")")" -ge "$1" ]; do
        wait -n
    done
    run_one "${@:2}" &
}

# in_order: prints the names from standard input that pass the filter, the long tests first.
in_order() {
    local take=-E
    [[ $filter != !* ]] || take=-vE
    grep "$take" -- "${filter#!}" | awk -v long="$long" '$1 ~ long { print; next } { rest = rest $0 "\n" }
        END { printf "%s", rest }'
}

# begin_programs PATTERN ARGUMENTS...: starts the programs whose names match, each with the arguments.
begin_programs() {
    local name pattern=$1 line_buffered=()
    shift
    # With a buffer, a program that crashes would lose what it printed.
    command -v stdbuf >/dev/null 2>&1 && line_buffered=(stdbuf -oL)
    # stdbuf preloads a library, and sanitizers refuse to start if theirs is not the first.
    if nm "$build/libstoker.a" 2>/dev/null | grep -q -m 1 -E '__(asan|tsan)_init'; then
        line_buffered=()
    fi
    for name in $(printf '%s\n' "$build"/tests/test_* | sed 's|.*/||' | grep "$pattern" | in_order); do
        # A program without a source is left over from an earlier state of the tree.
        if [ -f "tests/unit/$name.c" ] || [ -f "tests/fuzz/${name#test_}.c" ]; then
            begin "$slots" "$name" "${line_buffered[@]}" "$build/tests/$name" "$@"
            names+=("$name")
        fi
    done
}

# find_scripts SCRIPT...: notes the scripts that pass the filter under their names, cli_X or soak_X. Scripts
# that mostly wait start at once, unless scripts run one at a time.
scripts=() # names and paths of the scripts that have not started, in turn
find_scripts() {
    local script name
    for name in $(printf '%s\n' "$@" | sed 's|^tests/\(.*\)/test_\(.*\)\.sh$|\1_\2|' | in_order); do
        script=tests/${name%%_*}/test_${name#*_}.sh
        if [ ! -x "$STOKER" ]; then
            printf 'FAIL  %s: %s was not built\n' "$name" "$STOKER"
            failed=$((failed + 1))
            continue
        fi
        names+=("$name")
        if [ "$slots" != 1 ] && grep -q '^# Mostly waits\.$' "$script"; then
            run_one "$name" bash "$script" &
            idle+=("$!")
        else
            scripts+=("$name" "$script")
        fi
    done
}

# end_all: runs the remaining scripts, waits for all tests and counts them in the order of their names.
end_all() {
    local name i
    for ((i = 0; i < ${#scripts[@]}; i += 2)); do
        begin "$slots" "${scripts[i]}" bash "${scripts[i + 1]}"
    done
    wait
    idle=() # other processes may soon have these ids
    for name in $(printf '%s\n' "${names[@]}" | sort -t _ -k 1,1r -k 2); do
        count_one "$name"
    done
    names=() scripts=()
}

case $kind in
unit) begin_programs . ;;
cli) find_scripts tests/cli/test_*.sh ;;
all)
    find_scripts tests/cli/test_*.sh
    begin_programs .
    ;;
soak)
    limit=${TEST_TIMEOUT:-3600}
    export STK_TEST_FULL=1
    together=$slots slots=1
    # shellcheck disable=SC2046  # names without blanks
    find_scripts tests/soak/test_*.sh $(grep -lE '\b(is_full|expect_took)\b' tests/cli/test_*.sh)
    end_all
    slots=$together
    begin_programs 'test_cuda_\|test_cudnn_\|test_models_golden\|test_image_'
    begin_programs test_fuzz_ 1000000 2000000
    ;;
*)
    echo "tests/run.sh: there is no kind '$kind'; it can be unit, cli, all or soak" >&2
    exit 2
    ;;
esac
end_all

if [ $((passed + failed + skipped)) = 0 ]; then
    echo "tests/run.sh: no test matches '$filter'" >&2
    failed=1
fi
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" = 0 ]
