# Trainings whose disk fails: SIGKILL at calls that write a checkpoint, and no room for a checkpoint or for
# the submission. tests/soak/test_bad_disk.sh tries every call.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 12 --quiet || exit 1
wide_sample k

it "the validator finds what is wrong with a submission"
cut -d , -f 1 k/sample_submission.csv | sed '1s/$/,a,b/; 2,$s/$/,0.25,0.75/' >good
sed '1s/$/x/' good >bad.header
sed '2d' good >bad.missing
sed '2{h;d};3G' good >bad.order
sed '$s/^/9/' good >bad.id
sed '$p' good >bad.twice
sed '3s/0.75/0.74/' good >bad.sum
sed '3s/0.25,0.75/nan,0.75/' good >bad.nan
sed '3s/0.25,0.75/-0.25,1.25/' good >bad.negative
sed '3s/0.25/,0.25/' good >bad.cells
sed '3s/0.25/0.2.5/' good >bad.number
expect_submission good good
for file in bad.*; do
    [ -n "$(submission_trouble "$file" good)" ] || fail "$file is accepted"
done
sed '1s/,/,label,/; 2,$s/,/,b,/' good >named
expect_submission named named 'a b'
sed '2s/,b,/,a,/' named >bad.named
[ -n "$(submission_trouble bad.named named 'a b')" ] || fail "a label that is not the likeliest is accepted"

it "and what is untrue in a summary"
"$STOKER" train --data k --img-size 16 --epochs 1 --out told --quiet || exit 1
expect_delivered told k/sample_submission.csv "$LABELS"
cp told/summary.json true.json
for lie in 's/"epochs_done": 1/"epochs_done": 2/' 's/"complete"/"prior"/' 's/"folds_done": 1/"folds_done": 0/' \
    's/"bad_images": 0/"bad_images": 1/' 's/"budget_s": null/"budget_s": 1/; s/"used_s": [0-9.]*/"used_s": 99/' '/"verdict"/d' \
    's/"submission": .*/"submission": null/'; do
    sed "$lie" true.json >told/summary.json
    [ -n "$(summary_trouble told)" ] || fail "$lie is believed"
done

