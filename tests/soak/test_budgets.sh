# Budgets from 5 to 60 s are never overrun, and the summary tells the truth. SOAK_BUDGETS is the list
# of seconds; SOAK_ROUNDS how many of it are tried.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
RUN_TIMEOUT=300

read -r -a budgets <<<"${SOAK_BUDGETS:-5 6 7 8 10 12 15 20 25 30 40 50 60}"
rounds=${SOAK_ROUNDS:-${#budgets[@]}}
"$STOKER" sample small --layout kaggle --classes 4 --per-class 40 --quiet || exit 1
"$STOKER" sample large --layout kaggle --quiet --per-class 400 || exit 1

# What is tried changes with the round: small and large data, folds, another network, long steps.
cases=('small' 'large' 'small --folds 3' 'large --model resnet18' 'large --img-size 128' 'small --folds 5'
    'large --batch 256' 'small --epochs 3' 'large --model resnet18 --img-size 224 --batch 64')

round=0
for budget in "${budgets[@]}"; do
    [ "$round" -lt "$rounds" ] || break
    read -r data options <<<"${cases[$((round % ${#cases[@]}))]}"
    round=$((round + 1))
    it "$budget s: $data $options"
    rm -rf r
    begun=$EPOCHREALTIME
    # shellcheck disable=SC2086  # words
    run train --data "$data" --out r --budget "$budget" $options
    took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f", b - a }')
    expect_exit 0
    is_sanitized || expect "it took $took s" awk -v a="$took" -v b="$budget" 'BEGIN { exit !(a <= b) }'
    labels=$(tail -n +2 "$data/train.csv" | cut -d , -f 2 | sort -u | tr '\n' ' ')
    expect_submission r/submission.csv "$data/sample_submission.csv" "$labels"
    expect_sound r "$data/sample_submission.csv" "$labels"
    expect_tidy r
    expect_summary r/summary.json budget_s "$budget"
    expect "used_s is what it took, $took s" \
        awk -v a="$took" -v b="$(json r/summary.json used_s)" 'BEGIN { exit !(b <= a + 0.02 && b > a - 0.2) }'
    rows=$(($(wc -l <r/results.csv) - 1))
    expect_summary r/summary.json epochs_done "$rows"
    status=$(json r/summary.json status)
    reason=$(json r/summary.json stop_reason)
    case $status in
    complete)
        [[ $options == *--epochs* ]] && [ "$reason" != epochs ] && fail "complete by $reason"
        [ "$(json r/summary.json folds_done)" = "$(json r/summary.json folds_planned)" ] ||
            fail "complete without all folds"
        expect_weights "$(find r/weights -name best.safetensors | sort | head -n 1)"
        ;;
    partial) [ "$reason" = budget ] || fail "partial by $reason" ;;
    prior)
        expect_summary r/summary.json best_acc1 '.*'
        expect_out 'class priors'
        ;;
    *) fail "the status is $status" ;;
    esac
    echo "     took $took s: $status, $rows epochs, best $(json r/summary.json best_acc1)"
done
finish
