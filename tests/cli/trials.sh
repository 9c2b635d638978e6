# trials.sh - helpers for whole runs in which something goes wrong: what must hold at the end of every run,
# and the preloaded libraries that make it go wrong. Sourced after lib.sh.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2034  # lib.sh reads variables

FAKES=$(dirname "$STOKER")/tests

# wide_sample DATA: gives the sample file of a Kaggle data set one column per class, so that the submission
# holds probabilities. Sets $LABELS to the classes.
wide_sample() {
    LABELS=$(tail -n +2 "$1/train.csv" | cut -d , -f 2 | sort -u | tr '\n' ' ')
    awk -F , -v labels="$LABELS" 'BEGIN { classes = split(labels, name, " ") }
        NR == 1 { printf "%s", $1; for (i = 1; i <= classes; i++) printf ",%s", name[i]; print ""; next }
        { printf "%s", $1; for (i = 1; i <= classes; i++) printf ",%s", i == 1; print "" }' \
        "$1/sample_submission.csv" >"$1/wide" && mv "$1/wide" "$1/sample_submission.csv"
}

# can_fake LIBRARY: whether a preloaded library works with this command. If not, the case is skipped.
can_fake() {
    if is_sanitized; then
        skip "the sanitizers do not like a library preloaded before their own"
    elif [ "$1" = odd_device ] && ! ldd "$STOKER" | grep -q blas; then
        skip "BLAS is a part of the command"
    else
        return 0
    fi
    return 1
}

# models_in RUN: prints how many models the last submission of a run was made from.
models_in() {
    awk '/"event": "submission"/ { sub(/.*"models": /, ""); last = $0 + 0 } END { print last }' "$1/events.jsonl"
}

# summary_trouble RUN: prints where the summary of a run contradicts its other files; nothing if all is right.
summary_trouble() {
    local key rows models status text budget of=$1/summary.json
    text=$(<"$of")
    for key in status stop_reason best_acc1 metric best_metric epochs_done folds_done folds_planned \
        images_per_second wait_fraction budget_s used_s reserve_s batch workers prefetch device precision \
        bad_images verdict submission; do
        [[ $text == *"\"$key\": "* ]] || echo "it lacks $key"
    done
    status=$(json "$of" status)
    rows=$(($(wc -l <"$1/results.csv") - 1))
    [ "$(json "$of" epochs_done)" = "$rows" ] || echo "epochs_done is not $rows, as in results.csv"
    rows=$(($(wc -l <"$1/bad_images.csv") - 1))
    [ "$(json "$of" bad_images)" = "$rows" ] || echo "bad_images is not $rows, as in bad_images.csv"
    # With folds weights/best.safetensors is a second name.
    rows=$(find "$1/weights" -mindepth "$([ -d "$1/weights/fold0" ] && echo 2 || echo 1)" -name best.safetensors 2>/dev/null | wc -l)
    [ "$(json "$of" folds_done)" = "$rows" ] || echo "folds_done is not $rows, as in weights"
    tail -n 1 "$1/events.jsonl" |
        grep -q "\"event\": \"stop\", \"status\": \"$status\", \"stop_reason\": \"$(json "$of" stop_reason)\"" ||
        echo "the last event is not its stop"
    budget=$(json "$of" budget_s)
    [ "$budget" = null ] || awk -v used="$(json "$of" used_s)" -v most="$(allowed "$budget")" \
        'BEGIN { exit !(used <= most) }' || echo "used_s is more than budget_s"
    if [ ! -e "$1/submission.csv" ]; then
        [ "$(json "$of" submission)" = null ] || echo "there is no submission"
        return
    fi
    [ "$(json "$of" submission)" = submission.csv ] || echo "it does not know of the submission"
    models=$(models_in "$1")
    case $status in
    complete) [ "$models" = "$(json "$of" folds_planned)" ] || echo "complete from $models models" ;;
    partial) [ "$models" -gt 0 ] || echo "partial from no model" ;;
    prior)
        [ "$models" = 0 ] || echo "prior from $models models"
        [ "$(tail -n +2 "$1/submission.csv" | cut -d , -f 2- | sort -u | wc -l)" = 1 ] ||
            echo "prior with rows that differ"
        ;;
    esac
}

