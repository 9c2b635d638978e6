# Runs with budgets of 1 to 30 s and random disturbances: the process is stopped for a while, pictures take
# long to decode or are hostile, busy loops run beside it, several of these, or none. No run is late. Each
# has a complete submission from a model that beats class priors. Each trains for at least 85 % of the
# time before the reserve, or prints a line with figures that says why not.
#
# Beside each run a process sleeps and notes how late it wakes up. A run that was late by no more than that
# does not count as late: the machine was too busy.
#
# SOAK_ROUNDS is the number of runs (40), SOAK_SEED decides the disturbances (default: the day), SOAK_ONLY
# lists the numbers of the runs to try, SOAK_KEEP is a folder that keeps the run folders. A table at the end
# lists all runs.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

loops=0 bursts=0
seed=${SOAK_SEED:-$(date +%Y%m%d)}
RANDOM=$seed
echo "SOAK_SEED=$seed"

least_share=85
told_why='^training ends after [0-9]+ steps?: a step takes '
# Saving what was learnt takes its time: so much may be trained where a line says that nothing more fits in.
least_told=75
told_none='^no epoch [0-9]+: a step takes .*, and .* left for this fold before'
least_budget=5 # the share is asked for from here on: a start of a second is much of a few

MAKE=$(dirname "$STOKER")/tests/hostile_picture
for kind in rows scans markers; do
    "$MAKE" "$kind" "$kind" || exit 1
done
"$STOKER" sample few --layout kaggle --classes 4 --per-class 60 --seed "$seed" --quiet || exit 1
"$STOKER" sample many --layout kaggle --seed "$seed" --quiet || exit 1
declare -A labels
for data in few many; do
    wide_sample "$data"
    labels[$data]=$LABELS
done

