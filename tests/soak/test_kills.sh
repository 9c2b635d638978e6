# kill -9 at random moments of trainings: every file that exists is complete, and `predict` works or says
# clearly that there is no model. SOAK_ROUNDS is the number of kills (100), SOAK_SEED decides their moments.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

rounds=${SOAK_ROUNDS:-100}
RANDOM=${SOAK_SEED:-$$}
echo "SOAK_SEED=${SOAK_SEED:-$$}"
"$STOKER" sample k --layout kaggle --classes 3 --per-class 40 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')

# A run without a kill says how long one takes: kills fall into all of it and a little behind.
begun=$EPOCHREALTIME
"$STOKER" train --data k --out whole --img-size 24 --epochs 4 --quiet || exit 1
took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')

no_args=0 no_submission=0 prior=0 trained=0 done_before=0
for round in $(seq "$rounds"); do
    delay=$(awk -v r="$RANDOM" -v t="$took" 'BEGIN { printf "%.3f", 1.1 * t * r / 32768 }')
    folds=$((RANDOM % 3 == 0 ? 2 : 1))
    it "round $round: kill after $delay s, $folds folds"
    # Every third round starts where the one before was killed, the others afresh.
    [ $((round % 3)) = 0 ] || rm -rf r r.*
    start train --data k --out r --img-size 24 --epochs 4 --folds "$folds" --quiet
    sleep "$delay"
    kill -9 "$PID" 2>/dev/null
    ended 30
    [ "$CODE" = 137 ] || [ "$CODE" = 0 ] || fail "the exit code is $CODE"
    [ "$CODE" != 0 ] || done_before=$((done_before + 1))
    for run_dir in r r.[0-9]*; do
        [ -d "$run_dir" ] || continue
        expect_sound "$run_dir" k/sample_submission.csv "$labels"
        if [ -s "$run_dir/events.jsonl" ]; then
            sed '$d' "$run_dir/events.jsonl" >log
            [ ! -s log ] || expect_jsonl log # the last line can be torn
        fi
    done
    if [ ! -e r/args.json ]; then
        no_args=$((no_args + 1))
        run predict --run r
        expect_exit 2
        expect_err 'r.*(no such folder|not a run folder)'
        continue
    fi
    if [ ! -e r/submission.csv ]; then
        no_submission=$((no_submission + 1))
    fi
    rm -f again.csv
    run predict --run r --out again.csv
    expect_exit 0
    expect_submission again.csv k/sample_submission.csv "$labels"
    if find r/weights -name best.safetensors 2>/dev/null | grep -q .; then
        trained=$((trained + 1))
        expect_out 'from [12] (of 2 )?model'
    else
        prior=$((prior + 1))
        expect_out 'no trained model'
    fi
done

it "kills fell before, into and behind training"
echo "     without args.json $no_args, without submission $no_submission, priors $prior, trained $trained, done $done_before"
[ "$rounds" -lt 50 ] || [ "$trained" -gt 0 ] || fail "no kill fell behind the first epoch"
finish
