# test_cache.sh - the cache: filled once, kept within its limit, and never a reason to fail.
# shellcheck shell=bash source=tests/cli/lib.sh
# shellcheck disable=SC2034,SC2317  # cache_kills.sh reads variables; functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cache_kills.sh
. "$ROOT/tests/cli/cache_kills.sh"

RANDOM=${SOAK_SEED:-$$}
delay_ms=10
it "S3 is built in"
has_s3 || { skip 'built without S3' && finish; }
make_set set 3 20 200000
objects=$(find set -type f | wc -l)
serve --root set --warm
export AWS_ENDPOINT_URL=$URL

# train RUN ...: one short training; gets tells how many objects the server was asked for meanwhile.
train() {
    control 'clear_stats=1'
    run train --data s3://bucket --out "$1" --img-size 16 --epochs 2 --seed 1 "${@:2}"
    gets=$(asked gets)
}

# as_without RUN: nothing else came out than without a cache.
as_without() {
    expect_same "$1/submission.csv" r-off/submission.csv
    expect_same "$1/weights/best.safetensors" r-off/weights/best.safetensors
}

it "--cache off keeps nothing"
train r-off --cache off
expect_exit 0
off_gets=$gets
expect "pictures are asked for in both epochs, $gets times" [ "$gets" -gt "$objects" ]
expect_no_file kept/stoker/packs

it "is filled in the first epoch, and the next run asks the server for nothing"
train r-first --cache cache
expect_exit 0
as_without r-first
expect_out 'cache in cache'
# What has just come is on its way to the disk: the first reads of the next epoch may not find it.
expect "less is asked for than without it: $gets" [ "$gets" -lt "$off_gets" ]
train r-second --cache cache
expect_exit 0
as_without r-second
expect "nothing is asked for, not $(asked requests) requests" [ "$(asked requests)" = 0 ]
run_any "$CHECK" s3://bucket set cache 1G
expect_exit 0
expect_out ' 0 wrong'

it "is there by itself for data that is far away"
train r-auto
expect_exit 0
as_without r-auto
expect "it lies in the user's cache" [ "$(pack_bytes kept/stoker)" -gt 1000000 ]

it "keeps to its limit, says that it is full, and goes on"
train r-limit --cache small --cache-size 1M
expect_exit 0
as_without r-limit
expect_said 'the cache in small(/packs)? is full'
expect "it is larger than 1 MB: $(pack_bytes small)" [ "$(pack_bytes small)" -le $((1 << 20)) ]
expect "it is of use" [ "$(pack_bytes small)" -gt 500000 ]
expect "less is asked for than without it: $gets" [ "$gets" -lt "$off_gets" ]

it "goes on where nothing more can be written, and says so"
largest=$(find r-off -type f -printf '%k\n' | sort -n | tail -n 1) # of what a run writes anyway
# shellcheck disable=SC2016  # for the inner shell
run_any bash -c 'ulimit -f $1; shift; exec "$@"' - $((largest + 100)) "$STOKER" train \
    --data s3://bucket --out r-short --img-size 16 --epochs 2 --seed 1 --cache short
expect_exit 0
expect_said 'cannot write to the cache in short(/packs)?: File too large; the run goes on'
as_without r-short
run_any "$CHECK" s3://bucket set short 1G
expect_exit 0
expect_out ' 0 wrong, [1-9][0-9]* hits'

it "goes on when the disk is full, and says so"
mkdir tiny
if mount -t tmpfs -o size=67600k tmpfs tiny 2>/dev/null; then
    train r-full --cache tiny --cache-size 1G
    expect_exit 0
    as_without r-full
    expect_said 'the cache in tiny(/packs)? (stops growing|is full)|cannot write to the cache in tiny'
    umount tiny
else
    skip 'no file system can be mounted'
fi

it "leaves it alone when its disk hangs"
if is_sanitized; then
    skip "a sanitizer does not like libraries before its own"
else
    has_cache_open() { find "/proc/$PID/fd" -lname '*/cache/packs/*' | grep -q .; }
    LD_PRELOAD=$(dirname "$STOKER")/tests/slow_files.so SLOW_FILES_ROOT=$WORK/cache SLOW_FILES_DEAD_WHILE=$WORK/dead \
        start bench storage s3://bucket --cache cache --read-timeout 1 --seconds 4 --in-flight 4 --json
    wait_for 30 has_cache_open || fail "it does not open the cache"
    touch dead
    ended 60
    rm dead
    expect_exit 0
    expect_out '"failed": 0,.*"timeouts": [1-8],'
fi

it "fetches again what is damaged"
cp -r cache spoiled
size=$(stat -c %s spoiled/packs/pack-0000.data)
for at in 100 $((size / 2)) $((size - 1000)); do
    printf 'damage' | dd of=spoiled/packs/pack-0000.data bs=1 seek="$at" conv=notrunc status=none
done
control 'clear_stats=1'
run_any "$CHECK" s3://bucket set spoiled 1G
expect_exit 0
expect_out ' 0 wrong'
expect "some are asked for, not $(asked gets)" [ "$(asked gets)" -ge 1 ]
expect "few are asked for, not $(asked gets)" [ "$(asked gets)" -le 6 ]
truncate -s $((size / 3)) spoiled/packs/pack-0000.data
run_any "$CHECK" s3://bucket set spoiled 1G
expect_exit 0
expect_out ' 0 wrong'
head -c 5000 /dev/urandom >spoiled/packs/pack-0000.index
train r-spoiled --cache spoiled
expect_exit 0
as_without r-spoiled

it "--cache ram and --cache decoded give the same every time, and ask for less"
for kind in ram decoded; do
    train "r-$kind" --cache $kind
    expect_exit 0
    expect_no_file $kind
    expect "less is asked for than without it: $gets" [ "$gets" -lt "$off_gets" ]
    train "r-$kind-again" --cache $kind
    expect_exit 0
    expect_same "r-$kind/submission.csv" "r-$kind-again/submission.csv"
done
as_without r-ram

it "refuses a folder that cannot be used when it was asked for, and goes on without when not"
echo 'no folder' >blocked
train r-blocked --cache blocked/deep
expect_exit 5
expect_err 'cannot use the cache that --cache names: .*blocked'
expect "no picture was asked for" [ "$gets" = 0 ]
(
    export XDG_CACHE_HOME=$WORK/blocked
    train r-without
    expect_exit 0
    as_without r-without
    expect_said 'going on without a cache: .*name a folder with --cache'
    [ "$lib_state" != failed ]
) || fail "a run stopped for a cache that nobody asked for"

it "is right after kills"
rm -rf cache
begun=$EPOCHREALTIME
control "delay_ms=$delay_ms"
filler clean cache 1G bench
end_filler clean
took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
kills=3 # tests/soak/test_cache_kills.sh has many
! is_full || kills=5
kill_fillers "$kills" "$took" 2>/dev/null # the shell tells of those that were killed
finish
