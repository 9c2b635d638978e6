# Verdicts that need a machine which does nothing else: one worker with large pictures, a tiny batch, a large
# model, other programs on the cores. Also --tune, which acts on verdicts, with few workers and with slow
# storage.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/verdicts.sh
. "$ROOT/tests/cli/verdicts.sh"
RUN_TIMEOUT=200

"$STOKER" sample k --classes 3 --per-class 60 --quiet || exit 1

it "one worker with large pictures"
if command -v python3 >/dev/null; then
    python3 - <<'END'
import os, struct, zlib

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

side = 1500
for name in ("a", "b"):
    os.makedirs("large/" + name)
    for i in range(20):
        row = bytes((x * (i + 3) + ord(name)) % 251 for x in range(3 * side))
        rows = b"".join(b"\0" + row[y:] + row[:y] for y in range(side))
        with open("large/%s/%d.png" % (name, i), "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
                    + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))
END
    rm -rf r
    run train --data large --out r --img-size 32 --batch 4 --workers 1 --budget 9
    expect_verdict decode-bound '^input-bound: training waits [0-9]+ % \(decode\); 1 worker gives .*Remedies: '
    expect "staging is a remedy, with what applies it" grep -q 'stoker stage SRC DEST --max-side' last_verdict

    it "--tune tries more workers, and says what came of it"
    rm -rf r
    run train --data large --out r --img-size 32 --batch 4 --workers 1 --budget 25 --tune
    expect_exit 0
    expect_out '^workers 1 to 2: decode-bound at [0-9.,]+ img/s$'
    expect_out '^workers (1 to 2|2 to 1): images/s went from [0-9.,]+ to [0-9.,]+: (kept|taken back)$'
else
    skip "there is no python3 to draw large pictures with"
fi

it "--tune keeps what was read where storage is slow"
SLOW=$(dirname "$STOKER")/tests/slow_files.so
if [ -e "$SLOW" ] && ! is_sanitized; then
    rm -rf r
    run_any env SLOW_FILES_ROOT="$WORK/k" SLOW_FILES_OPEN_MS=250 LD_PRELOAD="$SLOW" "$STOKER" train \
        --data k --out r --img-size 32 --batch 8 --workers 2 --prefetch 2 --budget 45 --tune
    expect_exit 0
    expect_out '^cache on: storage-bound at [0-9.,]+ img/s$'
    expect_out '^cache on: images/s went from [0-9.,]+ to [0-9.,]+: kept$'
else
    skip "files cannot be made slow here"
fi

it "a batch that is too small"
rm -rf r
run train --data k --out r --model resnet18 --img-size 32 --batch 1 --budget 9
expect_verdict launch-bound '% of a step is the same for any batch.*Remedies: a batch of'
expect_out '^VALIDATION: batch_size=1 is TOO SMALL - should be [0-9]+\+ \(predicted [0-9.]+x\)$'

# Two cores of any speed compute fewer than 100 batches a minute.
it "a big model"
rm -rf r
run train --data k --out r --model resnet50 --img-size 224 --batch 8 --budget 40
expect_verdict compute-bound 'only [0-9.]+ batches a minute'

it "other programs on the same cores"
rm -rf r
for ((i = 0; i < $(nproc); i++)); do
    timeout 40 sh -c 'while :; do :; done' &
done
run train --data k --out r --model resnet50 --img-size 128 --batch 8 --budget 35
expect_verdict noisy-neighbour '^noisy neighbour: other programs use [0-9]+ % of the cores'
# shellcheck disable=SC2046  # numbers are words
kill $(jobs -p) 2>/dev/null
wait
finish
