# test_bench_storage.sh - `stoker bench storage`: folders, slow mounts and S3, figures and errors.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for and expect
. "$(dirname "$0")/lib.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so
export XDG_CACHE_HOME=$WORK/kept
export AWS_ACCESS_KEY_ID=bench AWS_SECRET_ACCESS_KEY=hidden-words AWS_REGION=us-east-1
unset AWS_SESSION_TOKEN AWS_PROFILE AWS_ENDPOINT_URL_S3

"$STOKER" sample f --classes 4 --per-class 20 --quiet || exit 1
mkdir -p loose/deep
cp f/train/*/*.* loose/deep 2>/dev/null || find f -name '*.jpg' -exec cp {} loose/deep \;
short=(--seconds 0.2)

# figure KEY: the value of a key of the one line of JSON in $OUT, outside of the steps.
figure() {
    sed -E 's/"steps": \[[^]]*\]//' "$OUT" | sed -n -E 's/.*"'"$1"'": ("[^"]*"|[^,}]*).*/\1/p'
}

# step N KEY: the value of a key of the step with N in flight.
step() {
    grep -Eo '"in_flight": '"$1"',[^}]*' "$OUT" | sed -n -E 's/.*"'"$2"'": ([^,}]*).*/\1/p'
}

# is_above X Y: for numbers with fractions.
is_above() {
    awk -v x="$1" -v y="$2" 'BEGIN { exit !(x ~ /^[0-9]/ && x + 0 > y + 0) }'
}

it "prints one object on one line for programs"
run bench storage --data f "${short[@]}" --in-flight 8,1,2 --json
expect_exit 0
expect_empty "$ERR"
expect_json "$OUT"
expect "there is one line" [ "$(wc -l <"$OUT")" = 1 ]
expect "each number was tried" [ "$(grep -Eo '"in_flight": [0-9]+' "$OUT" | tr -dc '0-9\n' | xargs)" = "1 2 8" ]
for n in 1 2 8; do
    for key in objects_per_second bytes_per_second p50_ms p90_ms p99_ms max_ms seconds; do
        expect "$key with $n in flight is above 0: $(step $n $key)" is_above "$(step $n $key)" 0
    done
    expect "there are dozens of reads with $n" is_above "$(step $n reads)" 47
    expect "none failed with $n" [ "$(step $n failed)" = 0 ]
done
for key in best_objects_per_second best_in_flight objects list_s mean_bytes reads; do
    expect "$key is above 0: $(figure $key)" is_above "$(figure $key)" 0
done
for key in retries timeouts failed cache_hits cache_misses; do
    expect "$key is 0" [ "$(figure $key)" = 0 ]
done
expect "a slow rate needs one read at a time" \
    [ "$("$STOKER" bench storage f "${short[@]}" --in-flight 1 --rate 0.5 --json |
        grep -Eo '"enough_in_flight": 1,')" ]

it "says when the rate was not reached"
run bench storage f "${short[@]}" --in-flight 1,2 --rate 1e9 --json
expect_exit 0
expect "there is no such number" [ "$(figure enough_in_flight)" = null ]
run bench storage f "${short[@]}" --in-flight 1,2 --rate 1e9
expect_out '^1,000,000,000 images/s were not reached; the location gave [0-9,]+ objects/s with [12] in flight, '

it "prints a table and a sentence for people, and nothing when it is to be quiet"
run bench storage f "${short[@]}" --rate 20
expect_exit 0
expect_empty "$ERR"
expect_out '^in flight +objects/s +MB/s +p50 ms +p90 ms +p99 ms +max ms$'
expect_out '^ +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$'
expect_out '^20 images/s need [0-9]+ in flight; the location gave [0-9,]+ objects/s with [0-9]+, (more brings nothing|the most that was tried)$'
expect_out '^objects +[0-9]+ of [0-9.]+ [kM]?B in the mean'
run bench storage f "${short[@]}" --in-flight 1 --quiet
expect_exit 0
expect_empty "$OUT"
expect_empty "$ERR"

it "takes any folder with pictures, and shards"
run bench storage loose "${short[@]}" --in-flight 2 --json
expect_exit 0
expect "pictures below it count" is_above "$(figure objects)" 10
tar -cf loose.tar -C loose deep
run bench storage loose.tar "${short[@]}" --in-flight 2 --json
expect_exit 0
expect "members count" is_above "$(figure objects)" 10

