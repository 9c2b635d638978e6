# kill -9 at random moments of a staging: the copy is complete or says that it is not, the same command goes
# on, and in the end every byte is as without a kill. SOAK_ROUNDS is the number of kills (50), SOAK_SEED
# decides their moments.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2034  # lib.sh reads variables
. "$(dirname "$0")/../cli/lib.sh"

rounds=${SOAK_ROUNDS:-50}
RANDOM=${SOAK_SEED:-$$}
echo "SOAK_SEED=${SOAK_SEED:-$$}"
SLOW=$(dirname "$STOKER")/tests/slow_files.so
"$STOKER" sample f --classes 6 --per-class 60 --quiet || exit 1
echo 'no picture' >"f/train/$(find f/train -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | head -n 1)/0007.jpg"

# Three stagings: copies, smaller pictures, and a subset of them.
flags=('--shard-size 20' '--shard-size 15 --max-side 60 --quality 80' '--shard-size 10 --classes 4 --per-class 30 --quality 70')

hash_of() { (cd "$1" && find . -type f ! -name .lock | LC_ALL=C sort | xargs -d '\n' sha256sum); }

# plan_in FOLDER: which of the three stagings it holds or was about to; none when it holds none.
plan_in() {
    local about=$1/stage.json plan
    [ ! -e "$1/staging.json" ] || about=$1/staging.json
    plan=$(json "$about" plan 2>/dev/null)
    for i in 0 1 2; do
        [ "$plan" != "$(json "clean$i/stage.json" plan)" ] || echo "$i"
    done
}

# staging COMMAND...: runs with slow files where that is possible, so that kills fall into all of it.
staging() {
    lib_command="stoker stage $*"
    set -m
    if is_sanitized; then
        "$STOKER" stage "$@" >"$OUT" 2>"$ERR" </dev/null &
    else
        env LD_PRELOAD="$SLOW" SLOW_FILES_ROOT="$WORK/f" SLOW_FILES_OPEN_MS=10 \
            "$STOKER" stage "$@" >"$OUT" 2>"$ERR" </dev/null &
    fi
    PID=$!
    set +m
}

it "stages without a kill"
for i in 0 1 2; do
    begun=$EPOCHREALTIME
    # shellcheck disable=SC2086  # words
    staging f "clean$i" ${flags[i]} --quiet
    ended 120
    expect_exit 0
    took[i]=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    hash_of "clean$i" >"clean$i.sums"
done

now=0 killed=0 done_before=0 unfinished=0 changed=0 round=0
while [ "$killed" -lt "$rounds" ] && [ "$round" -lt $((4 * rounds)) ]; do
    round=$((round + 1))
    # Now and then the staging is replaced by another, cut off or not. When the kill came before
    # that had begun, what was there before is still there, and must be.
    if [ $((RANDOM % 6)) = 0 ]; then
        now=$((RANDOM % 3)) changed=$((changed + 1))
    fi
    there=$(plan_in cut)
    overwrite=
    [ "${there:-$now}" = "$now" ] || overwrite=--overwrite
    delay=$(awk -v r="$RANDOM" -v t="${took[now]}" 'BEGIN { printf "%.3f", 1.05 * t * r / 32768 }')
    it "round $round: staging $now $overwrite, kill after $delay s"
    # shellcheck disable=SC2086  # words
    staging f cut ${flags[now]} $overwrite
    sleep "$delay"
    kill -9 "$PID" 2>/dev/null
    ended 60
    case $CODE in
    137) killed=$((killed + 1)) ;;
    0) done_before=$((done_before + 1)) ;;
    *) fail "the exit code is $CODE" ;;
    esac
    # A reader sees whole pictures of one staging or is told that there is none.
    run bench loader cut --seconds 0.1 --img-size 24 --workers 1 --json
    if [ "$CODE" = 0 ]; then
        expect_out '"bad": [01],'
    else
        unfinished=$((unfinished + 1))
        expect_exit 3
    fi
    if [ "$CODE" = 0 ] && [ ! -e cut/staging.json ]; then
        hash_of cut | grep -v ' \./\.' >cut.sums
        cmp -s cut.sums "clean$(plan_in cut).sums" || fail "a finished staging differs"
        [ $((RANDOM % 4)) = 0 ] || rm -rf cut
    fi
done

it "is the same in the end, byte by byte"
for i in 0 1 2; do
    # shellcheck disable=SC2086  # words
    run stage f cut ${flags[i]} --overwrite
    expect_exit 0
    hash_of cut >cut.sums
    expect_same cut.sums "clean$i.sums"
done
echo "     killed $killed, done before $done_before, unfinished after $unfinished, replaced $changed"
[ "$killed" = "$rounds" ] || fail "too few kills came in time"
finish
