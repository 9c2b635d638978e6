# lib.sh - helpers for tests of the command. A test script is tests/cli/test_NAME.sh:
#
#     . "$(dirname "$0")/lib.sh"
#     it "refuses an unknown verb"
#     run frobnicate
#     expect_exit 2
#     expect_err 'frobnicate'
#     finish
#
# $STOKER is the built command and $ROOT the root of the project. A script runs in an empty folder, $WORK,
# which is removed at the end. After `run`, the files $OUT and $ERR have the command's standard output and
# standard error, and $CODE is its exit code. Patterns are extended regular expressions. A case fails if an
# expectation in it fails, and is skipped if it calls `skip`.
# shellcheck shell=bash

set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
STOKER=${STOKER:-$ROOT/build/stoker}
LIB_FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/stoker-cli-XXXXXX") || exit 1
SERVER=$(dirname "$STOKER")/tests/object_server
SERVER_PID='' URL=''

lib_end() {
    [ -z "$SERVER_PID" ] || kill "$SERVER_PID" 2>/dev/null
    chmod -R u+rwX "$LIB_FOLDER" 2>/dev/null
    rm -rf "$LIB_FOLDER"
}
trap lib_end EXIT
WORK=$LIB_FOLDER/work
OUT=$LIB_FOLDER/out
ERR=$LIB_FOLDER/err
CODE=0
# Tests neither read nor write the user's files: caches, credentials.
export HOME=$LIB_FOLDER/home XDG_CACHE_HOME=$LIB_FOLDER/cache AWS_EC2_METADATA_DISABLED=true
# Without --model Stoker takes pretrained weights that it finds, so hide them.
unset HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HOME
export TORCHINDUCTOR_CACHE_DIR=$LIB_FOLDER/inductor # PyTorch would leave a folder in TMPDIR
for variable in $(compgen -e AWS_ | grep -v '^AWS_EC2_METADATA_DISABLED$'); do
    unset "$variable"
done
# Without --device Stoker takes a GPU that it finds, so hide it. Scripts use the CPU, or after
# take_emulated_gpu the emulated GPU.
export CUDA_VISIBLE_DEVICES=''
export PYTHONDONTWRITEBYTECODE=1 # the source tree stays as it is
mkdir "$HOME" "$WORK" && cd "$WORK" || exit 1
: >"$OUT"
: >"$ERR"
mkfifo "$LIB_FOLDER/never" || exit 1
lib_passed=0 lib_failed=0 lib_skipped=0
lib_case='' lib_state='' lib_command='' lib_sanitized=''

lib_close() {
    case $lib_case$lib_state in
    '') return ;;
    *failed) lib_failed=$((lib_failed + 1)) && echo "FAIL $lib_case" ;;
    *skipped) lib_skipped=$((lib_skipped + 1)) ;;
    *) lib_passed=$((lib_passed + 1)) && echo "ok   $lib_case" ;;
    esac
    lib_case='' lib_state=''
}

# it "name": begins a case and ends the previous one.
it() {
    lib_close
    lib_case=$1
}

# fail "sentence": marks the case as failed and shows what the last command printed.
fail() {
    echo "  ${BASH_SOURCE[-1]##*/}:${BASH_LINENO[-2]}: $1"
    if [ "$lib_state" != failed ] && [ -n "$lib_command" ]; then
        echo "    command: $lib_command (exit code $CODE)"
        tail -n 20 "$OUT" | sed 's/^/    stdout: /'
        tail -n 20 "$ERR" | sed 's/^/    stderr: /'
    fi
    lib_state=failed
}

# skip "reason": marks the case as skipped; the script goes on.
skip() {
    [ "$lib_state" = failed ] && return
    lib_state=skipped
    echo "skip $lib_case: $1"
}

# take_emulated_gpu: makes cuda:0 the emulated GPU for the rest of the script. If it was not built, the case is
# skipped and the script ends.
take_emulated_gpu() {
    local build
    build=$(dirname "$STOKER")
    if [ ! -e "$build/tests/emulated/libcuda.so.1" ]; then
        skip "the emulated GPU was not built"
        finish
    elif grep -q '^STK_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
        skip "the emulated GPU changes stacks, which a sanitizer does not understand"
        finish
    fi
    unset CUDA_VISIBLE_DEVICES
    export STOKER_CUDA_LIBS=$build/tests/emulated
    # The emulated compiler leaves its temporary folder if a signal ends the command in the meantime.
    export TMPDIR=$LIB_FOLDER
}

