# The lines about the machine, and the verdict of a run on slow storage. Verdicts that other programs on the
# same cores would change are in tests/soak/test_verdicts.sh.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/verdicts.sh
. "$ROOT/tests/cli/verdicts.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so
RUN_TIMEOUT=400

"$STOKER" sample k --classes 3 --per-class 60 --quiet || exit 1

it "says what it runs on, and soon how much of it is used"
# Two epochs of two seconds each at least; the first verdict comes after two seconds and five steps.
waits=(LD_PRELOAD="$(dirname "$STOKER")/tests/odd_device.so" ODD_DEVICE_US=5000) epochs=2
! is_sanitized || { waits=() epochs=20; }
run_any env "${waits[@]}" "$STOKER" train --data k --out r --img-size 32 --epochs "$epochs" --workers 2 --prefetch 3
expect_exit 0
expect_out '^RESOURCES: [0-9]+ CPU cores?, batch=[0-9]+, GPU=none, Mixed Precision=OFF$'
expect_out '^DataLoader: num_workers=2, prefetch_factor=3, persistent_workers=True$'
expect_out '^VALIDATION: batch_size=[0-9]+ is '
expect_out '^speed: .*img/s'
expect_no_out 'GPU Memory'
expect "there are samples of each second" [ "$(grep -c '"event": "sample"' r/events.jsonl)" -ge 3 ]
expect_jsonl r/events.jsonl

it "storage that is slow"
if [ -e "$SLOW" ] && ! is_sanitized; then
    rm -rf r
    # Four pictures a second: fewer than any machine computes, even if others use it too.
    "$STOKER" sample few --classes 2 --per-class 16 --quiet || exit 1
    run_any env SLOW_FILES_ROOT="$WORK/few" SLOW_FILES_OPEN_MS=1000 LD_PRELOAD="$SLOW" "$STOKER" train \
        --data few --out r --img-size 16 --batch 2 --epochs 1 --workers 2 --prefetch 1
    expect_verdict storage-bound '^input-bound: training waits [0-9]+ % \(storage\).*Remedies: '
    expect "keeping what was read is a remedy" grep -q -- '--cache' last_verdict
else
    skip "files cannot be made slow here"
fi

finish
