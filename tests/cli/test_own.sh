# Run folders and staged copies that lie inside a data set are never taken for data.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012  # ls of our own names
. "$(dirname "$0")/lib.sh"

short=(--img-size 16 --epochs 1 --seed 1)
"$STOKER" sample f --classes 2 --per-class 6 --quiet || exit 1
mkdir set && cp -r f/train/* set/
picture=$PWD/$(ls -d f/train/*/0000.jpg | head -n 1)
class=$(ls f/train | head -n 1)
# plots FOLDER: two pictures that a run leaves, whatever this build can draw.
plots() {
    mkdir -p "$1" && cp "$picture" "$1/results.png" && cp "$picture" "$1/lr.png"
}

it "trains in a folder of class folders as often as one likes"
cd set || exit 1
run train --data . "${short[@]}"
expect_exit 0
expect_no_out 'passed over'
plots runs/train/again
cp runs/train/weights/best.safetensors ../first
run train --data . "${short[@]}"
expect_exit 0
expect_out 'passed over 1 folder of \.: runs;'
expect_out '2 classes'
expect "the line is said once" [ "$(grep -c 'passed over' "$OUT")" = 1 ]
expect_same runs/train-2/weights/best.safetensors ../first
expect_file runs/train-2/events.jsonl '"event": "warning".*passed over'

it "passes over a run folder of any name, beside classes and below them"
run train --data . --out mine "${short[@]}"
expect_exit 0
plots mine
run train --data . --out "$class/inner" "${short[@]}"
expect_exit 0
run train --data . --out ../third "${short[@]}"
expect_exit 0
expect_out 'passed over 3 folders of \.: .*mine.*runs'
expect_same ../third/weights/best.safetensors ../first
cd ..

it "does so whatever the verb"
# What they measure for seconds does not matter.
waits=(LD_PRELOAD="$(dirname "$STOKER")/tests/odd_device.so" ODD_DEVICE_US=2000)
! is_sanitized || waits=()
for verb in 'plan --budget 30s --img-size 16' 'stage near' 'lr --img-size 16 --steps 50' \
    'doctor --seconds 0.2 --img-size 16'; do
    # shellcheck disable=SC2086  # words
    run_any env "${waits[@]}" "$STOKER" $verb --data set
    expect_exit 0
    expect_out 'passed over 3 folders of set: '
done
expect_not "the staged copy has runs in it" grep -Eq 'runs|mine|inner' near/samples.csv
run bench storage set --seconds 0.2 --in-flight 1 --json
expect_exit 0
expect "pictures alone are read" [ "$(sed -n -E 's/.*"objects": ([0-9]+).*/\1/p' "$OUT" | head -n 1)" = 12 ]
run bench storage set --seconds 0.2 --in-flight 1
expect_out 'passed over 3 folders of set: '
run bench loader set --seconds 0.2 --img-size 16 --json
expect_exit 0
expect_no_out 'passed over'
for how in '--epochs 1 --sheet sheet.png' '--seconds 0 --sheet sheet.png'; do
    # shellcheck disable=SC2086  # words
    run bench loader set --img-size 16 $how
    expect_exit 0
    expect_out 'passed over 3 folders of set: '
    expect "the line is said once" [ "$(grep -c 'passed over' "$OUT")" = 1 ]
done

it "says what was passed over where that leaves too little"
mkdir one few && cp -r "f/train/$class" one/ && cp -r "f/train/$class" one/runs && cp -r f/train few/runs
for verb in train 'plan --budget 30s' doctor; do
    # shellcheck disable=SC2086  # words
    run $verb --data one
    expect_exit 3
    expect_err "one class only.*passed over: runs; what Stoker wrote"
done
run train --data few
expect_exit 3
expect_err 'has no data in it.*passed over: runs'
"$STOKER" sample table --layout kaggle --classes 2 --per-class 4 --quiet && mv table/train table/runs
run train --data table
expect_exit 3
expect_err 'no pictures in table.*passed over: runs'

it "passes over a staged copy, finished or not"
mv near set/near
run stage --data set nearer
expect_exit 0
expect_out 'passed over 4 folders'

it "does so with the objects of a bucket"
if "$STOKER" train --data s3:/// 2>&1 | grep -q 'no S3 support'; then
    skip "this build has no S3"
else
    export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1
    serve --root .
    export AWS_ENDPOINT_URL=$URL
    run train --data s3://bucket/set --out far "${short[@]}"
    expect_exit 0
    expect_out 'passed over 4 folders of s3://bucket/set'
    expect_same far/weights/best.safetensors first
fi
finish
