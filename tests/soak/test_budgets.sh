# Runs with a few budgets of some seconds and twenty from 20 s to 3 min: no run is late, the time before the
# reserve goes into training, and the summary is true. Takes about half an hour. SOAK_BUDGETS names the
# budgets to try, in seconds. A table at the end lists all runs.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"
RUN_TIMEOUT=600

"$STOKER" sample small --layout kaggle --classes 4 --per-class 40 --quiet || exit 1
"$STOKER" sample large --layout kaggle --quiet --per-class 400 || exit 1
for data in small large; do
    wide_sample "$data"
done

# Small and large data, folds, views, another network, long steps; what takes long has more time.
trials=('5 small' '8 large' '12 small --folds 3'
    '20 small' '22 large' '25 small --folds 3' '28 large --batch 256' '32 small --folds 5'
    '35 small --model resnet18 --img-size 64' '40 large --folds 3' '45 small --tta 8'
    '50 large --img-size 96 --tta 4' '56 small --folds 5 --epochs 400' '63 large'
    '71 large --model resnet18 --img-size 64' '80 small --folds 5' '90 large --folds 3'
    '101 large --img-size 128' '113 small' '127 large --folds 5' '143 large --tta 8'
    '160 large --model resnet18 --img-size 128' '180 large --model resnet18 --img-size 224 --batch 32')

# From this budget on the share of training is asked for: a start of a second is much of a few.
least_budget=20
least_share=85

# From a minute on most of the whole budget is used for training and prediction. A third of the time of a long
# prediction, as with --tta, is kept beyond it.
whole_budget=60
whole_share=95

# Percent of the time before the reserve that epochs took, their validations included.
training_share() {
    awk -F , -v budget="$(json r/summary.json budget_s)" -v reserve="$(json r/summary.json reserve_s)" \
        'NR > 1 { s += $11 } END { printf "%d", reserve < budget ? 100 * s / (budget - reserve) : 0 }' r/results.csv
}

# used_share: percent of the budget between the recipe, with which training begins, and the last submission. The event
# of the first step comes a step later.
used_share() {
    awk -v budget="$(json r/summary.json budget_s)" '
        { t = substr($2, 1, length($2) - 1) }
        /"what": "recipe / && first == "" { first = t }
        /"event": "submission"/ { last = t }
        END { printf "%.1f", 100 * (last - first) / budget }' r/events.jsonl
}

echo '| budget |   took | reserve | trained |   used | epochs | status   | ended by | best  | folds  | what' >table
for trial in "${trials[@]}"; do
    read -r budget data options <<<"$trial"
    [[ " ${SOAK_BUDGETS:-$budget} " == *" $budget "* ]] || continue
    it "$budget s: $data $options"
    rm -rf r
    # shellcheck disable=SC2086  # words
    timed train --data "$data" --out r --budget "$budget" $options
    expect_exit 0
    expect_took "$budget"
    labels=$(tail -n +2 "$data/train.csv" | cut -d , -f 2 | sort -u | tr '\n' ' ')
    expect_delivered r "$data/sample_submission.csv" "$labels"
    expect_summary r/summary.json budget_s "$budget"
    expect "used_s is what it took, $TOOK s" \
        awk -v a="$TOOK" -v b="$(json r/summary.json used_s)" 'BEGIN { exit !(b <= a + 0.02 && b > 0.98 * a - 0.5) }'
    status=$(json r/summary.json status)
    reason=$(json r/summary.json stop_reason)
    share=$(training_share)
    case $status in
    complete)
        [ "$(json r/summary.json folds_done)" = "$(json r/summary.json folds_planned)" ] ||
            fail "complete without all folds"
        ;;
    partial) [ "$reason" = budget ] || fail "partial by $reason" ;;
    prior) expect_out 'class priors' ;;
    *) fail "the status is $status" ;;
    esac
    if ! is_sanitized && [ "$reason" = budget ] && [ "$budget" -ge "$least_budget" ]; then
        expect "$share % of the time before the reserve was spent training" [ "$share" -ge "$least_share" ]
    fi
    used=$(used_share)
    if ! is_sanitized && [ "$reason" = budget ] && [ "$budget" -ge "$whole_budget" ] && [[ $options != *--tta* ]]; then
        expect "$used % of the budget was used" awk -v used="$used" -v least="$whole_share" 'BEGIN { exit !(used >= least) }'
    fi
    printf '| %4d s | %6.2f | %7.2f | %5s %% | %4s %% | %6s | %-8s | %-8s | %5.1f | %s of %s | %s\n' "$budget" "$TOOK" \
        "$(json r/summary.json reserve_s)" "$share" "$used" "$(json r/summary.json epochs_done)" "$status" "$reason" \
        "$(json r/summary.json best_acc1 | sed 's/null/nan/')" "$(json r/summary.json folds_done)" \
        "$(json r/summary.json folds_planned)" "$data $options" >>table
done
lib_close
cat table
finish
