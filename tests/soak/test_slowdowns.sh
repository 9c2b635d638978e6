# From some moment of a run on, the process is stopped four fifths of the time. Nothing that it can measure
# shows the reason. It must still end in time and deliver what it trained. SOAK_BUDGET is the budget of
# each run in seconds (25).
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

budget=${SOAK_BUDGET:-25}
"$STOKER" sample k --layout kaggle --classes 4 --per-class 100 --quiet || exit 1
wide_sample k

# slow_down: until it has ended, what was started runs a fifth of the time.
slow_down() {
    while kill -STOP "$PID" 2>/dev/null; do
        sleep 0.08
        kill -CONT "$PID" 2>/dev/null
        sleep 0.02
    done
}

echo '| fell at |   took | epochs | status   | ended by | what' >table
for options in '' '--folds 3' '--tta 8' '--model resnet18 --img-size 64'; do
    for part in 20 50 75 84 90; do # percent of the budget
        it "falls after $part % of $budget s, options: $options"
        rm -rf r
        begun=$EPOCHREALTIME
        # shellcheck disable=SC2086  # words
        start train --data k --out r --budget "$budget" $options
        sleep "$(awk -v b="$budget" -v p="$part" 'BEGIN { print b * p / 100 }')"
        slow_down
        ended "$budget"
        since "$begun"
        expect_exit 0
        # It cannot end while it is stopped.
        expect_took "$budget.1"
        expect_delivered r k/sample_submission.csv "$LABELS"
        expect_summary r/summary.json stop_reason budget
        # The time kept for prediction can become too short once it has begun. Then early predictions stay.
        [ ! -e r/weights/best.safetensors ] ||
            { [ "$part" -gt 80 ] && ! grep -q 'test images predicted early' r/events.jsonl; } ||
            expect_summary r/summary.json status 'complete|partial'
        printf '| %5s %% | %6.2f | %6s | %-8s | %-8s | %s\n' "$part" "$TOOK" \
            "$(json r/summary.json epochs_done)" "$(json r/summary.json status)" \
            "$(json r/summary.json stop_reason)" "$options" >>table
    done
done
lib_close
cat table
finish
