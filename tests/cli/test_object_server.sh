# The servers of the tests: objects, listings, errors and every fault of tests/servers/object_server, and the
# delays of slow_files.so.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for and expect
. "$(dirname "$0")/lib.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so

# get PATH [curl's arguments]: the body is in $OUT, the head in head.txt.
get() {
    local path=$1
    shift
    run_any curl -sS --max-time 20 -D head.txt "$@" "$URL$path"
}

control() {
    curl -sS -d "$1" "$URL/_control" >control.txt
    [ ! -s control.txt ] || fail "the control says: $(cat control.txt)"
}

# stat KEY: a count of the server's.
stat_of() {
    curl -sS "$URL/_stats" >stats.json
    json stats.json "$1"
}

status_is() {
    grep -q "^HTTP/1.1 $1 " head.txt || fail "the status is $(head -n 1 head.txt), expected $1"
}

header_is() {
    tr -d '\r' <head.txt | grep -Eiqx "$1: $2" || fail "the head lacks $1: $2"
}

# keys: those of the listing in $OUT, one on each line.
keys() {
    grep -Eo '<Key>[^<]*</Key>' "$OUT" | sed 's/<[^>]*>//g'
}

prefixes() {
    grep -Eo '<CommonPrefixes><Prefix>[^<]*</Prefix>' "$OUT" | sed 's/<[^>]*>//g'
}

# all_keys QUERY: follows the tokens to the end; also counts the pages.
all_keys() {
    local token='' next=first
    PAGES=0
    : >all
    while [ -n "$next" ]; do
        get "/bucket?list-type=2&$1$token"
        keys >>all
        PAGES=$((PAGES + 1))
        next=$(grep -Eo '<NextContinuationToken>[^<]*' "$OUT" | sed 's/.*>//')
        token="&continuation-token=$next"
    done
}

if ! command -v curl >/dev/null 2>&1; then
    it "serves objects"
    skip "there is no curl"
    finish
fi

mkdir -p store/dir/deep 'store/odd keys'
head -c 100000 /dev/urandom >store/big
printf 0123456789 >store/ten
: >store/empty
for i in 1 2 3 4 5 6 7; do
    echo "$i" >"store/dir/$i"
done
echo deep >store/dir/deep/er
echo odd >'store/odd keys/a+b%41 ü&<>".txt'
(cd store && find . -type f | sed 's,^\./,,' | LC_ALL=C sort) >names

# One that is left alone until its time is over.
"$SERVER" --root store --max-seconds 1 >/dev/null </dev/null &
SHORT_PID=$!

# ---- objects ----

serve --root store --bucket "other=store/dir"

it "serves objects with their length, MD5 and time"
get /bucket/big
expect_exit 0
expect_same "$OUT" store/big
status_is 200
header_is content-length 100000
header_is etag "\"$(md5sum <store/big | cut -d ' ' -f 1)\""
header_is last-modified "$(LC_ALL=C date -u -r store/big '+%a, %d %b %Y %H:%M:%S GMT')"
get /bucket/empty
status_is 200
expect_empty "$OUT"
header_is etag '"d41d8cd98f00b204e9800998ecf8427e"'
get /other/3
expect "the other bucket has its own files" [ "$(cat "$OUT")" = 3 ]
get /bucket/ten --head
status_is 200
header_is content-length 10

it "makes a new ETag when a file changes"
printf abc >store/changing
get /bucket/changing
header_is etag '"900150983cd24fb0d6963f7d28e17f72"'
printf abcd >store/changing
get /bucket/changing
header_is etag '"e2fc714c4727ee9395f324cd2e7f331f"'
get /bucket/changing -H 'If-Match: "900150983cd24fb0d6963f7d28e17f72"'
status_is 412
rm store/changing

it "serves parts"
get /bucket/ten -H 'Range: bytes=2-4'
status_is 206
header_is content-range 'bytes 2-4/10'
expect "three bytes" [ "$(cat "$OUT")" = 234 ]
get /bucket/ten -H 'Range: bytes=7-99'
header_is content-range 'bytes 7-9/10'
expect "the end" [ "$(cat "$OUT")" = 789 ]
get /bucket/ten -H 'Range: bytes=8-'
expect "from a byte on" [ "$(cat "$OUT")" = 89 ]
get /bucket/ten -H 'Range: bytes=-3'
header_is content-range 'bytes 7-9/10'
expect "the last bytes" [ "$(cat "$OUT")" = 789 ]
get /bucket/ten -H 'Range: bytes=10-'
status_is 416
expect_out '<Code>InvalidRange</Code>'
get /bucket/ten -H 'Range: bytes=1-2,4-5'
status_is 200
get /bucket/ten -H 'Range: lines=1'
status_is 200

