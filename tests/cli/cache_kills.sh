# cache_kills.sh - helpers for tests of the cache: a server with pictures, and kill -9 at random
# moments of runs that fill one cache folder. Sourced after lib.sh.
# shellcheck shell=bash disable=SC2034,SC2154,SC2317  # lib.sh reads variables; functions for wait_for

# shellcheck source=tests/cli/s3_set.sh
. "$ROOT/tests/cli/s3_set.sh"
CHECK=$(dirname "$STOKER")/tests/cache_check
killed=0 whole=0 hits=0
for variable in $(compgen -e AWS_); do
    unset "$variable"
done
export HOME=$WORK XDG_CACHE_HOME=$WORK/kept AWS_EC2_METADATA_DISABLED=true no_proxy=127.0.0.1
export AWS_ACCESS_KEY_ID=cache AWS_SECRET_ACCESS_KEY=hidden-words AWS_REGION=us-east-1

control() {
    curl -sf -d "$1" "$URL/_control" >/dev/null || fail "the server does not take $1"
}

# asked NAME: prints a counter of the server; `clear_stats` resets the counters.
asked() {
    curl -sf "$URL/_stats" >stats.json
    json stats.json "$1"
}

# expect_said PATTERN: the last command printed it, on standard output or standard error.
expect_said() {
    cat "$OUT" "$ERR" | grep -Eq -- "$1" || fail "nothing was printed like: $1"
}

# pack_bytes FOLDER: prints the bytes of the packs in a cache folder.
pack_bytes() {
    find "$1/packs" -type f -printf '%s\n' 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }'
}

# make_set FOLDER CLASSES COUNT BYTES: makes pictures and appends up to BYTES to each, so that writing them takes a
# while. Bytes after the end of a JPEG do not matter.
make_set() {
    local file
    "$STOKER" sample "$1" --classes "$2" --per-class "$3" --quiet || exit 1
    while IFS= read -r file; do
        head -c $((RANDOM * $4 / 32768)) /dev/urandom >>"$file"
    done < <(find "$1" -name '*.jpg')
}

# filler NAME CACHE SIZE KIND: starts a run that reads the whole set through the cache, in a process group of its own
# as `start` does. Sets $PID. NAME.out and NAME.err have its output.
filler() {
    local run=(bench loader s3://bucket --epochs 1 --img-size 16 --batch 16 --workers 2 --json)
    if [ "$4" = train ]; then
        rm -rf "r-$1"
        run=(train --data s3://bucket --out "r-$1" --img-size 16 --epochs 1 --seed 1 --workers 2)
    fi
    set -m
    "$STOKER" "${run[@]}" --cache "$2" --cache-size "$3" >"$1.out" 2>"$1.err" </dev/null &
    PID=$!
    set +m
}

# end_filler NAME: waits for $PID, which may have been killed and must not have failed.
end_filler() {
    lib_command="filler $1"
    ended 120
    cp "$1.out" "$OUT"
    cp "$1.err" "$ERR"
    case $CODE in
    137) killed=$((killed + 1)) ;;
    0) whole=$((whole + 1)) ;;
    *) fail "the exit code of a run that filled the cache is $CODE" ;;
    esac
}

# check_bytes CACHE SIZE [run]: reads everything through a copy of the cache, so that the cache itself stays as the
# kill left it. With `run`, a benchmark on that copy must work, too.
check_bytes() {
    rm -rf copy
    cp -r "$1" copy 2>/dev/null || mkdir copy
    control 'delay_ms=0'
    run_any "$CHECK" s3://bucket set copy "$2"
    expect_exit 0
    expect_out ' 0 wrong, '
    hits=$((hits + $(sed -n -E 's/.* ([0-9]+) hits.*/\1/p' "$OUT")))
    if [ "${3:-}" = run ]; then
        run bench loader s3://bucket --cache copy --cache-size "$2" --epochs 1 \
            --img-size 16 --json
        expect_exit 0
        expect_out '"bad": 0,'
    fi
    control "delay_ms=$delay_ms"
}

# kill_fillers KILLS SECONDS: starts fillers and kills each up to SECONDS after its start. After a kill that came too
# late the next comes earlier, since a fuller cache makes runs shorter. Ends after KILLS kills, but not before a
# read was answered by the cache.
kill_fillers() {
    local round=0 size second limit used share before latest=$2
    killed=0 whole=0 hits=0 doubles=0 tight=0 renewed=0
    share=$(du -sb set | cut -f 1)
    while [ "$round" -lt $((3 * $1 + 10)) ] && { [ "$killed" -lt "$1" ] || [ "$hits" = 0 ]; }; do
        round=$((round + 1))
        size=1G kind=bench second=no
        # A full cache tests nothing more, so a new one begins; now and then also without need.
        if [ "$(pack_bytes cache)" -ge $((share * 9 / 10)) ] || [ $((RANDOM % 8)) = 0 ]; then
            rm -rf cache
            renewed=$((renewed + 1))
        fi
        [ $((RANDOM % 4)) = 0 ] && kind=train
        [ $((RANDOM % 3)) = 0 ] && second=yes && doubles=$((doubles + 1))
        if [ $((RANDOM % 4)) = 0 ]; then
            used=$(pack_bytes cache)
            size=$((used + share / 10 + 4096)) tight=$((tight + 1))
        fi
        before=$killed
        delay=$(awk -v r="$RANDOM" -v t="$latest" 'BEGIN { printf "%.3f", t * r / 32768 }')
        it "round $round: $kind, limit $size, two $second, kill after $delay s"
        filler one cache "$size" "$kind"
        first=$PID
        if [ $second = yes ]; then
            filler two cache "$size" bench
            other=$PID
        fi
        sleep "$delay"
        kill -9 "$first" 2>/dev/null
        # The second filler is killed a moment later, or goes on with what the first one left.
        if [ $second = yes ]; then
            if [ $((RANDOM % 2)) = 0 ]; then
                sleep "0.0$((RANDOM % 10))"
                kill -9 "$other" 2>/dev/null
            fi
            PID=$other
            end_filler two
        fi
        PID=$first
        end_filler one
        if [ "$size" != 1G ]; then
            # Two processes that write at the same time may each add a batch that the other has not seen.
            limit=$((size + (8 << 20)))
            expect "the cache is larger than its limit: $(pack_bytes cache) of $size" \
                [ "$(pack_bytes cache)" -le "$limit" ]
        fi
        latest=$2
        if [ "$killed" = "$before" ]; then
            latest=$(awk -v t="$delay" 'BEGIN { print t * 0.7 }')
        fi
        check_bytes cache 1G "$([ $((round % 5)) = 0 ] && echo run)"
    done
    it "as many kills came in time as were wanted, and the cache was of use"
    [ "$killed" -ge "$1" ] || fail "only $killed kills came in time"
    [ "$hits" -gt 0 ] || fail "nothing came from the cache"
    echo "     killed $killed, whole $whole, two at once $doubles, nearly full $tight, begun anew" \
        "$renewed, objects from the cache $hits"
}