it "nothing is half-written, and the run goes on, when it dies at a write of a checkpoint"
if can_fake bad_disk; then
    calls_of "$SAVED"
    # The second epoch replaces what the first has saved: in the middle of the state and of the weights, at
    # every other rename, and where what belongs together is not together yet.
    first=$(awk '$2 == "link" { print $1; exit }' calls.all)
    expect "the best weights are kept while others take their place" [ -n "$first" ]
    while read -r call what; do
        killed_at "$call" "$what"
    done < <(awk -v first="$first" '$1 < first { next }
        $2 == "open" { from = $3 ~ /\.(train|best)\./ && !seen[$3 ~ /train/]++ ? $1 : 0 }
        $2 == "fsync" && from { print int((from + $1) / 2), "tear"; from = 0; next }
        $2 == "rename" && renames++ % 2 == 0 { print $1, "kill" }
        $2 == "unlink" && $3 ~ /\/best/ && !gone++ { print $1, "kill" }' calls.all)
fi

has_epoch() { grep -q "\"event\": \"epoch\", .*\"epoch\": $1," r/events.jsonl; }
has_epoch_or_is_gone() { has_epoch "$1" || is_gone; }

# held_at CALL EPOCH: the state is being written and gets no further than this call; training goes on
# to the end of the epoch, the process dies, and the state before counts, or this one.
held_at() {
    rm -rf r
    # shellcheck disable=SC2046  # words
    LD_PRELOAD=$FAKES/bad_disk.so BAD_DISK_PATHS=$STATE BAD_DISK_AT=$1 BAD_DISK_DOES=hold start $(tiny r)
    wait_for 60 has_epoch_or_is_gone "$2"
    has_epoch "$2" || fail "call $1: training waits for the disk"
    kill -9 "$PID"
    ended 60
    expect_exit 137
    expect_sound r k/sample_submission.csv "$LABELS"
    goes_on r
}

it "training goes on while the state is being written, and is resumed from what is on the disk"
if can_fake bad_disk; then
    # Calls of the state alone are counted: those of other files come from another thread, in any order.
    STATE=/state/:-pictures
    EPOCHS=3 calls_of "$STATE" calls.three
    # The state of the second epoch, which replaces that of the first, and so do its best weights: before
    # it is there, before it has its name, and before what was kept goes.
    while read -r call; do
        EPOCHS=3 held_at "$call" 3
    done < <(awk '$2 == "open" && index($3, "state/.train") && ++n == 3 { from = $1 }
        from && $2 ~ /^(write|rename|unlink)$/ && ++m <= 3 { print $1 }' calls.three)
    expect "these best weights are kept until then" grep -q 'link .*state/.best' calls.three
    calls_of "$SAVED" # of two epochs again
fi

# full_at PATHS CALL: no room from this call on; once there is, the run goes on.
full_at() {
    bad_disk "$1" "$2" full r
    expect_exit 5
    expect_err 'No space left on device'
    expect_delivered r k/sample_submission.csv "$LABELS"
}

# write_of FILE TIME: the call in the middle of writing the file for that time.
write_of() {
    awk -v file="$1" -v time="$2" '$2 == "open" && index($3, file) && ++n == time { from = $1 }
        $2 == "fsync" && from { print int((from + $1) / 2); exit }' calls.all
}

it "the disk is full at a checkpoint: a submission from what is in memory, and a resume"
if can_fake bad_disk; then
    for file in 'weights/.best 1' 'state/.train 2'; do # the state is saved first of all
        read -r name time <<<"$file"
        full_at "$SAVED" "$(write_of "$name" "$time")"
        [ "$(models_in r)" = 1 ] || fail "$file: no model predicted"
        expect_summary r/summary.json status partial
        expect_summary r/summary.json stop_reason error
        goes_on r
    done
    full_at "$SAVED" "$(awk '$2 == "link" && /weights\/\.last/ { n = $1 } END { print n }' calls.all)"
    expect_same r/submission.csv whole/submission.csv
fi

it "the disk is full at files that only tell of the run: exit code and summary say that all was done"
if can_fake bad_disk; then
    for file in events.jsonl results.csv report.html; do
        bad_disk "$file" 3 full r
        expect_exit 0
        expect_out "files of the run folder could not be written \(.*$file\): .*No space left on device"
        expect_same r/submission.csv whole/submission.csv
        expect_summary r/summary.json status complete
        expect_summary r/summary.json stop_reason epochs
    done
fi

it "the disk is full at the summary, which programs read: all else is there, and the exit code says no"
if can_fake bad_disk; then
    bad_disk summary.json 1 full r
    expect_exit 5
    expect_err 'summary\.json is missing: .*No space left on device'
    expect_no_file r/summary.json
    expect_same r/submission.csv whole/submission.csv
fi

it "the disk is full at the table of validation: exit code and summary speak of an error"
if can_fake bad_disk; then
    bad_disk validation.csv 1 full r
    expect_exit 5
    expect_same r/submission.csv whole/submission.csv
    expect_summary r/summary.json stop_reason error
fi

it "the disk is full at the submission: the one before stays, and predict makes it good"
if can_fake bad_disk; then
    calls_of submission.csv calls.submission
    for what in open write; do
        full_at submission.csv "$(awk -v w="$what" '$2 == w { n = $1 } END { print n }' calls.submission)"
        expect_summary r/summary.json status failed
        expect_summary r/summary.json stop_reason error
        expect "the priors stay" [ "$(models_in r)" = 0 ]
        expect_weights r/weights/best.safetensors
        run predict --run r
        expect_exit 0
        expect_same r/submission.csv whole/submission.csv
    done
    goes_on r
fi
finish