it "decodes keys and stays in its folder"
get '/bucket/odd%20keys/a+b%2541%20%C3%BC%26%3C%3E%22.txt'
expect "the odd key" [ "$(cat "$OUT")" = odd ]
get '/other/../ten' --path-as-is
status_is 404
get '/other/%2E%2E/ten' --path-as-is
status_is 404
get '/bucket//ten' --path-as-is
status_is 404
get '/bucket/te%00n'
status_is 400

it "knows a bucket by the host's name"
get /ten -H 'Host: bucket.localhost'
expect "ten bytes" [ "$(cat "$OUT")" = 0123456789 ]

it "tells errors as S3 does"
get /bucket/absent
status_is 404
expect_out '<Error><Code>NoSuchKey</Code>.*<Key>absent</Key>'
get /bucket/dir
status_is 404
get /nowhere/ten
status_is 404
expect_out '<Code>NoSuchBucket</Code>'
get /bucket/ten -X DELETE
status_is 405

it "keeps connections open"
control clear_stats=1
run_any curl -sS "$URL/bucket/ten" "$URL/bucket/absent" "$URL/bucket/ten" "$URL/_stats"
expect_out '"connections": 1,'
expect_out '"gets": 3,'
expect_out '"status_200": 2'
expect_out '"status_404": 1'

it "answers many at once"
control clear_stats=1
control delay_ms=300
run_any curl -sS -Z --parallel-max 100 "$URL/bucket/ten?[1-100]"
expect "all came" [ "$(wc -c <"$OUT")" = 1000 ]
expect "they were in flight together: $(stat_of max_in_flight)" [ "$(stat_of max_in_flight)" -gt 1 ]
expect "none is left" [ "$(stat_of in_flight)" = 0 ]
control reset=1

# ---- listings ----

