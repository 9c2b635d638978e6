# Large progressive JPEGs, pictures of 256 million pixels and JPEGs with huge numbers of markers, in every set
# of a data set, with budgets from 3 to 30 s: no run is late, and each delivers what it trained. Takes about
# four minutes.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

MAKE=$(dirname "$STOKER")/tests/hostile_picture
"$STOKER" sample k --layout kaggle --classes 4 --per-class 130 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
for kind in rows scans markers; do
    "$MAKE" "$kind" "$kind" || exit 1
done

cp -r k scans-test && put scans scans-test/test 1 2 30 60 90 100
cp -r k rows-test && put rows rows-test/test 1
cp -r k rows-first && put rows rows-first/test 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
cp -r k scans-train && put scans scans-train/train 1 50 100 150 200 250
cp -r k all && put scans all/test 1 2 3 && put rows all/train 1 40 80 && put rows all/test 4 &&
    put markers all/train 2 41 && put markers all/test 5 6

echo '| budget |   took | status   | predicted | what' >table
for trial in '10 scans-test' '20 scans-test' '30 scans-test' '6 rows-test' '12 rows-first' '10 scans-train' \
    '20 scans-train' '3 all' '8 all' '15 all' '30 all --folds 3' '20 all --tta 4'; do
    read -r budget data options <<<"$trial"
    it "$budget s: $data $options"
    rm -rf r
    # shellcheck disable=SC2086  # words
    timed train --data "$data" --out r --budget "$budget" $options
    expect_exit 0
    expect_took "$budget"
    expect_delivered r k/sample_submission.csv "$labels"
    status=$(json r/summary.json status)
    if ! is_sanitized && [ "$(json r/summary.json epochs_done)" != 0 ]; then
        expect "what was trained is not delivered: $status" [ "$status" != prior ]
    fi
    printf '| %4d s | %6.2f | %-8s | %9s | %s\n' "$budget" "$TOOK" "$status" \
        "$(sed -n 's/.*time to predict \([0-9]* of [0-9]*\).*/\1/p' "$OUT" | tail -n 1)" "$data $options" >>table
done
lib_close
cat table
finish
