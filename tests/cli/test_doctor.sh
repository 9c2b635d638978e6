# `stoker doctor`: the form of its output, errors, and data sets in all kinds of locations. The only speed
# that is checked: a slow location is the narrowest part. tests/soak/test_doctor.sh checks the others.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for and expect
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so
export AWS_ACCESS_KEY_ID=doctor AWS_SECRET_ACCESS_KEY=hidden-words AWS_REGION=us-east-1

"$STOKER" sample k --classes 3 --per-class 20 --quiet || exit 1
small=(--model cifar_resnet20 --img-size 32 --batch 8 --seconds 0.2)

# figure KEY: the value of a key of the one line of JSON in $OUT, outside of what_if.
figure() {
    sed -E 's/"what_if": \[[^]]*\]//' "$OUT" | sed -n -E 's/.*"'"$1"'": ("[^"]*"|[^,}]*).*/\1/p'
}

is_above() {
    awk -v x="$1" -v y="$2" 'BEGIN { exit !(x ~ /^[0-9]/ && x + 0 > y + 0) }'
}

it "tells each stage, the narrowest, and what changes would bring; writes nothing but the picture"
before=$(find . | sort)
run doctor --data k "${small[@]}" --workers 1 --plot bars.svg
expect_exit 0
expect_no_out '^measuring copies' # a CPU has none
expect_empty "$ERR"
for stage in 'storage, cold' 'storage, warm' decoding loader 'training step' 'together, predicted' \
    'together, measured'; do
    expect_out "^$stage +[0-9.,]+  +#"
done
expect_out '^copying to the device +- +none: the CPU'
expect_out '^The narrowest is .*All together give [0-9.,]+ images/s: .* an epoch'
for change in "$(nproc) workers|2 workers" '[0-9]+ cores like these' 'staged at 37 px' \
    'staged as it is' 'pictures kept in memory' 'decoded pictures' 'batch [0-9]+' 'training at 24 px'; do
    expect_out "^($change).* +[0-9.,]+ .*[0-9.]+x"
done
expect_out '^measuring storage, cold and warm: '
expect_file bars.svg '<svg'
expect "no other file is new" [ "$(find . | grep -v bars.svg | sort)" = "$before" ]

it "prints one object with --json, whose figures fit together"
run doctor k "${small[@]}" --json
expect_exit 0
expect_empty "$ERR"
expect_json "$OUT"
expect "there is one line" [ "$(wc -l <"$OUT")" = 1 ]
for key in storage_cold storage_warm decode decode_per_worker loader step step_ms predicted together \
    epoch_s first_epoch_s picture_bytes picture_px images pictures_read seconds core_share; do
    expect "$key is above 0: $(figure $key)" is_above "$(figure $key)" 0
done
expect "there is no copy on a CPU" [ "$(figure copy)" = null ]
expect "the model is told" [ "$(figure model)" = '"cifar_resnet20"' ]
expect "the batch is told" [ "$(figure batch)" = 8 ]
expect "the pictures stay in memory" [ "$(figure kept_near)" = true ]
expect "an epoch is its images" awk -v i="$(figure images)" -v r="$(figure together)" \
    -v e="$(figure epoch_s)" 'BEGIN { d = i / r / e; exit !(d > 0.999 && d < 1.001) }'
expect_out '"what_if": \[\{"what": "[^"]+", "flags": ("[^"]*"|null), "images_per_second": '
gains=$(grep -Eo '"gain": [0-9.e+]+' "$OUT" | grep -Eo '[0-9.e+]+$')
expect "the greatest gain comes first" [ "$gains" = "$(sort -g -r <<<"$gains")" ]

it "says one sentence with --quiet"
run doctor k "${small[@]}" --quiet
expect_exit 0
expect "one line" [ "$(wc -l <"$OUT")" = 1 ]
expect_out '^The narrowest is '

it "looks at three pictures too"
mkdir -p few/train/a few/train/b
pictures=$(find k -name '*.jpg' | sort | head -n 3)
n=0
for picture in $pictures; do
    n=$((n + 1))
    cp "$picture" "few/train/$([ $n = 3 ] && echo b || echo a)/$n.jpg"