# draw NAME WORD...: one of the words, into the variable.
draw() {
    local at=$((RANDOM % ($# - 1) + 2))
    printf -v "$1" %s "${!at}"
}

# draw_stalls BUDGET: moments and lengths, in $stalls. None is longer than a fifth of the budget, together
# they are not a third of it, and none reaches into the time that is kept for predicting: what falls there
# can take all of it.
draw_stalls() {
    local count drawn=$RANDOM
    stalls=''
    draw count 0 0 0 1 1 2 3
    stalls=$(awk -v b="$1" -v n="$count" -v r="$drawn" 'BEGIN {
        srand(r)
        part = 0.8 * b / (n + !n)
        for (i = 0; i < n; i++) {
            long = 0.5 + 2.5 * rand()
            long = long < 0.3 * b / n ? long : 0.3 * b / n
            if (long >= 0.3) {
                printf "%.2f:%.2f ", part * i + rand() * (part - long), long
            }
        }
    }')
    stalls=${stalls% }
}

# draw_pictures DATA: the folder d is these data, with pictures in it that take long; $pictures names them.
draw_pictures() {
    local kind part number count
    rm -rf d
    cp -rl "$1" d
    pictures=''
    for part in test train; do
        draw kind none none rows scans markers
        [ "$kind" != none ] || continue
        draw count 1 2 4
        for ((number = 0; number < count; number++)); do
            put_link "$kind" "d/$part" "$((RANDOM % 40 + 1))"
        done
        pictures+="${pictures:+, }$count $kind in $part"
    done
}

# put_link PICTURE FOLDER NUMBER: as put, and the picture that lies there is left alone in other folders.
put_link() {
    local at
    at=$(find "$2" -type f | sort | sed -n "$3p")
    ln -f "$1" "$at"
}

# made_of RUN: what its submission is made of.
made_of() {
    local models some
    models=$(models_in "$1")
    some=$(sed -nE 's/.*there was time to predict ([0-9]+ of [0-9]+) test images only.*/, \1 rows/p' "$OUT" | tail -n 1)
    if [ "$models" != 0 ]; then
        echo "$models of $(json "$1/summary.json" folds_planned) models$some"
    elif [ "$(json "$1/summary.json" epochs_done)" = 0 ]; then
        echo 'priors: no epoch'
    elif grep -q '^class priors instead of the model: \|is not in the ensemble: ' "$OUT"; then
        echo 'priors: no better'
    else
        echo 'priors'
    fi
}

# expect_model RUN: where an epoch was judged, the submission is from its model, or a line gives the figures
# of the best one, which class priors are not worse than.
expect_model() {
    [ "$(models_in "$1")" = 0 ] && [ "$(json "$1/summary.json" epochs_done)" != 0 ] || return 0
    # shellcheck disable=SC2016  # awk's
    expect 'a model that beats class priors is not delivered' awk '
        match($0, /best validation, loss [^ ]* and accuracy [^ ]* %, does not beat class priors, [^ ]* and [^ ]* %/) {
            split(substr($0, RSTART, RLENGTH), word, / /)
            told++
            bad = bad || word[4] + 0 < word[14] + 0 || word[7] + 0 > word[16] + 0
        }
        END { exit bad || !told }' "$OUT"
}

# sleep_beside: until `wake` is called, moments in which a process that only sleeps woke up late, in the
# file sleeper: seconds of the clock, and how late.
mkfifo nothing
sleep_beside() {
    (
        exec 3<>nothing
        last=$EPOCHREALTIME
        while :; do
            read -r -t 0.05 -u 3
            now=$EPOCHREALTIME
            gap=$((${now/./} - ${last/./} - 50000))
            [ "$gap" -lt 50000 ] || echo "$now $gap"
            last=$now
        done >sleeper
    ) 2>/dev/null &
    sleeper=$!
}

# wake SECONDS BUDGET: $OVERSLEPT is the longest of these, $HELD their sum in the last second of a run that has
# just ended after so many, and behind its budget.
wake() {
    kill "$sleeper"
    wait "$sleeper" 2>/dev/null
    read -r OVERSLEPT HELD < <(awk -v took="$1" -v budget="$2" -v now="$EPOCHREALTIME" '
        { late = $2 / 1e6; worst = late > worst ? late : worst }
        $1 > now - (took > budget ? took - budget : 0) - 1 { sum += late }
        END { print worst + 0, sum + 0 }' sleeper)
}

echo '|  # | budget |   took | woken | reserve | used  | epochs | best  | submission             | what' >table
for round in $(seq "${SOAK_ROUNDS:-40}"); do
    budget=$((RANDOM % 30 + 1))
    draw data few few many
    draw options '' '' '' '--img-size 64' '--model resnet18 --img-size 64' '--model convnet_s --img-size 32' \
        '--model resnet18 --img-size 32' '--folds 3' '--tta 4'
    draw_stalls "$budget"
    draw_pictures "$data"
    draw loops 0 0 0 1 2
    draw bursts 0 0 0 1 2
    [[ " ${SOAK_ONLY:-$round} " == *" $round "* ]] || continue
    what="$data${options:+ $options}${stalls:+; stops at $stalls}${pictures:+; $pictures}"
    [ "$loops" = 0 ] || what+="; $loops busy"
    [ "$bursts" = 0 ] || what+="; $bursts in bursts"
    it "$round: $budget s: $what"
    be_busy "$loops" "$bursts"
    sleep_beside
    # shellcheck disable=SC2086  # words
    stalled "$budget" "$stalls" --data d --seed "$round" $options
    wake "$TOOK" "$budget"
    rest
    expect_exit 0
    expect_submission r/submission.csv d/sample_submission.csv "${labels[$data]}"
    share=$(trained_share r r.stops)
    if awk -v a="$RESUMED" -v b="$budget" 'BEGIN { exit !(a > 0.85 * b) }'; then
        skip "this machine was so busy that it let the run go on after $RESUMED s"
    elif awk -v a="$TOOK" -v b="$budget" -v h="$HELD" 'BEGIN { exit !(a > b && a - b <= h) }'; then
        skip "it took $TOOK s, and a process that only sleeps was kept waiting for $HELD s of the last"
    else
        expect_took "$budget"
        expect_delivered r d/sample_submission.csv "${labels[$data]}"
        is_sanitized || expect_model r
    fi
    if ! is_sanitized && [ "$lib_state" != skipped ] && [ "$budget" -ge "$least_budget" ] &&
        [ "$(json r/summary.json stop_reason)" = budget ]; then
        [ "$share" -ge "$least_share" ] || grep -Eq "$told_why" "$OUT" ||
            { [ "$share" -ge "$least_told" ] && grep -Eq "$told_none" "$OUT"; } ||
            fail "training ended at $share % of the time before the reserve, and no line says why"
    fi
    printf '| %2d | %4d s | %6.2f | %5.2f | %7.2f | %3s %% | %6s | %5.1f | %-22s | %s\n' "$round" "$budget" "$TOOK" \
        "$OVERSLEPT" \
        "$(json r/summary.json reserve_s)" "$share" "$(json r/summary.json epochs_done)" \
        "$(json r/summary.json best_acc1 | sed 's/null/nan/')" "$(made_of r)" "$what" | tee -a table
    [ -z "${SOAK_KEEP:-}" ] || cp -r r "$SOAK_KEEP/$round"
done
lib_close
cat table
finish