it "lists all keys in order"
all_keys ''
expect "$(cat all)" [ "$(sed 's/&quot;/"/g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' all)" = "$(cat names)" ]
expect "one page" [ "$PAGES" = 1 ]
expect_out '<Key>dir/3</Key><LastModified>[0-9-]{10}T[0-9:]{8}.000Z</LastModified><ETag>&quot;6d7fce9fee471194aa8b5b6e47267f03&quot;</ETag><Size>2</Size>'
expect_out '<IsTruncated>false</IsTruncated>'

it "lists in pages"
for size in 1 3 5; do
    all_keys "max-keys=$size&encoding-type=url"
    expect "the keys by pages of $size" [ "$(grep -c . all)" = "$(wc -l <names)" ]
    expect "each once and in order" [ "$(grep -v odd all)" = "$(grep -v odd names)" ]
    expect "$PAGES pages" [ "$PAGES" = $((($(wc -l <names) + size - 1) / size)) ]
done
get '/bucket?list-type=2&max-keys=0'
expect_out '<KeyCount>0</KeyCount>.*<IsTruncated>false</IsTruncated>'
get '/bucket?list-type=2&continuation-token=nonsense'
status_is 400

it "lists what begins with a prefix, and behind a key"
all_keys 'prefix=dir/&start-after=dir/4'
expect "behind: $(tr '\n' ' ' <all)" [ "$(tr '\n' ' ' <all)" = 'dir/5 dir/6 dir/7 dir/deep/er ' ]
all_keys 'prefix=dir/3'
expect "a key that is the prefix" [ "$(cat all)" = dir/3 ]
all_keys 'prefix=zzz'
expect_empty all

it "puts keys together at a delimiter"
for size in 1 2 1000; do
    all_keys "delimiter=/&max-keys=$size"
    expect "the keys at the top" [ "$(tr '\n' ' ' <all)" = 'big empty ten ' ]
done
expect "the folders: $(prefixes)" [ "$(prefixes | tr '\n' '|')" = 'dir/|odd keys/|' ]
get '/bucket?list-type=2&delimiter=/&prefix=dir/'
expect "one folder below" [ "$(prefixes)" = dir/deep/ ]

it "encodes keys when asked to"
get '/bucket?list-type=2&encoding-type=url&prefix=odd'
expect_out '<EncodingType>url</EncodingType>'
expect "encoded: $(keys)" [ "$(keys)" = 'odd+keys/a%2Bb%2541+%C3%BC%26%3C%3E%22.txt' ]

it "sees new files"
echo new >store/dir/new
all_keys 'prefix=dir/n'
expect "the new file" [ "$(cat all)" = dir/new ]
rm store/dir/new
all_keys 'prefix=dir/n'
expect_empty all

it "shows folders as objects, and ETags of parts, when told to"
stop
serve --root store --folder-markers --multipart-mb 0
all_keys 'prefix=dir/'
expect_file all '^dir/$'
expect_file all '^dir/deep/$'
expect_out '&quot;[0-9a-f]{32}-1&quot;'
get /bucket/dir/deep/
status_is 200
expect_empty "$OUT"
stop
serve --root store

# ---- faults ----

it "delays"
control 'delay_ms=60&delay_jitter_ms=10'
get /bucket/ten -o /dev/null -w '%{time_starttransfer}'
expect "$(cat "$OUT") s until the first byte" awk -v s="$(cat "$OUT")" 'BEGIN { exit !(s >= 0.06) }'
control 'reset=1&tail_percent=100&tail_ms=80'
get /bucket/ten -o /dev/null -w '%{time_starttransfer}'
expect "$(cat "$OUT") s until the first byte" awk -v s="$(cat "$OUT")" 'BEGIN { exit !(s >= 0.08) }'
expect "the tail is counted" [ "$(stat_of tails)" = 1 ]
control reset=1

it "limits the rate"
control rate_kbps=4000
get /bucket/big -w '%{stderr}%{time_total}'
expect_same "$OUT" store/big
expect "$(cat "$ERR") s for 100 kB at 500 kB/s" awk -v s="$(cat "$ERR")" 'BEGIN { exit !(s >= 0.19) }'
control reset=1

it "drops connections within the body"
control 'drop_percent=100&clear_stats=1'
for _ in 1 2 3 4 5 6; do
    get /bucket/big
    expect "curl says $CODE, expected 18 or 56" [ "$CODE" = 18 -o "$CODE" = 56 ]
    expect "less than all came" [ "$(wc -c <"$OUT")" -lt 100000 ]
done
expect "they are counted" [ "$(stat_of fault_drop)" = 6 ]
control reset=1

it "hits one request, or all from one on"
control 'fail_percent=100&nth=2'
for status in 200 500 200; do
    get /bucket/ten
    status_is "$status"
done
control 'reset=1&nth=2&nth_on=1&deny=ten'
for status in 200 403 403; do
    get /bucket/ten
    status_is "$status"
done
control reset=1

it "cuts objects in whole answers"
control truncate_percent=100
get /bucket/big
expect_exit 0
size=$(wc -c <"$OUT")
expect "$size bytes" [ "$size" -gt 0 -a "$size" -lt 100000 ]
header_is content-length "$size"
head -c "$size" store/big >part
expect_same "$OUT" part
header_is etag "\"$(md5sum <store/big | cut -d ' ' -f 1)\""
control reset=1

it "corrupts one bit"
control corrupt_percent=100
get /bucket/big
expect_exit 0
expect "as long as ever" [ "$(wc -c <"$OUT")" = 100000 ]
expect "one byte differs" [ "$(cmp -l "$OUT" store/big | wc -l)" = 1 ]
get /bucket/ten -H 'Range: bytes=2-4'
expect "in a part too" [ "$(wc -c <"$OUT")" = 3 -a "$(cat "$OUT")" != 234 ]
control reset=1

it "fails"
control fail_percent=100
get /bucket/ten
status_is 500
expect_out '<Code>InternalError</Code>'
control fail_status=503
get '/bucket?list-type=2'
status_is 503
expect_out '<Code>SlowDown</Code>'
control 'reset=1&fail_503_for_s=0.4'
get /bucket/ten
status_is 503
works() {
    curl -fsS "$URL/bucket/ten"
}
expect "it recovers" wait_for 20 works
control reset=1

it "stalls and hangs"
control stall_percent=100
get /bucket/big --max-time 1
expect_exit 28
expect "half came" [ "$(wc -c <"$OUT")" = 50000 ]
control 'reset=1&hang_percent=100'
get /bucket/big --max-time 0.3
expect_exit 28
expect_empty "$OUT"
expect "the control still answers" [ "$(stat_of fault_hang)" = 1 ]
control reset=1

it "resets connections, and closes them after an answer"
control refuse=1
get /bucket/ten
expect "curl says $CODE, expected 52 or 56" [ "$CODE" = 52 -o "$CODE" = 56 ]
control 'reset=1&close_percent=100&clear_stats=1'
run_any curl -sS "$URL/bucket/ten" "$URL/bucket/ten"
expect "both came" [ "$(cat "$OUT")" = 01234567890123456789 ]
expect "over two connections" [ "$(stat_of connections)" = 3 ] # and one that asks
control reset=1

it "goes away for a while"
control away_for_s=0.4
get /bucket/ten
expect "curl says $CODE, expected 52 or 56" [ "$CODE" = 52 -o "$CODE" = 56 ]
expect "it comes back" wait_for 20 works
control reset=1

# begins PATH BYTES: the beginning of an answer that has no end, head and all, in $OUT.
begins() {
    curl -sS -i "$URL$1" 2>/dev/null | head -c "$2" >"$OUT"
    expect "$2 bytes came" [ "$(wc -c <"$OUT")" = "$2" ]
}

it "sends bodies and heads without an end, and nothing"
control 'endless_percent=100'
begins /bucket/ten 300000
expect_no_out '^Content-Length'
control 'endless_length=77&endless_status=404'
get /bucket/ten
status_is 404
expect "as much as was told, as far as a client listens" [ "$(wc -c <"$OUT")" = 77 ]
control 'reset=1&head_percent=100'
get /bucket/ten --max-time 5
expect "curl gives up on it: $CODE" [ "$CODE" != 0 -a "$CODE" != 28 ]
control head_lines=1
begins /bucket/ten 100000
expect "lines came" [ "$(grep -c '^X-Another: line' "$OUT")" -gt 1000 ]
control 'reset=1&empty_percent=100'
get '/bucket?list-type=2'
status_is 200
expect_empty "$OUT"
control reset=1

it "denies and misses keys by name"
control 'deny=dir/3&missing=dir/4'
get /bucket/dir/3
status_is 403
expect_out '<Code>AccessDenied</Code>'
get /bucket/dir/4
status_is 404
get /bucket/dir/5
status_is 200
control deny_code=ExpiredToken
get /bucket/dir/3
status_is 400
expect_out '<Code>ExpiredToken</Code>'
control reset=1

it "spares keys that are not meant"
control 'only=dir/5&fail_percent=100'
get /bucket/dir/4
status_is 200
get /bucket/dir/5
status_is 500
control reset=1

it "repeats the same faults with the same seed"
drawn() {
    curl -sS -w '%{http_code} ' -o /dev/null "$URL/bucket/dir/[1-7]?[1-4]"
}
control 'reset=1&seed=1&fail_percent=50'
drawn >first
control 'reset=1&seed=1&fail_percent=50'
drawn >second
control 'reset=1&seed=2&fail_percent=50'
drawn >third
expect_same first second
expect_not "another seed draws others" cmp first third
expect "some fail and some do not" grep -q '200.*500\|500.*200' first
control reset=1

it "refuses settings that make no sense, all of them"
curl -sS -d 'fail_percent=100&colour=red' "$URL/_control" >said
expect_file said "there is no setting 'colour'"
curl -sS -d 'fail_percent=101' "$URL/_control" >said
expect_file said 'from 0 to 100'
get /bucket/ten
status_is 200
curl -sS "$URL/_stats" >stats.json
expect_json stats.json
stop

# ---- credentials ----

it "wants requests to be signed"
serve --root store --require-auth --access-key AKID --session-token SESSION --fail-percent 0
signature=(-H 'Authorization: AWS4-HMAC-SHA256 Credential=AKID/20130524/us-east-1/s3/aws4_request'
    -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -H 'x-amz-security-token: SESSION')
today=$(date -u +%Y%m%dT%H%M%SZ)
get /bucket/ten
status_is 403
expect_out '<Code>AccessDenied</Code>'
get /bucket/ten "${signature[@]}" -H "x-amz-date: $today"
status_is 200
get /bucket/ten "${signature[@]}" -H 'x-amz-date: 20130524T000000Z'
status_is 403
expect_out '<Code>RequestTimeTooSkewed</Code>'
get /bucket/ten "${signature[@]}" -H "x-amz-date: $today" -H 'x-amz-security-token: OTHER'
status_is 200 # the first of the two headers counts
get /bucket/ten "${signature[@]:0:4}" -H "x-amz-date: $today"
expect_out '<Code>InvalidToken</Code>'
get /bucket/ten "${signature[@]/AKID/OTHER}" -H "x-amz-date: $today"
expect_out '<Code>InvalidAccessKeyId</Code>'
stop

it "hands out credentials as an instance does"
serve --metadata --access-key AKID --secret-key SECRET --session-token SESSION --role worker \
    --container-token let-me-in
get /latest/meta-data/iam/security-credentials/
status_is 401
token=$(curl -sS -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$URL/latest/api/token")
with_token=(-H "X-aws-ec2-metadata-token: $token")
get /latest/meta-data/iam/security-credentials/ "${with_token[@]}"
expect "the role" [ "$(cat "$OUT")" = worker ]
get /latest/meta-data/iam/security-credentials/worker "${with_token[@]}"
expect_json "$OUT"
expect "all four" [ "$(json "$OUT" AccessKeyId) $(json "$OUT" SecretAccessKey) $(json "$OUT" Token)" = \
    'AKID SECRET SESSION' ]
expect_out '"Expiration": "[0-9-]{10}T[0-9:]{8}Z"'
get /latest/meta-data/iam/security-credentials/other "${with_token[@]}"
status_is 404

it "hands out credentials as a container's service does"
get /container-credentials
status_is 401
get /container-credentials -H 'Authorization: let-me-in'
expect "the key" [ "$(json "$OUT" AccessKeyId)" = AKID ]
stop

it "ends when it is told to"
serve --root store
expect "exit code 0 after SIGTERM" stop
mkfifo input
"$SERVER" --root store --until-eof >address <input &
EOF_PID=$!
exec 3>input
wait_for 20 grep -q listening address || fail "it does not listen"
exec 3>&-
wait "$EOF_PID"
expect "exit code 0 after the end of its input" [ $? = 0 ]
wait "$SHORT_PID"
expect "exit code 0 after its time" [ $? = 0 ]
run_any "$SERVER" --root absent
expect_exit 2
expect_err 'absent is not a folder'
run_any "$SERVER" --root store --colour red
expect_exit 2
expect_err "there is no flag '--colour'"

# ---- slow files ----

# slow PROGRAM ARGUMENTS...: with files below store as the variables SLOW_FILES_* say.
slow() {
    run_any env LD_PRELOAD="$SLOW" SLOW_FILES_ROOT="$WORK/store" SLOW_FILES_REPORT="$WORK/report" "$@"
}

it "slows files down"
slow SLOW_FILES_OPEN_MS=30 SLOW_FILES_READ_MS=20 cat store/ten names store/dir/../big
expect_exit 0
cat store/ten names store/big >wanted
expect_same "$OUT" wanted
expect "two were opened" [ "$(json report opens)" = 2 ]
expect "they were read: $(json report reads)" [ "$(json report reads)" -ge 2 ]
slow SLOW_FILES_STAT_MS=1 ls -l store/dir
expect_exit 0
expect "all were looked at: $(json report stats)" [ "$(json report stats)" -ge 7 ]

it "makes reads fail"
slow SLOW_FILES_EIO=dir/3 cat store/dir/2 store/dir/3 store/dir/4
expect_exit 1
expect_err 'Input/output error'
expect "the others came" [ "$(cat "$OUT")" = $'2\n4' ]

it "makes opens and reads hang"
RUN_TIMEOUT=0.3
slow SLOW_FILES_HANG=dir/3 cat store/dir/2 store/dir/3
expect_exit 124
slow SLOW_FILES_HANG=dir/3 SLOW_FILES_HANG_AT=read cat store/dir/2 store/dir/3
expect_exit 124
RUN_TIMEOUT=20
slow SLOW_FILES_HANG=dir/3 SLOW_FILES_HANG_TIMES=0 cat store/dir/3
expect_exit 0

it "kills the mount"
RUN_TIMEOUT=1
slow SLOW_FILES_DEAD_AFTER=2 cat store/dir/2 store/dir/3 store/dir/4
expect_exit 124
expect "two came before" [ "$(cat "$OUT")" = $'2\n3' ]
RUN_TIMEOUT=0.3
slow SLOW_FILES_DEAD_AFTER=0 ls store/dir
expect_exit 124
touch dead
slow SLOW_FILES_DEAD_WHILE="$WORK/dead" ls -d store/dir
expect_exit 124
RUN_TIMEOUT=20
slow SLOW_FILES_DEAD_WHILE="$WORK/dead" cat names
expect_exit 0
{
    sleep 0.2
    rm dead
} &
slow SLOW_FILES_DEAD_WHILE="$WORK/dead" cat store/ten
expect_exit 0
wait
finish