done
run doctor few "${small[@]}" --rare-class train --json
expect_exit 0
expect "together was measured" is_above "$(figure together)" 0

it "measures a staged copy"
"$STOKER" stage k near --quiet || fail "cannot stage"
run doctor near "${small[@]}" --json
expect_exit 0
expect "storage was measured" is_above "$(figure storage_cold)" 0

it "refuses what a training would refuse"
run doctor
expect_exit 2
expect_err '--data is missing'
run doctor k --model resnet19 --seconds 2
expect_exit 2
expect_err 'resnet18'
run doctor nowhere --seconds 2
expect_exit 3
expect_err 'nowhere'
run doctor k --seconds 0
expect_exit 2
run doctor k "${small[@]}" --resume r
expect_exit 2
expect_err 'doctor looks at a training that begins'
run doctor k "${small[@]}" --device cuda:7
expect_exit 4
run doctor k "${small[@]}" --plot absent/bars.svg
expect_exit 2
expect_err 'there is no folder absent/; make it first'
run doctor k "${small[@]}" --plot bars.gif
expect_exit 2
expect_err 'ends with .png or .svg'
expect "nothing was measured" [ ! -s "$OUT" ]

it "tells what was measured where the picture cannot be written"
if can_fake bad_disk; then
    run_any env LD_PRELOAD="$FAKES/bad_disk.so" BAD_DISK_PATHS=bars.svg BAD_DISK_AT=1 BAD_DISK_DOES=full \
        "$STOKER" doctor k "${small[@]}" --plot bars.svg
    expect_exit 5
    expect_err 'bars.svg'
    expect_out '^The narrowest is '
fi

if [ -x "$SERVER" ]; then
    it "reads from far away, first without the cache and then with it"
    serve --bucket pics=k --delay-ms 20
    export AWS_ENDPOINT_URL=$URL
    run doctor s3://pics "${small[@]}" --seconds 1 --json
    expect_exit 0
    expect "it is far away" [ "$(figure remote)" = true ]
    expect "the cache keeps it near" [ "$(figure kept_near)" = true ]
    expect "which is faster: $(figure storage_cold), then $(figure storage_warm)" \
        is_above "$(figure storage_warm)" "$(figure storage_cold)"
    run doctor s3://pics "${small[@]}" --cache off --json
    expect_exit 0
    expect "nothing keeps it near" [ "$(figure kept_near)" = false ]
    stop

    it "ends with 5 where the storage does not answer"
    run doctor s3://pics/other "${small[@]}" --read-timeout 0.5
    expect_exit 5
    expect_err '127.0.0.1'
else
    it "S3" && skip "there is no S3 in this build"
fi

it "names a slow mount as the narrowest"
if [ -e "$SLOW" ]; then
    export ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
    run_any env SLOW_FILES_ROOT="$WORK/k" SLOW_FILES_OPEN_MS=300 LD_PRELOAD="$SLOW" "$STOKER" \
        doctor k --model convnet_s --img-size 16 --batch 4 --workers 2 --seconds 3 --json
    expect_exit 0
    is_sanitized || # then the step may be as slow
        expect "storage is the narrowest: $(figure storage_warm), decoding $(figure decode), step $(figure step)" \
            [ "$(figure narrowest)" = '"storage"' ]
    # Beside other programs the step may be as slow.
    ! is_full || is_sanitized || expect "the step waits" is_above "$(figure wait_fraction)" 0.1
else
    skip "there is no $SLOW"
fi

it "ends with 130 after Ctrl-C"
start doctor k "${small[@]}" --seconds 60
wait_for 30 grep -q '^measuring' "$OUT"
kill -INT "$PID"
ended 30
expect_exit 130
expect_err 'stopped'
expect_no_out 'narrowest'

it "measures copies where there is a GPU"
take_emulated_gpu
run doctor k --device cuda:0 --model convnet_s --img-size 16 --batch 4 --seconds 0.3 --workers 1 --json
expect_exit 0
for key in copy copy_bytes_per_second step together; do
    expect "$key is above 0: $(figure $key)" is_above "$(figure $key)" 0
done
expect "the precision is the GPU's" [ "$(figure precision)" = '"fp16"' ]

finish