# run ARGUMENTS...: runs $STOKER. run_any PROGRAM ARGUMENTS... runs another program in the same way.
run() {
    run_any "$STOKER" "$@"
}

run_any() {
    lib_command="${1##*/} ${*:2}"
    timeout -k 5 "${RUN_TIMEOUT:-600}" "$@" >"$OUT" 2>"$ERR" </dev/null
    CODE=$?
}

expect_exit() {
    [ "$CODE" = "$1" ] || fail "the exit code is $CODE, expected $1"
}

expect_out() {
    grep -Eq -- "$1" "$OUT" || fail "standard output lacks: $1"
}

expect_err() {
    grep -Eq -- "$1" "$ERR" || fail "standard error lacks: $1"
}

expect_no_out() {
    ! grep -Eq -- "$1" "$OUT" || fail "standard output has: $1"
}

expect_no_err() {
    ! grep -Eq -- "$1" "$ERR" || fail "standard error has: $1"
}

# expect_file PATH [PATTERN]: the file exists, is not empty, and has a line that matches.
expect_file() {
    if [ ! -s "$1" ]; then
        fail "$1 is absent or empty"
    elif [ $# -gt 1 ] && ! grep -Eq -- "$2" "$1"; then
        fail "$1 lacks: $2"
    fi
}

expect_no_file() {
    [ ! -e "$1" ] || fail "$1 exists"
}

# expect_same A B: the two files have the same bytes.
expect_same() {
    cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# expect_empty PATH: the file ($OUT, $ERR) or the folder is empty.
expect_empty() {
    if [ -d "$1" ]; then
        [ -z "$(ls -A "$1")" ] || fail "$1 is not empty: $(ls -mA "$1")"
    else
        [ ! -s "$1" ] || fail "${1##*/} is not empty"
    fi
}

# expect "sentence" COMMAND...: the command must succeed; the sentence says what that means.
expect() {
    local sentence=$1
    shift
    "$@" >/dev/null 2>&1 || fail "$sentence"
}

# expect_not "sentence" COMMAND...: the command must fail; the sentence says what its success means.
expect_not() {
    local sentence=$1
    shift
    ! "$@" >/dev/null 2>&1 || fail "$sentence"
}

# ---- files of a run ----

# lib_json FILE WHOLE: prints what is wrong if a line is not one JSON value, or, with WHOLE 1, if the whole
# file is not one. Strings and other values are replaced by letters; then the innermost objects and lists
# are replaced by a letter until only one letter is left.
lib_json() {
    awk -v whole="$2" '
        function bad(text, hex, before) {
            if (text ~ /[\001-\010\013-\037]/) {
                return 1
            }
            hex = "[0-9a-fA-F]"
            gsub("\"([^\"\\\\\t]|\\\\([\"\\\\/bfnrt]|u" hex hex hex hex "))*\"", "S", text)
            if (text ~ /"/) {
                return 1
            }
            gsub(/true|false|null/, "V", text)
            gsub(/-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/, "V", text)
            gsub(/[ \t\n]+/, "", text)
            do {
                before = text
                gsub(/\[\]|\[[SV](,[SV])*\]|\{\}|\{S:[SV](,S:[SV])*\}/, "V", text)
            } while (text != before)
            return text != "V" && text != "S"
        }
        { all = all $0 "\n" }
        !whole && bad($0) { print "line " NR ": " $0; exit }
        END { if (whole && bad(all)) { print "not JSON" } else if (NR == 0) { print "empty" } }' "$1"
}

# expect_whole_lines FILE: the file ends with a line break.
expect_whole_lines() {
    [ "$(tail -c 1 "$1" && echo .)" = $'\n.' ] || fail "$1 ends within a line"
}

# expect_json FILE: the whole file is one JSON value. expect_jsonl FILE: every line is an event.
expect_json() {
    local trouble
    trouble=$(lib_json "$1" 1 2>&1)
    [ -z "$trouble" ] || fail "$1 is not valid JSON: $trouble"
}

expect_jsonl() {
    local trouble
    trouble=$(lib_json "$1" 0 2>&1)
    [ -z "$trouble" ] || fail "$1 has a line that is not valid JSON: $trouble"
    expect_whole_lines "$1"
    ! grep -Evq '^\{"t": [0-9.e-]+, "event": "[a-z_]+"' "$1" ||
        fail "$1 has a line without t and event: $(grep -Ev -m 1 '^\{"t": [0-9.e-]+, "event": "[a-z_]+"' "$1")"
}

# json FILE KEY: prints the value of a key. The file has one key per line and nothing nested.
json() {
    local line pattern='^ *"'$2'": "?(.*[^",]|)"?,?$'
    while IFS= read -r line || [ -n "$line" ]; do
        [[ ! $line =~ $pattern ]] || echo "${BASH_REMATCH[1]}"
    done <"$1"
}

# expect_times FILE: in every event with `times`, the parts add up to total_s, up to rounding. Every epoch
# spent time on validation.
expect_times() {
    # shellcheck disable=SC2016  # awk's
    expect "$1 tells where the time went" awk '
        match($0, /"times": \{[^}]*\}/) {
            count = split(substr($0, RSTART + 10, RLENGTH - 11), parts, /[:,]/)
            sum = 0
            for (i = 2; i <= count; i += 2) {
                bad = bad || parts[i] < 0
                sum += parts[i - 1] ~ /total_s/ ? -parts[i] : parts[i]
                blind = blind || (/"event": "epoch"/ && parts[i - 1] ~ /validate_s/ && !(parts[i] > 0))
            }
            bad = bad || sum > 0.006 || sum < -0.006 || count != 20
            seen++
        }
        END { exit bad || blind || !seen }' "$1"
}

expect_summary() {
    local value
    value=$(json "$1" "$2")
    [[ $value =~ ^($3)$ ]] || fail "$1 says $2 '$value', expected $3"
}

# submission_trouble FILE SAMPLE [LABELS]: prints what is wrong with a submission; nothing if it is right. Header
# and ids must be those of SAMPLE, in the same order. A label must be one of the words of LABELS, unless
# these are empty. If there are probabilities, they must sum to 1, and the label must be the likeliest.
# Cells with quotes are not understood.
submission_trouble() {
    awk -F , -v labels="${3:-}" '
        function is_share(text) {
            return text ~ /^(0|1|0\.[0-9]+|[0-9](\.[0-9]+)?e-[0-9]+)$/
        }
        BEGIN {
            count = split(labels, words, " ")
            for (i = 1; i <= count; i++) {
                known[words[i]] = 1
            }
        }
        NR == FNR { wanted[FNR] = FNR == 1 ? $0 : $1; rows = FNR; next }
        {
            mine = FNR
            if (FNR == 1) {
                columns = NF
                for (i = 2; i <= NF; i++) { name[i] = $i }
                if ($0 != wanted[1]) { print "the header is " $0 ", expected " wanted[1]; exit }
                next
            }
            if (NF != columns) { print "line " FNR " has " NF " cells, expected " columns; exit }
            if ($1 != wanted[FNR]) { print "line " FNR " is for " $1 ", expected " wanted[FNR]; exit }
            if (columns == 2) {
                if (count ? !($2 in known) : $2 == "") { print "line " FNR " has the label " $2; exit }
                next
            }
            sum = 0
            most = -1
            said = -1
            for (i = 2; i <= NF; i++) {
                if (i == 2 && $2 in known) { continue }
                if (!is_share($i)) { print "line " FNR " has " $i; exit }
                sum += $i
                most = $i > most ? $i + 0 : most
                said = name[i] == $2 ? $i + 0 : said
            }
            if (sum < 0.999999 || sum > 1.000001) { print "line " FNR " sums to " sum; exit }
            if ($2 in known && said != most) { print "line " FNR " has the label " $2 ", not the likeliest"; exit }
        }
        END { if (mine != rows) { print mine + 0 " lines, expected " rows } }' "$2" "$1" 2>&1
}

expect_submission() {
    local trouble
    if [ ! -s "$1" ]; then
        fail "$1 is absent or empty"
        return
    fi
    trouble=$(submission_trouble "$1" "$2" "${3:-}")
    [ -z "$trouble" ] || fail "$1: ${trouble%%$'\n'*}"
    expect_whole_lines "$1"
}

# expect_sums FILE: the columns are id, label and three classes, and the probabilities of a row sum to 1.
expect_sums() {
    # shellcheck disable=SC2016  # awk's dollars
    expect "rows of $1 sum to 1" \
        awk -F , 'NR > 1 { s = $3 + $4 + $5; if (s < 0.999999 || s > 1.000001) exit 1 }' "$1"
}

# expect_weights FILE: a complete safetensors file, with a valid header and all bytes that the header lists.
expect_weights() {
    local header size end
    if [ ! -s "$1" ]; then
        fail "$1 is absent or empty"
        return
    fi
    size=$(stat -L -c %s "$1")
    header=$(($(od -An -t u8 -N 8 "$1")))
    if [ "$size" -lt 10 ] || [ "$header" -lt 0 ] || [ "$header" -gt "$size" ]; then
        fail "$1 has a header of $header bytes in a file of $size"
        return
    fi
    tail -c +9 "$1" | head -c "$header" >"$LIB_FOLDER/header"
    expect_json "$LIB_FOLDER/header"
    end=$(awk '{
        while (match($0, /"data_offsets": *\[[0-9]+, *[0-9]+/)) {
            last = substr($0, RSTART, RLENGTH)
            sub(/.*[, ]/, "", last)
            most = last + 0 > most ? last + 0 : most
            $0 = substr($0, RSTART + RLENGTH)
        }
    } END { printf "%.0f", most }' "$LIB_FOLDER/header")
    [ "$size" = $((8 + header + ${end:-0})) ] ||
        fail "$1 has $size bytes, expected 8 + $header + ${end:-0}"
    [ "${end:-0}" -gt 0 ] || fail "$1 holds no tensors"
}

# expect_sound RUN SAMPLE [LABELS]: every file that exists in the run folder is complete and valid. Files may
# be missing, because a kill can come at any moment; the test itself checks which files must exist.
expect_sound() {
    local file
    for file in "$1/submission.csv" "$1/predictions.csv"; do
        [ ! -e "$file" ] || expect_submission "$file" "$2" "${3:-}"
    done
    for file in "$1/summary.json" "$1/args.json"; do
        [ ! -e "$file" ] || expect_json "$file"
    done
    while IFS= read -r file; do
        expect_weights "$file"
    done < <(find "$1" -name '[!.]*.safetensors')
    if [ -e "$1/results.csv" ]; then
        expect "results.csv has rows with other than 11 cells" \
            awk -F , 'NF != 11 { exit 1 }' "$1/results.csv"
        expect_file "$1/results.csv" '^fold,epoch,train/loss'
    fi
}

# expect_tidy FOLDER: there is no hidden and no temporary file anywhere below it.
expect_tidy() {
    local left
    left=$(find "$1" -name '.?*' -o -name '*.tmp' -o -name '*.new' | head -n 3 | tr '\n' ' ')
    [ -z "$left" ] || fail "left over in $1: $left"
}

# double FOLDER N: doubles the files of a folder N times, with hard links. The K-th time everything in FOLDER is
# linked into the new folder FOLDER/K. This makes many pictures quickly.
double() {
    local n
    for ((n = 1; n <= $2; n++)); do
        cp -al "$1" "$LIB_FOLDER/again"
        mv "$LIB_FOLDER/again" "$1/$n" || fail "$1 cannot be doubled"
    done
}

# is_full: whether to run the cases that take long and those that measure real time. True in `make soak`,
# which runs scripts one at a time.
is_full() {
    [ -n "${STK_TEST_FULL:-}" ]
}

# allowed SECONDS: prints the limit that applies to a wait or a run. In `make soak` it is the given one. Elsewhere
# the machine may be busy, so it is five times that and 30 seconds, which is enough to detect a hang. The
# same holds for a command that was built with a sanitizer.
allowed() {
    if is_full && ! is_sanitized; then
        echo "$1"
    elif [[ $1 =~ ^[0-9]+$ ]]; then
        echo $((5 * $1 + 30))
    else
        awk -v limit="$1" 'BEGIN { print 5 * limit + 30 }'
    fi
}

# expect_took LIMIT [SECONDS]: the seconds (default: $TOOK) are within the limit that `allowed LIMIT` prints.
expect_took() {
    local took=${2-${TOOK:-}} most
    most=$(allowed "$1")
    awk -v a="$took" -v b="$most" 'BEGIN { exit !(a != "" && a + 0 <= b + 0) }' || fail "it took $took s, more than $most s"
}

# is_sanitized: whether the command was built with a sanitizer, which makes it slow.
is_sanitized() {
    if [ -z "$lib_sanitized" ]; then
        lib_sanitized=no
        ! grep -q -m 1 -a -E '__(asan|tsan)_init' "$STOKER" || lib_sanitized=yes
    fi
    [ "$lib_sanitized" = yes ]
}

# python_with PATH PACKAGE...: makes a Python environment with these packages from PyPI in the folder PATH, unless
# it exists. Fails with the reason in $CANNOT. Modules are not compiled in advance, because tests use few.
python_with() {
    local path=$1
    shift
    CANNOT=''
    [ ! -e "$path/ready" ] || return 0
    CANNOT='there is no python3'
    command -v python3 >/dev/null || return 1
    rm -rf "$path"
    if ! python3 -m venv "$path" >venv.log 2>&1; then
        CANNOT="python3 cannot make an environment: $(tail -n 1 venv.log)"
    elif ! timeout 200 "$path/bin/pip" install --quiet --no-compile --disable-pip-version-check \
        --retries 1 --timeout 10 "$@" >venv.log 2>&1; then
        CANNOT="$1 cannot be had from PyPI: $(grep -m 1 '^ERROR' venv.log)"
    else
        CANNOT=''
        touch "$path/ready"
    fi
    [ -z "$CANNOT" ]
}

# wait_for SECONDS COMMAND...: repeats the command until it succeeds; fails after the time that `allowed` prints.
wait_for() {
    local begun=$SECONDS limit
    limit=$(allowed "$1")
    shift
    until "$@" >/dev/null 2>&1; do
        [ $((SECONDS - begun)) -le "$limit" ] || return 1
        read -r -t 0.05 <>"$LIB_FOLDER/never" || : # waits without a process: nobody writes there
    done
}

# start ARGUMENTS...: runs $STOKER in the background and sets $PID. `ended` waits for it and sets $CODE. The command
# gets a process group of its own (set -m), because a background process of a script ignores Ctrl-C. `start`
# returns when the new process runs $STOKER: before that it is a copy of this shell, and a signal would
# make it run this shell's exit trap.
start() {
    lib_command="${STOKER##*/} $*"
    set -m
    "$STOKER" "$@" >"$OUT" 2>"$ERR" </dev/null &
    PID=$!
    set +m
    wait_for 30 has_begun
}

has_begun() {
    [ ! "/proc/$PID/exe" -ef "/proc/$$/exe" ]
}

# listens: whether the process catches SIGINT. In the mask SigCgt that is the second lowest bit.
listens() {
    grep -Eq '^SigCgt:.*[2367abef]$' "/proc/$PID/status"
}

is_gone() {
    ! kill -0 "$PID"
}

# ended [SECONDS]: waits for the process and sets $CODE. A process that takes longer is killed; $CODE is then 137.
ended() {
    # The shell would print a message about a killed process on standard error.
    {
        wait_for "${1:-60}" is_gone || kill -9 "$PID"
        wait "$PID"
        CODE=$?
    } 2>/dev/null
}

# serve ARGUMENTS...: starts an object server at $URL. `stop` ends it, or the end of the script does.
serve() {
    # Empty the file first, so that the address of an earlier server is not taken for this one's.
    : >"$LIB_FOLDER/address"
    "$SERVER" --max-seconds 1800 "$@" >>"$LIB_FOLDER/address" 2>&1 </dev/null &
    SERVER_PID=$!
    wait_for 20 grep -q '^listening on ' "$LIB_FOLDER/address" ||
        fail "the server says: $(cat "$LIB_FOLDER/address")"
    # shellcheck disable=SC2034  # the scripts read it
    URL=$(sed -n 's/^listening on //p' "$LIB_FOLDER/address")
}

stop() {
    kill "$SERVER_PID"
    wait "$SERVER_PID"
    local code=$?
    SERVER_PID=''
    return "$code"
}

# since MOMENT: sets $TOOK to the seconds since MOMENT, an earlier $EPOCHREALTIME.
since() {
    TOOK=$(awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f", b - a }')
}

# timed ARGUMENTS...: as `run`, and sets $TOOK to the seconds that it took.
timed() {
    local begun=$EPOCHREALTIME
    run "$@"
    since "$begun"
}

# finish: ends the last case and prints the totals. The last line of every script.
finish() {
    lib_close
    echo "$lib_passed passed, $lib_failed failed, $lib_skipped skipped"
    [ "$lib_failed" = 0 ]
    exit $?
}
