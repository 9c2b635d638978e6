# kill -9 at random moments of runs that fill a cache, one or two runs at a time, in a cache with room and in
# one that is nearly full. Afterwards every byte read through the cache is right, and no run fails.
# SOAK_ROUNDS is the number of kills (50), SOAK_SEED decides their moments.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2034  # cache_kills.sh reads variables
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/cache_kills.sh
. "$ROOT/tests/cli/cache_kills.sh"

RANDOM=${SOAK_SEED:-$$}
echo "SOAK_SEED=${SOAK_SEED:-$$}"
delay_ms=40

it "S3 is built in"
has_s3 || { skip 'built without S3' && finish; }
make_set set 5 80 200000
serve --root set --warm --delay-ms $delay_ms
export AWS_ENDPOINT_URL=$URL

it "fills a cache without a kill"
begun=$EPOCHREALTIME
filler clean cache 1G bench
end_filler clean
expect_exit 0
took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
echo "     $(pack_bytes cache) bytes in $took s"

kill_fillers "${SOAK_ROUNDS:-50}" "$took" 2>/dev/null # the shell tells of those that were killed

it "two processes fill one cache together, and each gets what a run without a cache gets"
control 'delay_ms=0'
run train --data s3://bucket --out r-plain --cache off --img-size 16 --epochs 1 --seed 1
expect_exit 0
for round in 1 2 3; do
    rm -rf cache
    control 'delay_ms=20'
    filler one cache 1G train
    first=$PID
    filler two cache 1G train
    end_filler two
    expect_exit 0
    PID=$first
    end_filler one
    expect_exit 0
    for name in one two; do
        expect_same "r-$name/submission.csv" r-plain/submission.csv
        expect_same "r-$name/weights/best.safetensors" r-plain/weights/best.safetensors
    done
    control 'delay_ms=0&clear_stats=1'
    run_any "$CHECK" s3://bucket set cache 1G
    expect_exit 0
done
finish
