# Whole runs on a simulated slow device in which time runs short or something else goes wrong. Each must
# end before its deadline with a valid submission and a true summary. The runs mostly wait, so several
# run at the same time.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2016,SC2317  # scripts in quotes; functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

it "the device can be simulated"
can_fake odd_device || finish

"$STOKER" sample k --layout kaggle --classes 3 --per-class 160 --quiet || exit 1
wide_sample k
labels=$LABELS

# A test set of fifty times the pictures that there are to learn from: 24, and 120 in 10 folders.
mkdir -p many/train many/test && head -n 25 k/train.csv >many/train.csv
tail -n +2 many/train.csv | sed 's|^\([^,]*\),.*|k/train/\1.jpg|' | xargs cp -t many/train
for copy in 0 1 2 3 4 5 6 7 8 9; do
    cp -al k/test "many/test/$copy"
done
few=$(tail -n +2 many/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
{
    echo "id,label,$(echo "$few" | sed 's/ $//; s/ /,/g')"
    find many/test -name '*.jpg' -printf '%P\n' | sed 's/\.jpg$//' | sort
} >many.wanted

# A class of one picture, one that a fold does not train on and the others do not validate, and a test
# picture that cannot be read.
mkdir -p o/train && cp -r k/test k/sample_submission.csv o/
awk -F , -v OFS=, 'NR == 1 { print $0, "kfold" } NR == 2 { $2 = "lonely" } NR > 2 && NR < 6 { $2 = "rare" }
    NR > 1 && NR < 62 { print $0, (NR > 2 && NR < 6 ? "a" : substr("abc", NR % 3 + 1, 1)) }' k/train.csv >o/train.csv
tail -n +2 o/train.csv | sed 's|^\([^,]*\),.*|k/train/\1.jpg|' | xargs cp -t o/train
wide_sample o
torn=$(sed -n 4p k/sample_submission.csv | cut -d , -f 1)
head -c 100 "k/test/$torn.jpg" >torn.jpg && mv torn.jpg "o/test/$torn.jpg"

# trial NAME MICROSECONDS SETTINGS... -- OPTIONS...: a training on a device that takes so long for a
# picture; odd_device.c tells what can be set.
trial() {
    local name=$1 us=$2 settings=()
    shift 2
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    launch "$name" "LD_PRELOAD=$FAKES/odd_device.so" "ODD_DEVICE_US=$us" "${settings[@]}" \
        "$STOKER" train --device cpu --img-size 16 --workers 1 --out "$name" "${@:2}"
}

# ends_well NAME SECONDS SAMPLE LABELS
ends_well() {
    landed "$1"
    expect_exit 0
    expect_took "$2"
    expect_delivered "$1" "$3" "$4"
    expect_summary "$1/summary.json" budget_s "$2"
}

it "one second"
trial second 500 -- --data k --budget 1s
ends_well second 1 k/sample_submission.csv "$labels"
expect_summary second/summary.json stop_reason budget

# These have more time than they need.
trial nan 300 ODD_DEVICE_FROM=nan/weights/fold1 ODD_DEVICE_UNTIL=nan/weights/fold2 ODD_DEVICE_NAN=1 -- \
    --data many --budget 600s --folds 3 --epochs 2
trial odd 300 -- --data o --budget 600s --epochs 2 --fold-column kfold --rare-class train
trial folds 500 ODD_DEVICE_BACK=40 -- --data many --folds 5 --epochs 5 --save-every 0

it "killed with 2.4 of 5 folds done, predict uses what there is"
at_two() { head -c 9000 folds/state/train.safetensors | grep -a '"fold": "2"' | grep -aq '"epoch": "[234]"'; }
wait_for 60 at_two || fail "the third fold never came to its third epoch"
kill -9 "$(pgrep -P "$(pgrep -P "${launched_pid[folds]}")")"
landed folds
expect_exit 137
expect_sound folds many.wanted "$few"
expect_no_file folds/summary.json
run predict --run folds --budget 600s
expect_exit 0
expect_out 'folds has the models of 3 of 5 folds'
expect_out 'from 3 of 5 models'
expect_submission folds/submission.csv many.wanted "$few"

it "the loss of one fold is no number"
ends_well nan 600 many.wanted "$few"
expect_summary nan/summary.json status partial
expect_summary nan/summary.json stop_reason error
expect_summary nan/summary.json folds_done 2
expect_out 'the loss became NaN'
expect_out 'from 2 of 3 models'
expect "fold 1 has no rows" [ "$(tail -n +2 nan/oof.csv | cut -d , -f 3 | sort -u | tr '\n' ' ')" = '0 2 ' ]

it "a class of one picture, folds without some class, a test picture that cannot be read"
ends_well odd 600 o/sample_submission.csv "$LABELS"
expect_summary odd/summary.json status complete
expect_summary odd/summary.json folds_done 3
expect_summary odd/summary.json bad_images 1
expect_file odd/bad_images.csv "$torn.jpg,test"
expect_out 'do not validate some class'
expect_out 'do not train on some class'

# And these less.
trial epoch 1000 ODD_DEVICE_BACK=12 -- --data k --budget 5s --batch 8
trial fifth 1000 ODD_DEVICE_FROM="$WORK/slower" ODD_DEVICE_TIMES=5 -- --data k --budget 9s --batch 16
trial fifty 2000 -- --data many --budget 6s --tta 8 --epochs 1
trial disk 500 LD_PRELOAD="$FAKES/odd_device.so:$FAKES/bad_disk.so" BAD_DISK_PATHS=/state BAD_DISK_AT=1 \
    BAD_DISK_DOES=slow -- --data k --budget 16s --batch 16
has_epoch_or_ended() { grep -q '^0,1,' fifth/results.csv || [ -e fifth.end ]; }
(wait_for 30 has_epoch_or_ended && touch slower) &

it "too short for one epoch: a part of it"
ends_well epoch 5 k/sample_submission.csv "$labels"
expect_summary epoch/summary.json stop_reason budget
if is_full; then # a process that hardly runs may not come to its first step
    expect_summary epoch/summary.json status partial
    expect_summary epoch/summary.json epochs_done 1
fi

it "a test set of fifty times the training set, with views"
ends_well fifty 6 many.wanted "$few"
expect_summary fifty/summary.json stop_reason budget
if is_full; then
    expect_summary fifty/summary.json status partial
    expect_out 'there was time (for|to predict) [0-9]'
fi

it "the disk takes longer for a state than an epoch takes"
ends_well disk 16 k/sample_submission.csv "$labels"
! is_full || expect_summary disk/summary.json status 'complete|partial'
expect_summary disk/summary.json stop_reason budget

it "throughput falls to a fifth in the middle"
ends_well fifth 9 k/sample_submission.csv "$labels"
! is_full || expect_summary fifth/summary.json status 'complete|partial'
expect_summary fifth/summary.json stop_reason budget
! is_full || expect "it did fall" awk -F , 'NR == 2 { before = $9 } END { exit !($9 < before / 2) }' fifth/results.csv
finish
