# test_bench.sh - `stoker bench loader`: figures for people and programs, the sheet, errors.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"

"$STOKER" sample f --classes 4 --per-class 20 --quiet || exit 1
small=(--batch 16 --img-size 32 --seconds 0.05)

# figure KEY: the value of a key of the one line of JSON in $OUT.
figure() {
    sed -n -E 's/.*"'"$1"'": ("[^"]*"|[^,}]*).*/\1/p' "$OUT"
}

# is_png FILE WIDTH HEIGHT: signature, and the size that stands in the first chunk.
is_png() {
    [ "$(od -An -t x1 -N 8 "$1" | tr -d ' ')" = 89504e470d0a1a0a ] &&
        [ "$(od -An -t u1 -j 16 -N 8 "$1" | awk '{ print 256 * $3 + $4 "x" 256 * $7 + $8 }')" = "$2x$3" ]
}

it "prints one object on one line for programs"
run bench loader --data f "${small[@]}" --json
expect_exit 0
expect_empty "$ERR"
expect_json "$OUT"
expect "there is one line" [ "$(wc -l <"$OUT")" = 1 ]
for key in images_per_second workers decode_only_per_second_per_core rss_bytes first_batch_ms \
    images_per_second_per_core ceiling_share cores slots images seconds; do
    expect "$key is above 0: $(figure "$key")" awk -v x="$(figure "$key")" 'BEGIN { exit !(x + 0 > 0) }'
done
for key in readers read_us decode_us augment_us read_wait_us bad; do
    expect "$key is a number: $(figure "$key")" \
        awk -v x="$(figure "$key")" 'BEGIN { exit !(x ~ /^[0-9]/) }'
done
expect "the batch is told" [ "$(figure batch)" = 16 ]
expect "the size is told" [ "$(figure img_size)" = 32 ]
expect "all is good" [ "$(figure bad)" = 0 ]
expect "there is no sheet" [ "$(figure sheet)" = null ]

it "prints a block for people, and nothing when it is to be quiet"
run bench loader f "${small[@]}"
expect_exit 0
expect_empty "$ERR"
expect_out '^loader +[0-9]+ images/s, [0-9]+ per core'
expect_out '^decode only +[0-9]+ images/s per core; the loader reaches [0-9]+ %'
expect_out '^memory +[0-9.]+ [kMG]B resident'
expect_out '^first batch +[0-9]+ ms'
run bench loader f "${small[@]}" --quiet
expect_exit 0
expect_empty "$OUT"
expect_empty "$ERR"

it "takes the options of a loader"
run bench loader f "${small[@]}" --workers 1 --prefetch 3 --no-train-transform --json
expect_exit 0
expect "one worker" [ "$(figure workers)" = 1 ]
expect "three slots" [ "$(figure slots)" = 3 ]
expect "one core" [ "$(figure cores)" = 1 ]

# epoch N KEY: the value of a key of epoch N of the JSON in $OUT.
epoch() {
    grep -Eo '"epoch": '"$1"',[^}]*' "$OUT" | sed -n -E 's/.*"'"$2"'": ([^,}]*).*/\1/p'
}

it "measures whole epochs when it is told how many"
run bench loader f "${small[@]}" --epochs 3 --cache ram --json
expect_exit 0
expect_empty "$ERR"
expect_json "$OUT"
expect "there are three epochs" [ "$(grep -Eo '"epoch": ' "$OUT" | wc -l)" = 3 ]
for i in 0 1 2; do
    expect "epoch $i has all whole batches" [ "$(epoch $i images)" = 80 ]
    for key in seconds images_per_second; do
        expect "$key of epoch $i is above 0" awk -v x="$(epoch $i $key)" 'BEGIN { exit !(x + 0 > 0) }'
    done
    expect "wait_fraction of epoch $i is a share" \
        awk -v x="$(epoch $i wait_fraction)" 'BEGIN { exit !(x ~ /^[0-9]/ && x <= 1) }'
done
expect "epoch 0 misses" [ "$(epoch 0 cache_misses)" -ge 80 ]
expect "epoch 2 hits" [ "$(epoch 2 cache_misses)" = 0 ]
expect "decode only was not measured" [ "$(figure decode_only_per_second_per_core)" = null ]
run bench loader f "${small[@]}" --epochs 2
expect_exit 0
expect_out '^epoch +seconds +images/s +wait +read +cache hits +misses$'
# Where there are many cores, all of the second epoch may have been read during the first.
expect_out '^ +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ % +[0-9.]+ [kM]?B +0 +0$'
expect_out '^first batch +[0-9]+ ms'
expect_out '^memory +[0-9.]+ [kMG]B resident at most'

it "takes batches no faster than the rate"
run bench loader f "${small[@]}" --epochs 1 --rate 200 --json
expect_exit 0
expect "80 images take 0.4 s at least: $(epoch 0 seconds)" \
    awk -v x="$(epoch 0 seconds)" 'BEGIN { exit !(x >= 0.4) }'
