#!/usr/bin/env bash
# Runs the tests and adds up.
#
#     tests/run.sh BUILD_DIR [unit|cli|all|soak] [filter]
#
# unit: every BUILD_DIR/tests/test_* program. cli: every tests/cli/test_*.sh. all: both. A filter, a regular
# expression, picks by name; with a `!` before it, all others. Two more than there are cores run at a time,
# since many wait at times, for disks above all. Scripts with a line `# Mostly waits.` begin first and take nobody's place.
#
# soak: every tests/soak/test_*.sh; the scripts of tests/cli that have bounds of time or cases for soak, in
# full (STK_TEST_FULL=1, `is_full` of lib.sh); the tests of CUDA and of models in full; and long fuzzing. Scripts run alone.
#
# Each prints `N passed, N failed, N skipped` at its end. One that crashes, prints no such line, takes over
# TEST_TIMEOUT seconds (1200), or leaves a file in TMPDIR or a process behind is one failure. The last line is
# the total; the exit code is 1 when anything failed.
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

# What still runs ends too.
end() {
    local running
    running=$(jobs -pr)
    # shellcheck disable=SC2086  # numbers are words
    [ -z "$running" ] || { kill $running && wait; } 2>/dev/null
    rm -rf "$scratch"
}
trap end EXIT
trap 'exit 130' INT TERM
# What the library keeps between runs is not the user's.
export STOKER=$build/stoker LC_ALL=C.UTF-8 XDG_CACHE_HOME=$scratch/cache
# A GPU of the machine would be taken where no device is given. Tests of CUDA take the emulated one, or
# the real one where they are asked to.
[ "${STK_TEST_GPU:-}" = real ] || export CUDA_VISIBLE_DEVICES='' STK_TEST_GPU=emulated
# Cairo keeps fonts for the life of the process, and fontconfig refers to parts of them by offsets,
# which a leak checker cannot follow.
echo 'leak:libfontconfig' >"$scratch/leaks"
export LSAN_OPTIONS=suppressions=$scratch/leaks:print_suppressions=0
passed=0
failed=0
skipped=0
names=() # of all that were started, in the order in which they are counted
slots=$(($(nproc) + 2))
[ "$slots" -le 5 ] || slots=5
# Those that take longest begin first, so that none is left running by itself.
long='^(test_(cuda_(operations|networks|conv|norm|backend|depthwise|fuse_(join_back|norm_conv|layer_back|stats))|'
long+='cudnn_api|models_golden|storage_reader|image_part|image_halt|job_resume)|'
long+='cli_(cuda|resume|bad_disk|s3|batch|report_browser))$'

# processes_of NAME: those that have its TMPDIR, or work in it; what is ending anyway is none.
processes_of() {
    local pid
    for pid in $({
        grep -lzs "^TMPDIR=$scratch/$1\.tmp" /proc/[0-9]*/environ
        find /proc/[0-9]*/cwd -maxdepth 0 -lname "$scratch/$1.tmp*" 2>/dev/null
    } | cut -d / -f 3 | sort -u); do
        grep -qs '^State:.[^ZX]' "/proc/$pid/status" && echo "$pid"
    done
}

# left_over NAME: says what it has left behind, nothing where that is nothing. Processes that it has ended
# have a moment to be gone; others are ended here.
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

# run_one NAME COMMAND...: output, exit code and seconds, those that passed and those of CPU time, go
# to files named NAME in the scratch folder.
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

# count_one NAME: adds one program's results and shows its output when something is wrong; otherwise
# what it says of what it skipped, and tables, whose lines begin with a bar and a blank.
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

# begin SLOTS NAME COMMAND...: runs it in the background as soon as fewer than that many run, those that
# mostly wait left out.
idle=() # these
begin() {
    while [ "$(jobs -pr | grep -vxc -F "$(printf '%s\n' none "${idle[@]}")")" -ge "$1" ]; do
        wait -n
    done
    run_one "${@:2}" &
}

# Those of the names on standard input that the filter takes, the long ones first.
in_order() {
    local take=-E
    [[ $filter != !* ]] || take=-vE
    grep "$take" -- "${filter#!}" | awk -v long="$long" '$1 ~ long { print; next } { rest = rest $0 "\n" }
        END { printf "%s", rest }'
}

# begin_programs PATTERN ARGUMENTS...: the programs of the build folder with such names, each with these arguments.
begin_programs() {
    local name pattern=$1 line_buffered=()
    shift
    # A program that crashes must not take along what it had printed.
    command -v stdbuf >/dev/null 2>&1 && line_buffered=(stdbuf -oL)
    # The sanitizers do not like a library preloaded before their own.
    if nm "$build/libstoker.a" 2>/dev/null | grep -q -m 1 -E '__(asan|tsan)_init'; then
        line_buffered=()
    fi
    for name in $(printf '%s\n' "$build"/tests/test_* | sed 's|.*/||' | grep "$pattern" | in_order); do
        # A program whose source is gone is left over from an earlier state of the tree.
        if [ -f "tests/unit/$name.c" ] || [ -f "tests/fuzz/${name#test_}.c" ]; then
            begin "$slots" "$name" "${line_buffered[@]}" "$build/tests/$name" "$@"
            names+=("$name")
        fi
    done
}

# find_scripts SCRIPT...: their names are cli_X or soak_X. Those that mostly wait begin, unless scripts run alone.
scripts=()
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

# end_all: runs the other scripts, and counts in the order of the names.
end_all() {
    local name i
    for ((i = 0; i < ${#scripts[@]}; i += 2)); do
        begin "$slots" "${scripts[i]}" bash "${scripts[i + 1]}"
    done
    wait
    idle=() # their numbers may soon be those of others
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
    begin_programs 'test_cuda_\|test_models_golden'
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
