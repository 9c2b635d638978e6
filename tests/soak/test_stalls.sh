# Trainings that are stopped for seconds, or share their cores with two busy loops. None is late. Each trains
# for at least 85 % of the time before the reserve, not counting the stops. Each delivers a model, or
# prints a line that the model does not beat class priors, as after a few steps of a large network.
# SOAK_STALLS names the runs to try, by their seconds. A table at the end lists all runs.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --quiet || exit 1
wide_sample k

# Seconds; moments and lengths of stalls, with commas; busy loops beside it; options.
trials=('10 3:2 0' '10 1.1:2 0' '10 4.6:2 0' '10 6:2 0' '12 2:2 0 --folds 3' '15 5:3 0 --epochs 300'
    '30 4:1,12:1,20:1 0' '30 5.1:1,9.3:1,15.2:1 0' '30 6:4 0 --model resnet18 --img-size 64'
    '60 20:8 0' '60 31.7:8 0' '15 - 2 --model resnet18 --img-size 64' '15 4:2 2' '20 - 2')

echo '| budget | stalls              | busy |   took | reserve | used  | epochs | status   | best  | options' >table
for trial in "${trials[@]}"; do
    read -r budget moments loops options <<<"$trial"
    [[ " ${SOAK_STALLS:-$budget} " == *" $budget "* ]] || continue
    it "$budget s, stalls $moments, $loops busy loops, $options"
    moments=${moments//[-]/}
    be_busy "$loops"
    # shellcheck disable=SC2086  # words
    stalled "$budget" "${moments//,/ }" --data k $options
    rest
    expect_exit 0
    expect_took "$budget"
    expect_delivered r k/sample_submission.csv "$LABELS"
    expect_summary r/summary.json stop_reason budget
    share=$(trained_share r r.stops)
    if ! is_sanitized; then
        grep -q '^class priors instead of the model: \|is not in the ensemble: ' "$OUT" ||
            expect_summary r/summary.json status 'complete|partial'
        expect "training ended at $share % of the time before the reserve" [ "$share" -ge 85 ]
    fi
    printf '| %4d s | %-19s | %4s | %6.2f | %7.2f | %3s %% | %6s | %-8s | %5.1f | %s\n' "$budget" "$moments" "$loops" \
        "$TOOK" "$(json r/summary.json reserve_s)" "$share" "$(json r/summary.json epochs_done)" \
        "$(json r/summary.json status)" "$(json r/summary.json best_acc1 | sed 's/null/nan/')" "$options" >>table
done
lib_close
cat table
finish
