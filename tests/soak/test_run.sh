#!/usr/bin/env bash
# `stoker run` with trainings that misbehave in random ways, budgets from 3 to 20 s and kills at random moments:
# the deadline is kept, no process is left, no output is lost, the summary is true. SOAK_ROUNDS is the number
# of runs (40, which take about eight minutes).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

TRAIN="$ROOT/tests/children/train.py"
ROUNDS=${SOAK_ROUNDS:-40}
RANDOM=${SOAK_SEED:-9}
ways=('--ignore-term' '--away away' '--feeders 2' '--hang-after 1' '--hang-after 1 --hang-printing' '--crash-after 2'
    '--exit-after 2' '--say nothing' '--say epochs' '--ignore-term --away away --feeders 1' '--step-s 0.001')
predictions=('echo predicted' 'exit 3' 'sleep 60' 'trap "" TERM; sleep 60' 'python3 missing.py' '(sleep 60 &) ; echo predicted')

# ours: the processes that carry this round's mark in their surroundings.
ours() {
    grep -lz "^SOAK_MARK=$mark\$" /proc/[0-9]*/environ 2>/dev/null | grep -oE '[0-9]+' | while read -r pid; do
        [ "$pid" = $$ ] || [ "$(cut -d ' ' -f 3 "/proc/$pid/stat" 2>/dev/null)" = Z ] || echo "$pid"
    done
}

expect_nobody() {
    for _ in $(seq 50); do
        [ -n "$(ours)" ] || return 0
        sleep 0.1
    done
    fail "processes are left: $(ours | tr '\n' ' ')"
}

for round in $(seq "$ROUNDS"); do
    way=${ways[RANDOM % ${#ways[@]}]}
    prediction=${predictions[RANDOM % ${#predictions[@]}]}
    budget=$((3 + RANDOM % 18))
    mark=$$-$round
    rm -rf run away
    it "round $round: $budget s, $way, then $prediction"
    began=$EPOCHREALTIME
    # shellcheck disable=SC2086  # several words
    SOAK_MARK=$mark RUN_TIMEOUT=60 run run --out run --budget "${budget}s" --hang 3s --predict "$prediction" -- \
        python3 -u "$TRAIN" $way
    took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    expect "it took $took s" awk -v t="$took" -v b="$budget" 'BEGIN { exit !(t <= b) }'
    expect_nobody
    expect_json run/summary.json
    expect "the code is told" grep -q "\"exit_code\": $CODE," run/summary.json
    case $prediction in
    'echo predicted' | *'; echo predicted') expect_exit 0 && expect_out '^predicted$' ;;
    'exit 3') expect_exit 3 ;;
    'sleep 60') expect_exit 143 ;;
    *trap*) expect_exit 137 ;;
    esac

    it "round $round: killed, $way"
    rm -rf run away
    # shellcheck disable=SC2086
    SOAK_MARK=$mark "$STOKER" run --out run -- python3 -u "$TRAIN" $way >/dev/null 2>&1 &
    stoker=$!
    sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
    {
        kill -9 "$stoker"
        wait "$stoker"
    } 2>/dev/null
    expect_nobody
done

finish
