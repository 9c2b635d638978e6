# torture.sh - helpers for tests in which one call of the command fails: the Nth request for memory, the Nth
# write, the Nth start of a thread, the Nth request to S3. Whichever call fails, the command must end by
# itself with the right exit code and a sentence, free all its memory, and leave complete files, new or old.
# Sourced after lib.sh.
#
# The commands are train, predict, stage, run, far (a training from S3) and near (a staging from S3). The
# kinds of calls are own, libraries, open, write, fsync, rename, read, thread and pipe, which
# tests/fakes/torture.c explains, and s3-reset, s3-500, s3-short and s3-denied, which the object server makes.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2034,SC2317  # lib.sh reads variables; functions by name

TORTURE=$(dirname "$STOKER")/tests/torture.so
KINDS='own libraries open write fsync rename read thread pipe'
S3_KINDS='s3-reset s3-500 s3-short s3-denied'

# Requests of these libraries for memory never fail. OpenBLAS, which alone uses gfortran's library, ends the process
# without memory. The libraries that draw text, and NVIDIA's, do not check for lack of memory.
SPARED=openblas:gfortran:libcuda:nvidia:fontconfig:freetype:cairo:pixman:expat.so

# Most seconds of a tortured run; an undisturbed run takes a fraction of a second.
RUN_TIMEOUT=${RUN_TIMEOUT:-240}

# torture_prepare: makes small data, and what each command makes of it when nothing fails. False: the command cannot
# be tortured, and the case is skipped.
torture_prepare() {
    if is_sanitized; then
        skip "the sanitizers do not like a library preloaded before their own"
        return 1
    fi
    # Otherwise the command would start itself again to set these, and the counts would start again.
    export OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-}
    [ -n "$OPENBLAS_CORETYPE" ] || unset OPENBLAS_CORETYPE
    "$STOKER" sample k --layout kaggle --classes 2 --per-class 4 --quiet || exit 1
    LABELS=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
    TRAIN=(train --device cpu --model cifar_resnet20 --img-size 8 --epochs 1 --batch 4 --workers 1 --quiet)
    "$STOKER" "${TRAIN[@]}" --data k --out whole || exit 1
    "$STOKER" predict --run whole --quiet --out whole.csv || exit 1
    "$STOKER" stage k staged --quiet || exit 1
    mkdir given
}

# torture_far: serves the same data as S3. False: this is not possible, and the case is skipped.
torture_far() {
    if ! "$STOKER" train --data s3:/// --out none 2>&1 >/dev/null | grep -vq 'no S3 support'; then
        skip "built without S3"
        return 1
    elif ! command -v curl >/dev/null; then
        skip "there is no curl"
        return 1
    fi
    serve --root k
    export AWS_ENDPOINT_URL=$URL AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1
    export no_proxy=127.0.0.1
}

# ---- what each command does, and what must be true after it, whatever has failed ----

before_train() { rm -rf r; }
words_train() { WORDS=("${TRAIN[@]}" --data k --out r); }
after_train() {
    local why
    if [ "$CODE" = 0 ]; then
        [ -s r/submission.csv ] || wrong "there is no submission"
        [ -s r/summary.json ] || wrong "there is no summary"
    fi
    if [ -e r/submission.csv ]; then
        why=$(submission_trouble r/submission.csv k/sample_submission.csv "$LABELS" | head -n 1)
        [ -z "$why" ] || wrong "the submission: $why"
    fi
    check_summary r
    check_json r/args.json
    check_tidy r
}

before_predict() { printf 'old\n' >given/p.csv; }
words_predict() { WORDS=(predict --run whole --device cpu --quiet --out given/p.csv); }
after_predict() {
    if [ "$CODE" = 0 ] || [ "$(<given/p.csv)" != old ]; then
        cmp -s given/p.csv whole.csv || wrong "the predictions are not those of a whole run"
    fi
    check_tidy given
}

before_stage() { rm -rf near; }
words_stage() { WORDS=(stage k near --max-bad 0 --quiet); }
after_stage() {
    local left
    # The same command must be able to finish the staging.
    if [ "$CODE" != 0 ] && ! "$STOKER" "${WORDS[@]}" >again 2>&1; then
        wrong "it cannot be staged again: $(head -n 1 again)"
    fi
    for file in samples.csv classes.txt sample_submission.csv train-000000.tar test-000000.tar; do
        cmp -s "near/$file" "staged/$file" || wrong "near/$file is not that of a whole run"
    done
    left=$(find near -name '.?*' ! -name .lock -o -name staging.json)
    [ -z "$left" ] || wrong "left over: $left"
}