# expect_delivered RUN SAMPLE LABELS: the run has a right submission, complete files and a true summary.
expect_delivered() {
    local trouble
    expect_submission "$1/submission.csv" "$2" "$3"
    expect_sound "$1" "$2" "$3"
    expect_jsonl "$1/events.jsonl"
    expect_tidy "$1"
    if [ ! -s "$1/summary.json" ]; then
        fail "$1 has no summary.json"
        return
    fi
    trouble=$(summary_trouble "$1")
    [ -z "$trouble" ] || fail "$1/summary.json: ${trouble%%$'\n'*}"
}

# launch NAME WORDS...: runs `env WORDS` in the background; several may run at once. `landed NAME` waits for it
# and sets $OUT, $ERR, $CODE and $TOOK as `timed` does.
declare -A launched_pid launched_words
launch() {
    launched_words[$1]=${*:2}
    (
        begun=$EPOCHREALTIME
        timeout -k 5 "${RUN_TIMEOUT:-600}" env "${@:2}" >"$1.out" 2>"$1.err" </dev/null
        echo "$? $begun $EPOCHREALTIME" >"$1.end"
    ) 2>/dev/null & # the shell tells of those that were killed
    launched_pid[$1]=$!
}

landed() {
    wait "${launched_pid[$1]}"
    lib_command=${launched_words[$1]}
    cp "$1.out" "$OUT"
    cp "$1.err" "$ERR"
    read -r CODE TOOK < <(awk '{ printf "%d %.3f\n", $1, $3 - $2 }' "$1.end")
}

# ---- a machine that stands still for a while ----

# stalled BUDGET 'AT:SECONDS...' ARGUMENTS...: trains into the folder r. AT seconds after the start, SIGSTOP stops
# the process for SECONDS. Sets $TOOK, and $RESUMED to the end of the last stop. The file r.stops has the begin and
# the end of each stop. All times are measured, since a busy machine wakes this shell late, too.
stalled() {
    local budget=$1 moments=$2 begun moment shell
    shift 2
    lib_command="${STOKER##*/} train --out r --budget $budget $*"
    rm -rf r r.pid r.end
    begun=$EPOCHREALTIME
    RESUMED=0
    : >r.stops
    ( # a shell that only waits for the command notes when it ended
        "$STOKER" train --out r --budget "$budget" "$@" >"$OUT" 2>"$ERR" </dev/null &
        echo "$!" >r.pid
        wait "$!"
        echo "$? $EPOCHREALTIME" >r.end
    ) 2>/dev/null &
    shell=$!
    wait_for 30 [ -s r.pid ]
    PID=$(<r.pid)
    wait_for 30 has_begun
    for moment in $moments; do
        sleep "$(awk -v a="${moment%:*}" -v b="$begun" -v n="$EPOCHREALTIME" 'BEGIN { a -= n - b; print (a > 0 ? a : 0) }')"
        kill -STOP "$PID" 2>/dev/null || break
        moment="$EPOCHREALTIME ${moment#*:}"
        sleep "${moment#* }"
        kill -CONT "$PID" 2>/dev/null
        RESUMED=$(awk -v b="$begun" -v n="$EPOCHREALTIME" 'BEGIN { print n - b }')
        awk -v a="${moment% *}" -v b="$begun" -v n="$RESUMED" 'BEGIN { print a - b, n }' >>r.stops
    done
    wait_for "$((budget * 2 + 10))" [ -s r.end ] || kill -9 "$PID"
    wait "$shell"
    read -r CODE TOOK < <(awk -v b="$begun" '{ printf "%d %.3f\n", $1, $2 - b }' r.end)
}

# trained_until RUN: prints when the run emitted its last step or epoch, or the decision that the last epoch is not
# used, in seconds since its start.
trained_until() {
    grep -E '"event": "(step|epoch)"|"what": "epoch [0-9]+ is not used"' "$1/events.jsonl" | tail -n 1 |
        sed 's/^{"t": \([0-9.]*\).*/\1/'
}

# trained_share RUN [STOPS]: prints when training ended, in percent of the time before the reserve. Time in which
# the process was stopped does not count: the file STOPS has the begin and the end of each stop.
trained_share() {
    awk -v t="$(trained_until "$1")" -v b="$(json "$1/summary.json" budget_s)" \
        -v r="$(json "$1/summary.json" reserve_s)" '
        function still(until) { return $1 < until ? ($2 < until ? $2 : until) - $1 : 0 }
        { t_still += still(t); still_s += still(b - r) }
        END { printf "%d", (b - r > still_s ? 100 * (t - t_still) / (b - r - still_s) : 0) }' "${2:-/dev/null}"
}

