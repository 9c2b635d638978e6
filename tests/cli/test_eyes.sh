# Why a run is slow, provoked for real: slow storage, one worker with large pictures, a tiny batch, a
# big model; what is said of the machine; and --tune, which acts. Where other programs use the cores,
# which Stoker notices, that is the verdict instead; ALONE=1 (as in soak) does not accept it.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so
RUN_TIMEOUT=100

"$STOKER" sample k --classes 3 --per-class 60 --quiet || exit 1

# verdict RUN KEY: of the run's last verdict.
verdict() {
    grep '"event": "verdict"' "$1/events.jsonl" | tail -n 1 >last_verdict
    grep -oE -m 1 '"'"$2"'": "[^"]*"' last_verdict | head -n 1 | cut -d '"' -f 4
}

# expect_verdict NAME PATTERN: the last one of the run r, with this in its sentence.
expect_verdict() {
    expect_exit 0
    local name
    name=$(json r/summary.json verdict)
    if [ "$name" = noisy-neighbour ] && [ -z "${ALONE:-}" ]; then
        skip "other programs use the cores: $(verdict r text)"
        return 0
    fi
    expect "the verdict is $name: $(verdict r text)" [ "$name" = "$1" ]
    expect "the summary has the name of the last event" [ "$name" = "$(verdict r name)" ]
    expect "the sentence has $2: $(verdict r text)" grep -qE "$2" <<<"$(verdict r text)"
}

it "says what it runs on, and soon how much of it is used"
run train --data k --out r --img-size 32 --budget 8 --workers 2 --prefetch 3
expect_exit 0
expect_out '^RESOURCES: [0-9]+ CPU cores?, batch=[0-9]+, GPU=none, Mixed Precision=OFF$'
expect_out '^DataLoader: num_workers=2, prefetch_factor=3, persistent_workers=True$'
expect_out '^VALIDATION: batch_size=[0-9]+ is '
expect_out '^speed: .*img/s'
expect_no_out 'GPU Memory'
expect "there are samples of each second" [ "$(grep -c '"event": "sample"' r/events.jsonl)" -ge 4 ]
expect_jsonl r/events.jsonl

it "storage that is slow"
if [ -e "$SLOW" ] && ! is_sanitized; then
    rm -rf r
    run_any env SLOW_FILES_ROOT="$WORK/k" SLOW_FILES_OPEN_MS=300 LD_PRELOAD="$SLOW" "$STOKER" train \
        --data k --out r --img-size 32 --batch 8 --budget 12
    expect_verdict storage-bound '^input-bound: training waits [0-9]+ % \(storage\).*Remedies: '
    expect "keeping what was read is a remedy" grep -q -- '--cache' last_verdict
else
    skip "files cannot be made slow here"
fi

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
    if [ "$(nproc)" -gt 1 ] && grep -q '"name": "decode-bound"' r/events.jsonl; then
        expect_out '^workers 1 to 2: decode-bound at [0-9.,]+ img/s$'
        expect_out '^workers (1 to 2|2 to 1): images/s went from [0-9.,]+ to [0-9.,]+: (kept|taken back)$'
    fi
else
    skip "there is no python3 to draw large pictures with"
fi

it "a batch that is too small"
rm -rf r
run train --data k --out r --model resnet18 --img-size 32 --batch 2 --budget 12
expect_verdict launch-bound '% of a step is the same for any batch.*Remedies: a batch of'
expect_out '^VALIDATION: batch_size=2 is TOO SMALL - should be [0-9]+\+ \(predicted [0-9.]+x\)$'

it "a big model"
rm -rf r
run train --data k --out r --model resnet50 --img-size 128 --batch 8 --budget 25
expect_verdict compute-bound 'only [0-9.]+ batches a minute'

it "adds every second up"
expect "the parts of each epoch's time are all of it" python3 - <<'END'
import json
seen = 0
for line in open("r/events.jsonl"):
    event = json.loads(line)
    if event["event"] == "epoch":
        times = dict(event["times"])
        total = times.pop("total_s")
        assert all(value >= 0 for value in times.values()), times
        assert abs(sum(times.values()) - total) <= 0.006, (times, total)
        seen += 1
assert seen > 0
END
finish