before_run() { rm -rf run predicted; }
words_run() {
    WORDS=(run --out run --quiet --predict 'cp whole.csv predicted' --expect predicted -- sh -c 'echo "epoch 1/1 loss 0.5"')
}
after_run() {
    local said
    if [ "$CODE" = 0 ] || [ -e predicted ]; then
        cmp -s whole.csv predicted || wrong "the prediction has not run"
    fi
    if [ -s run/summary.json ]; then
        said=$(json run/summary.json exit_code | head -n 1) # those of the attempts follow
        [ "$said" = "$CODE" ] || wrong "summary.json says exit code $said"
    elif [ "$CODE" = 0 ] && ! grep -q 'summary\.json' "$OUT" "$ERR"; then
        wrong "there is no summary, and nobody says so"
    fi
    check_json run/summary.json
    check_json run/args.json
    check_tidy run
}

before_far() { rm -rf r "$XDG_CACHE_HOME"; }
words_far() { WORDS=("${TRAIN[@]}" --data s3://bucket --out r); }
after_far() { after_train; }

before_near() { rm -rf near "$XDG_CACHE_HOME"; }
words_near() { WORDS=(stage s3://bucket near --max-bad 0 --quiet); }
after_near() {
    curl -sf -d 'reset=1' "$URL/_control" >/dev/null
    if [ "$CODE" != 0 ] && ! "$STOKER" "${WORDS[@]}" >again 2>&1; then
        wrong "it cannot be staged again: $(head -n 1 again)"
    fi
    for file in sample_submission.csv train-000000.tar test-000000.tar; do
        cmp -s "near/$file" "staged/$file" || wrong "near/$file is not that of a whole run"
    done
}

# check_summary RUN: the summary is valid JSON and agrees with the exit code. A training that ended well but could not
# write another file may be complete and have an exit code other than 0.
check_summary() {
    local status reason
    [ -s "$1/summary.json" ] || return
    check_json "$1/summary.json"
    status=$(json "$1/summary.json" status)
    reason=$(json "$1/summary.json" stop_reason)
    if [ "$CODE" = 0 ]; then
        if [ "$status" = failed ] || [ "$reason" = error ]; then
            wrong "summary.json says $status, $reason"
        fi
        [ "$(json "$1/summary.json" submission)" = submission.csv ] || wrong "summary.json knows no submission"
    elif [ "$status" != failed ] && [ "$reason" != error ]; then
        # The training ended well, but another file could not be written.
        if [ "$status" != complete ] || ! cmp -s "$1/submission.csv" whole/submission.csv; then
            wrong "summary.json says $status, $reason"
        fi
    fi
}

check_json() {
    [ ! -s "$1" ] || [ -z "$(lib_json "$1" 1 2>&1)" ] || wrong "$1 is not valid JSON"
}

check_tidy() {
    local left
    [ -e "$1" ] || return
    left=$(find "$1" -name '.?*' -o -name '*.tmp' -o -name '*.new' | head -n 3 | tr '\n' ' ')
    [ -z "$left" ] || wrong "left over: $left"
}

# ---- one strike ----

# wrong SENTENCE: marks the case as failed; the next strike follows.
wrong() {
    fail "$WHAT: $1; exit code $CODE: $(tail -n 1 "$ERR")"
}

# codes KIND: prints the exit codes that are allowed after a call of this kind has failed. Lack of descriptors or
# threads has the code of lack of memory. A picture that cannot be read is bad data.
codes() {
    case $1 in
    own | libraries | thread | pipe) echo '0|4' ;;
    open) echo '0|3|4|5' ;;
    read) echo '0|3|5' ;;
    write | fsync | rename) echo '0|5' ;;
    s3-denied) echo '0|3|5' ;;
    s3-* | all) echo 0 ;;
    esac
}