# be_busy LOOPS [BURSTS]: starts LOOPS busy loops in the background, and BURSTS more that rest every other second,
# all for a few minutes at most. `rest` ends them.
busy=()
be_busy() {
    local i
    for ((i = 0; i < $1 + ${2:-0}; i++)); do
        (
            until=$((SECONDS + 150))
            while [ "$SECONDS" -lt "$until" ]; do
                [ "$i" -lt "$1" ] || [ $((SECONDS % 2)) = 0 ] || sleep 1
            done
        ) &
        busy+=($!)
    done
}

rest() {
    local pid
    for pid in "${busy[@]}"; do
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    busy=()
}

# ---- pictures that take long ----

# put PICTURE FOLDER NUMBER...: replaces the pictures of a folder that have these numbers, in sorted order.
put() {
    local picture=$1 folder=$2 number
    shift 2
    for number in "$@"; do
        cp "$picture" "$(find "$folder" -type f | sort | sed -n "${number}p")"
    done
}

# ---- a disk on which a run dies, or which fills up ----

# The training of these tests saves little, but everything that a training can save: the best weights, the last
# weights, the state after each epoch and, every $EVERY seconds, within epochs.
EVERY=${EVERY:-300}
EPOCHS=${EPOCHS:-2}
# Left out are the fingerprints of pictures, which another thread writes at a moment that differs from run to run,
# and the folder "state" itself, which is synced with them. The other calls come in the same order each time.
SAVED=/state/:/weights:/validation.csv:-pictures
tiny() { echo "train --data k --device cpu --img-size 16 --epochs $EPOCHS --save-every $EVERY --quiet --out $1"; }

# bad_disk PATHS CALL WHAT RUN: a small training on a disk that is bad from call number CALL on. tests/fakes/bad_disk.c
# explains PATHS, CALL and WHAT.
bad_disk() {
    rm -rf "$4"
    # shellcheck disable=SC2046  # words
    run_any env LD_PRELOAD="$FAKES/bad_disk.so" BAD_DISK_PATHS="$1" BAD_DISK_AT="$2" BAD_DISK_DOES="$3" \
        BAD_DISK_LOG="$WORK/calls" "$STOKER" $(tiny "$4")
}

# calls_of PATHS [FILE]: makes the run `whole` without a fault, and lists its numbered calls with these paths in
# FILE (calls.all).
calls_of() {
    rm -f calls
    bad_disk "$1" 0 none whole
    expect_exit 0
    mv calls "${2:-calls.all}"
}

# expect_as_whole RUN: weights, predictions and figures are those of `whole`, which nothing interrupted.
expect_as_whole() {
    local file
    for file in weights/best.safetensors weights/last.safetensors submission.csv validation.csv; do
        expect_same "$1/$file" "whole/$file"
    done
    [ "$(cut -d , -f 1-8 "$1/results.csv")" = "$(cut -d , -f 1-8 whole/results.csv)" ] ||
        fail "results.csv of $1 differs"
    expect_summary "$1/summary.json" status complete
}

# goes_on RUN: resumes the run, or begins it again if it has no saved state yet. It must end as if nothing had
# happened.
goes_on() {
    if [ -e "$1/state/train.safetensors" ]; then
        run train --resume "$1" --quiet
    else
        # shellcheck disable=SC2046  # words
        run $(tiny "$1")
    fi
    expect_exit 0
    expect_delivered "$1" k/sample_submission.csv "$LABELS"
    expect_as_whole "$1"
}

# killed_at CALL HOW: the run dies at this call, leaves nothing half-written, and can be continued. On a busy machine
# a state may still be on its way to the disk when the next one is due, which is then left out. Such a run has
# fewer calls and is tried again.
killed_at() {
    for _ in 1 2 3 4; do
        rm -f calls
        bad_disk "$SAVED" "$1" "$2" r 2>/dev/null # the shell tells of those that were killed
        if [ "$CODE" != 0 ] || [ "$(wc -l <calls)" -ge "$1" ]; then
            break
        fi
    done
    [ "$CODE" = 137 ] || fail "call $1 ($2): the exit code is $CODE, expected 137"
    expect_sound r k/sample_submission.csv "$LABELS"
    goes_on r
}