expect "the rate is no higher than asked for" \
    awk -v x="$(epoch 0 images_per_second)" 'BEGIN { exit !(x <= 200.001) }'
run bench loader f "${small[@]}" --rate 400 --seconds 3 --json
expect_exit 0
expect "whole epochs begin until the seconds are over" [ "$(grep -Eo '"epoch": ' "$OUT" | wc -l)" -ge 2 ]
run bench loader f "${small[@]}" --json
expect "without these flags there are none" [ "$(figure epochs)" = null ]

it "draws a sheet without measuring"
run bench loader f --seconds 0 --img-size 32 --sheet out.png
expect_exit 0
expect_out '^sheet +out.png$'
expect_no_out 'images/s'
expect "the sheet has 6 rows of 8" is_png out.png 292 220
run bench loader f --seconds 0 --img-size 32 --sheet again.png --json
expect_exit 0
expect_json "$OUT"
expect "the sheet is told" [ "$(figure sheet)" = '"again.png"' ]
expect "nothing else was measured" [ "$(figure images_per_second)" = null ]
expect_same out.png again.png
run bench loader f --seconds 0 --img-size 32 --sheet again.png --crop-scale 0.1 --quiet
expect_exit 0
expect_empty "$OUT"
expect_not "the options show" cmp -s out.png again.png
expect_tidy .

it "measures and draws"
run bench loader f "${small[@]}" --sheet both.png
expect_exit 0
expect_out 'images/s'
expect_out '^sheet +both.png$'
expect_file both.png

it "says why a sheet cannot be written, and still tells what it measured"
run bench loader f --seconds 0 --img-size 32 --sheet gone/out.png
expect_exit 5
expect_err 'cannot write gone/out.png'
run bench loader f "${small[@]}" --sheet gone/out.png --json
expect_exit 5
expect_json "$OUT"
expect "there is no sheet" [ "$(figure sheet)" = null ]

it "explains what can be measured"
run bench
expect_exit 2
expect_out 'usage: stoker bench WHAT'
expect_out '^  loader '
for words in 'bench --help' 'help bench'; do
    # shellcheck disable=SC2086
    run $words
    expect_exit 0
    expect_out '^  loader '
    expect_out '^  storage '
done
run bench nonsense
expect_exit 2
expect_err "no verb 'bench nonsense'"
expect_err 'stoker bench --help'
run bench lodaer
expect_exit 2
expect_err 'did you mean bench loader'
run help bench nonsense
expect_exit 2
for words in 'bench loader --help' 'help bench loader'; do
    # shellcheck disable=SC2086
    run $words
    expect_exit 0
    expect_out 'usage: stoker bench loader'
    for flag in data seconds rate epochs sheet batch workers crop-scale quiet json config; do
        expect_out "\\-\\-(\\[no-\\])?$flag"
    done
done

it "refuses wrong usage"
for case in '|--data' '--data f --seconds 0|--sheet' '--data f --seconds -1|--seconds' \
    '--data f --rate -1|--rate' '--data f --batch 0|--batch' '--data f --sede 1|did you mean --seed' 'f extra|too many' \
    'f --data f|mean the same'; do
    # shellcheck disable=SC2086  # words
    run bench loader ${case%|*}
    expect_exit 2
    expect_err "${case#*|}"
    expect_empty "$OUT"
done

it "refuses data that it cannot measure"
run bench loader --data nowhere
expect_exit 3
expect_err 'nowhere'
mkdir hollow
run bench loader --data hollow --json
expect_exit 3
expect_err 'hollow'
expect_empty "$OUT"
for class in a b; do
    mkdir -p "bad/$class"
    for i in 1 2 3; do
        echo "no picture" >"bad/$class/$i.jpg"
    done
done
run bench loader --data bad "${small[@]}"
expect_exit 3
expect_err '^stoker: '
expect_empty "$OUT"
run bench loader --data bad --seconds 0 --sheet bad.png
expect_exit 3
expect_err 'none of the 6 pictures'
expect_no_file bad.png

it "ends at Ctrl-C"
start bench loader --data f --batch 16 --img-size 32 --seconds 1000
wait_for 30 listens || fail "it does not catch the signal"
kill -INT "$PID"
ended 60
expect_exit 130
expect_err 'stopped'
expect_empty "$OUT"
start bench loader --data f --batch 16 --img-size 32 --epochs 1000 --rate 10
wait_for 30 listens || fail "it does not catch the signal"
kill -INT "$PID"
ended 60
expect_exit 130
expect_err 'stopped'
expect_empty "$OUT"

it "says when its figures could not be printed"
if [ -w /dev/full ]; then
    # shellcheck disable=SC2016  # the inner shell expands
    run_any sh -c '"$@" >/dev/full' sh "$STOKER" bench loader f "${small[@]}" --json
    expect_exit 5
    expect_err 'standard output'
else
    skip "there is no /dev/full"
fi

finish