it "measures through a cache when one is named"
run bench storage f "${short[@]}" --in-flight 1 --cache kept-here --json
expect_exit 0
expect "there were misses" is_above "$(figure cache_misses)" 0
run bench storage f "${short[@]}" --in-flight 1 --cache kept-here --json
expect_exit 0
expect "and then hits: $(figure cache_hits)" is_above "$(figure cache_hits)" 0

it "refuses wrong usage and places without pictures"
for case in '|--data is missing' 'f --in-flight 0|--in-flight 0: expected' 'f --in-flight 1,x|1,x' \
    'f --rate 0|--rate' 'f --seconds 0|--seconds' 'f extra|too many' 'f --data f|mean the same'; do
    # shellcheck disable=SC2086  # words
    run bench storage ${case%|*}
    expect_exit 2
    expect_err "${case#*|}"
    expect_empty "$OUT"
done
run bench storage nowhere
expect_exit 3
expect_err 'nowhere'
mkdir hollow
run bench storage hollow --json
expect_exit 3
expect_err 'no pictures in hollow'
expect_empty "$OUT"

it "counts failed reads, and ends when they are many"
mkdir broken
for i in 1 2 3 4; do
    ln -s nothing "broken/$i.jpg"
done
run bench storage broken "${short[@]}"
expect_exit 5
expect_err '4 of 4 reads failed; first: .*broken/[1-4].jpg'
expect_empty "$OUT"

it "ends at Ctrl-C"
start bench storage --data f --seconds 1000
wait_for 30 listens || fail "it does not catch the signal"
kill -INT "$PID"
ended 60
expect_exit 130
expect_err 'stopped'
expect_empty "$OUT"

it "shows what a slow mount needs, and ends when the mount is dead"
if is_sanitized; then
    skip "the preloaded library and the sanitizer do not go together"
else
    export SLOW_FILES_ROOT=$WORK/f
    run_any env SLOW_FILES_OPEN_MS=10 LD_PRELOAD="$SLOW" "$STOKER" bench storage f "${short[@]}" \
        --in-flight 1,16 --rate 200 --json
    expect_exit 0
    expect "one at a time gives 100 objects/s at most" is_above 100.5 "$(step 1 objects_per_second)"
    expect "a read takes 10 ms at least" is_above "$(step 1 p50_ms)" 9.99
    expect "more at a time give more" is_above "$(step 16 objects_per_second)" "$(step 1 objects_per_second)"
    run_any env SLOW_FILES_DEAD_AFTER=60 LD_PRELOAD="$SLOW" "$STOKER" bench storage f "${short[@]}" \
        --read-timeout 0.2
    expect_exit 5
    expect_err 'nothing can be read from f any more'
    expect_empty "$OUT"
fi

it "measures S3, with many reads in flight on few threads"
serve --root f --delay-ms 10
export AWS_ENDPOINT_URL=$URL
run bench storage s3://bucket "${short[@]}" --in-flight 1,32 --rate 50 --json
if grep -q 'no S3 support' "$ERR"; then
    skip "this build has no S3"
    stop
    finish
fi
expect_exit 0
expect_json "$OUT"
expect "one at a time gives 100 objects/s at most" is_above 100.5 "$(step 1 objects_per_second)"
expect "many give more" is_above "$(step 32 objects_per_second)" "$(step 1 objects_per_second)"
expect "on few threads: $(figure threads)" is_above 5 "$(figure threads)"
expect "nothing was cached" [ "$(figure cache_misses)" = 0 ]
expect_no_file "$XDG_CACHE_HOME/stoker/packs"

# control SETTINGS: changes what goes wrong on the server.
control() {
    run_any curl -sS -d "$1" "$URL/_control"
    expect_exit 0
    expect_empty "$OUT"
}

it "counts retries of S3, and says what was refused"
if ! command -v curl >/dev/null 2>&1; then
    skip "there is no curl"
    stop
    finish
fi
control 'fail_percent=20&fail_status=500'
run bench storage s3://bucket "${short[@]}" --in-flight 16 --json
expect_exit 0
expect "reads were tried again" is_above "$(figure retries)" 0
expect "none failed" [ "$(figure failed)" = 0 ]
control 'reset=1&deny=.jpg'
run bench storage s3://bucket "${short[@]}" --json
expect_exit 5
expect_err '^stoker: '
expect_no_err 'hidden-words'
expect_empty "$OUT"
stop

finish
