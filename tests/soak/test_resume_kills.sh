# Runs that are killed or stopped at random moments and resumed each time: in the end weights, predictions
# and figures are those of a run that was not interrupted. The test makes runs until SOAK_ROUNDS (200) of
# its kill -9 came before the end of a run. SOAK_SEED decides their moments.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

wanted=${SOAK_ROUNDS:-200}
RANDOM=${SOAK_SEED:-$$}
echo "SOAK_SEED=${SOAK_SEED:-$$}"
"$STOKER" sample k --layout kaggle --classes 3 --per-class 40 --quiet || exit 1
wide_sample k
kinds=('--epochs 4'
    '--epochs 2 --folds 3'
    '--epochs 4 --accumulate 5 --mixup 0.4 --cutmix 0.4 --patience 2'
    '--epochs 4 --optimizer adamw --ema 0.9 --freeze-epochs 1 --clip-grad 1'
    '--epochs 5 --lr 5'
    '--epochs 2 --model resnet18 --schedule linear')
signals=(KILL KILL INT TERM)

kills=0 interruptions=0 round=0
while [ "$kills" -lt "$wanted" ] && [ "$round" -lt $((3 * wanted)) ]; do
    round=$((round + 1))
    read -ra options <<<"${kinds[$((round % ${#kinds[@]}))]}"
    every=$((RANDOM % 2 == 0 ? 0 : 300))
    it "round $round: ${options[*]}, state every $every s"
    rm -rf whole r
    begun=$EPOCHREALTIME
    "$STOKER" train --data k --img-size 24 --out whole --quiet "${options[@]}" 2>"$ERR" ||
        fail "the uninterrupted run failed"
    took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    for attempt in $(seq 60); do
        if [ -e r/state/train.safetensors ]; then
            start train --resume r --quiet
        else
            rm -rf r
            start train --data k --img-size 24 --out r --save-every "$every" --quiet "${options[@]}"
        fi
        # Longer and longer, so that even runs without a state within epochs come to an end.
        sleep "$(awk -v r="$RANDOM" -v t="$took" -v n="$attempt" \
            'BEGIN { printf "%.3f", 0.3 + t * (0.4 + n / 10) * r / 32768 }')"
        signal=${signals[$((RANDOM % 4))]}
        kill -"$signal" "$PID" 2>/dev/null
        ended 60
        [ "$CODE" = 137 ] || [ "$CODE" = 0 ] || [ "$CODE" = 130 ] || fail "the exit code is $CODE"
        [ "$(json r/summary.json status 2>/dev/null)" != complete ] || break
        interruptions=$((interruptions + 1)) kills=$((kills + (CODE == 137)))
        expect_sound r k/sample_submission.csv "$LABELS"
    done
    run train --resume r --quiet
    expect_exit 0
    while read -r file; do
        expect_same "whole/$file" "r/$file"
    done < <(cd whole && find . -path '*weights*' -name '*.safetensors' -o -name submission.csv -o -name oof.csv)
    [ "$(cut -d , -f 1-8 whole/results.csv)" = "$(cut -d , -f 1-8 r/results.csv)" ] || fail "results.csv differs"
    expect_delivered r k/sample_submission.csv "$LABELS"
done

it "there were enough kills"
echo "| $kills kills and $((interruptions - kills)) other interruptions in $round runs"
[ "$kills" -ge "$wanted" ] || fail "there were too few"
finish