# settings KIND N: prints the settings of the object server that make its Nth request fail in this way.
settings() {
    case $1:$2 in
    *:0) echo 'reset=1&clear_stats=1' ;;
    s3-reset:*) echo "reset=1&clear_stats=1&nth=$2&refuse=1" ;;
    s3-500:*) echo "reset=1&clear_stats=1&nth=$2&fail_percent=100" ;;
    s3-short:*) echo "reset=1&clear_stats=1&nth=$2&drop_percent=100" ;;
    s3-denied:*) echo "reset=1&clear_stats=1&nth=$2&nth_on=1&deny=/" ;;
    *) echo 'reset=1&clear_stats=1' ;;
    esac
}

# run_struck WHAT KIND N [on]: runs the command WHAT so that call N of this kind fails. Sets $STRUCK to the call that
# failed, $CALLS to the number of calls and $LIVE to the number of blocks that were not freed. With the kind `all`
# nothing fails, and ${COUNTS[KIND]} is the number of calls of each kind.
declare -A COUNTS
run_struck() {
    local line
    "before_$1"
    "words_$1"
    rm -f report
    [ -z "$URL" ] || curl -sf -d "$(settings "$2" "$3")" "$URL/_control" >/dev/null || fail "$WHAT: no server"
    run_any env LD_PRELOAD="$TORTURE" TORTURE="${2/s3-*/none}" TORTURE_AT="$3" TORTURE_THEN="${4:-}" \
        TORTURE_SPARES="$SPARED" TORTURE_REPORT="$WORK/report" "$STOKER" "${WORDS[@]}"
    STRUCK='' LIVE='' CALLS=0
    [ "$2" != all ] || COUNTS=()
    while read -r line; do
        case $line in
        struck*) STRUCK=${line#struck } ;;
        calls*) CALLS=${line#calls } ;;
        live*) LIVE=${line#live } ;;
        count*)
            line=${line#count }
            COUNTS[${line% *}]=${line#* }
            ;;
        esac
    done < <(cat report 2>/dev/null)
    if [[ $2 == s3-* ]]; then
        curl -sf "$URL/_stats" >stats
        [ "$(json stats faults)" = 0 ] || STRUCK="$3 request"
        CALLS=$(($(json stats requests)))
        LIVE=0
    fi
}

# strike WHAT KIND N [on]: as run_struck, then checks the result. With `on` all later calls fail, too. $STRUCK is
# empty if there were fewer calls. A thread that was about to end may not have freed its blocks, so a run with
# blocks left is repeated: a real leak appears each time.
strike() {
    local allowed
    WHAT="$1, $2 $3${4:+ and on}"
    for _ in 1 2 3; do
        run_struck "$@"
        if [ -z "$LIVE" ] || [ "$LIVE" = 0 ]; then
            break
        fi
    done
    WHAT+=${STRUCK:+ (${STRUCK#* })}
    allowed=$(codes "$2")
    [ "$1" != run ] || allowed+='|126' # the command could not be started
    if [ "$CODE" = 124 ] || [ "$CODE" = 137 ]; then
        wrong "it hangs"
        return
    elif [ "$CODE" -gt 128 ]; then
        wrong "it crashes"
        return
    elif [[ ! $CODE =~ ^($allowed)$ ]]; then
        wrong "the exit code is not one of $allowed"
    elif [ "$CODE" != 0 ] && ! grep -q '^stoker: ' "$ERR"; then
        wrong "it does not say why"
    elif [ -z "$STRUCK" ] && [ "$CODE" != 0 ]; then
        wrong "it fails though nothing has"
    fi
    [ "$LIVE" = 0 ] || wrong "${LIVE:-unknown} blocks of memory were not freed"
    "after_$1"
}

# torture WHAT KIND FIRST STRIDE [on]: strikes the calls FIRST, FIRST + STRIDE and so on until there are no more
# calls, and prints a line for the table.
torture() {
    local n tried=0 passed=0
    for ((n = $3; ; n += $4)); do
        strike "$1" "$2" "$n" "${5:-}"
        [ -n "$STRUCK" ] || break
        tried=$((tried + 1))
        [ "$CODE" != 0 ] || passed=$((passed + 1))
    done
    printf '| %-7s %-9s %-2s every %3d. from %3d: %5d struck, %5d of them delivered all the same\n' \
        "$1" "$2" "${5:-}" "$4" "$3" "$tried" "$passed"
}
