# A training whose disk does not answer for a moment: it goes on afterwards and uses its whole budget.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --classes 4 --per-class 50 --quiet || exit 1
wide_sample k

it "goes on after a state that was held up once while it was saved"
if can_fake bad_disk; then
    launch saved LD_PRELOAD="$FAKES/bad_disk.so" BAD_DISK_PATHS=state/.train BAD_DISK_AT=2 BAD_DISK_DOES=pause \
        "$STOKER" train --data k --out r-saved --budget 6 --img-size 32
    landed saved
    expect_exit 0
    expect_took 6
    expect_delivered r-saved k/sample_submission.csv "$LABELS"
    share=$(trained_share r-saved)
    expect "training ended at $share % of the time before the reserve" [ "$share" -ge 75 ]
fi

it "keeps no time for files because the first submission was held up once"
if can_fake bad_disk; then
    launch paused LD_PRELOAD="$FAKES/bad_disk.so" BAD_DISK_PATHS=submission.csv BAD_DISK_AT=2 BAD_DISK_DOES=pause \
        "$STOKER" train --data k --out r-paused --budget 10 --img-size 32
    landed paused
    expect_exit 0
    expect_took 10
    expect_delivered r-paused k/sample_submission.csv "$LABELS"
    # Twice what it took would be kept.
    expect "$(json r-paused/summary.json reserve_s) s were kept" \
        awk -v r="$(json r-paused/summary.json reserve_s)" 'BEGIN { exit !(r < 6) }'
fi

finish
