# An object store that does not answer for a while, or sends more bytes than it should: no picture counts
# as bad because of it, and nothing waits for ever.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cache_kills.sh
. "$ROOT/tests/cli/cache_kills.sh"

RUN_TIMEOUT=240
export HOME=$WORK XDG_CACHE_HOME=$WORK/cache AWS_EC2_METADATA_DISABLED=true no_proxy=127.0.0.1
export AWS_ACCESS_KEY_ID=AKIDOFATEST AWS_SECRET_ACCESS_KEY=secret-of-a-test

it "S3 is built in"
has_s3 || { skip 'built without S3' && finish; }
"$STOKER" sample set --layout kaggle --classes 3 --per-class 40 --seed 3 --quiet || exit 1
labels=$(tail -n +2 set/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
serve --root set --warm
PORT=${URL##*:}
export AWS_ENDPOINT_URL=$URL
train=(train --data s3://bucket --img-size 16 --cache off --epochs 2000)

said() {
    cat "$OUT" "$ERR" | grep -Eq -- "$1"
}

# trained RUN: an epoch of it has ended.
trained() {
    grep -q '"event": "epoch"' "$1/events.jsonl"
}

it "training waits out a store that is gone, and says so"
start "${train[@]}" --out r --outage 60s
wait_for 30 trained r || fail "no epoch was done"
stop
wait_for 20 said 's3://bucket: no answer for [0-9.]+ s \(.*onnect.*\): waiting up to 60 s' ||
    fail "nobody was told of the outage: $(tail -n 3 "$OUT" "$ERR")"
serve --root set --port "$PORT"
wait_for 20 said 's3://bucket answers again after [0-9.]+ s' || fail "nobody was told of its end"
kill -INT "$PID"
ended 40
expect_exit 0
expect_summary r/summary.json stop_reason signal
expect_summary r/summary.json bad_images 0
expect_sound r set/sample_submission.csv "$labels"

it "a store that refuses everything for a while is waited out as well"
rm -rf r
start "${train[@]}" --out r --outage 60s
wait_for 30 trained r || fail "no epoch was done"
control 'fail_503_for_s=300'
wait_for 30 said 's3://bucket: no answer for .*503 SlowDown' || fail "nobody was told of the outage"
control 'reset=1'
wait_for 30 said 's3://bucket answers again after' || fail "nobody was told of its end"
kill -INT "$PID"
ended 40
expect_exit 0
expect_summary r/summary.json bad_images 0

it "an outage that lasts longer than allowed ends the run with a sentence and what there is"
rm -rf r
start "${train[@]}" --out r --outage 1s
wait_for 30 trained r || fail "no epoch was done"
control 'refuse=1'
ended 40
expect_exit 5
expect_err 'nothing can be read from s3://bucket any more: no answer for 1 s, as long as --outage allows'
expect_summary r/summary.json status failed
expect_summary r/summary.json bad_images 0
expect_sound r set/sample_submission.csv "$labels"
control 'reset=1'

it "a budget is kept while a store is gone"
rm -rf r
start "${train[@]}" --out r --budget 10s
trained_or_gone() { trained r || is_gone; }
wait_for 30 trained_or_gone
control 'refuse=1'
ended 40
expect_exit 0
expect_summary r/summary.json stop_reason budget
expect_summary r/summary.json bad_images 0
expect_took 15 "$(json r/summary.json used_s)"
control 'reset=1'

it "staging waits it out"
control 'delay_ms=20'
start stage s3://bucket near --outage 60s
wait_for 30 test -d near
control 'refuse=1'
wait_for 30 said 's3://bucket: no answer for .*: waiting up to 60 s' || fail "nobody was told of the outage"
control 'reset=1'
ended 40
expect_exit 0
find near -name '*.tar' -exec tar -tf {} \; >members
expect "all pictures are there: $(grep -c jpg members)" \
    [ "$(grep -c jpg members)" = "$(find set -name '*.jpg' | wc -l)" ]
control 'reset=1'

it "answers without an end are bad pictures, and cost neither memory nor time"
rm -rf r
control 'endless_percent=100&only=.jpg'
timed "${train[@]}" --out r --budget 300s # far more than it takes
expect_exit 3
expect_err 'more bytes came where [0-9]+ were listed; the object was replaced since'
expect_took 10
control 'reset=1&head_percent=100&only=.jpg'
timed "${train[@]}" --out r2 --budget 300s
expect_exit 3
expect_err 'the head of the answer has more than 65536 bytes'
expect_no_err 'out of memory'
finish
