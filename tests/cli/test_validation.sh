# validation.csv: the predictions of the best epoch for each validation picture.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2016,SC2317  # awk's dollars; functions for wait_for
. "$(dirname "$0")/lib.sh"

"$STOKER" sample pics --classes 3 --per-class 24 --quiet || exit 1
small=(--data pics --img-size 16)

# shares FILE: the share of rows whose label is predicted, in percent: the mean over the folds.
shares() {
    awk -F , 'NR > 1 { rows[$(NF)]++; right[$(NF)] += $(NF - 3) == $(NF - 2) }
        END { for (f in rows) { sum += 100 * right[f] / rows[f]; folds++ }
            printf "%.3f", folds ? sum / folds : -1 }' "$1"
}

# expect_agrees RUN ROWS: the table has so many rows, and they are those of the best epochs.
expect_agrees() {
    expect_file "$1/validation.csv" '^path,label,predicted,probability,fold$'
    [ $(($(wc -l <"$1/validation.csv") - 1)) = "$2" ] ||
        fail "validation.csv has $(wc -l <"$1/validation.csv") lines, expected $2 and a header"
    [ "$(shares "$1/validation.csv")" = "$(printf %.3f "$(json "$1/summary.json" best_acc1)")" ] ||
        fail "$(shares "$1/validation.csv") % are right, summary.json has $(json "$1/summary.json" best_acc1)"
    expect "probabilities are numbers from 0 to 1" \
        awk -F , 'NR > 1 && !($(NF - 1) ~ /^[0-9.e-]+$/ && $(NF - 1) <= 1) { exit 1 }' "$1/validation.csv"
}

it "has a row for each picture of the validation folder"
run train "${small[@]}" --out given --epochs 2
expect_exit 0
expect_agrees given 12
expect "the label is the folder" \
    awk -F , 'NR > 1 && index($1, "val/" $2 "/") != 1 { exit 1 }' given/validation.csv
expect "rows are sorted" sort -c -t , -k 1,1 <(tail -n +2 given/validation.csv)
expect "who is right is likelier than chance, who is wrong is no sure thing" \
    awk -F , 'NR > 1 && ($2 == $3 ? $4 < 1 / 3 : $4 > 1 / 2) { exit 1 }' given/validation.csv
expect_no_file given/state/validation.csv

it "has a row for each picture that a part of the training set validates"
mkdir part && cp -r pics/train part/ && run train --data part --img-size 16 --out part-run --epochs 2
expect_exit 0
expect_agrees part-run 14 # a fifth of 72

it "has the rows of all folds"
run train --data part --img-size 16 --out folds --folds 3 --epochs 2
expect_exit 0
expect_agrees folds 72
expect "every picture is there once" \
    [ "$(tail -n +2 folds/validation.csv | cut -d , -f 1 | sort -u | wc -l)" = 72 ]
expect "a fold has the pictures that oof.csv says" \
    [ "$(awk -F , 'NR > 1 { print $1, $5 }' folds/validation.csv | sort)" = \
    "$(awk -F , 'NR > 1 { print $1, $3 }' folds/oof.csv | sort)" ]

it "leaves out what cannot be read, and quotes odd names"
cp -r pics odd && cd odd/val || exit 1
first=$(find . -mindepth 1 -maxdepth 1 -type d | sort | head -n 1)
mv "$first/0000.jpg" "$first/a, \"b\".jpg"
mv "$first/0001.jpg" "$first"/$'\377\376.jpg'
echo 'no picture' >"$first/0002.jpg"
cd ../.. || exit 1
run train --data odd --img-size 16 --out odd-run --epochs 1 --max-bad 50
expect_exit 0
expect_file odd-run/bad_images.csv 0002.jpg
LC_ALL=C expect_file odd-run/validation.csv '^"val/[^/]+/a, ""b"".jpg",'
LC_ALL=C expect "bytes that are no text stay" grep -qa $'/\377\376\\.jpg,' odd-run/validation.csv
expect "the bad picture has no row" [ "$(grep -ac 0002.jpg odd-run/validation.csv)" = 2 ]
expect_agrees odd-run 11

it "agrees with a run that its budget has cut short"
run train "${small[@]}" --out cut --epochs 1000 --budget 2s --quiet
expect_exit 0
[ "$(json cut/summary.json best_acc1)" = null ] || expect_agrees cut 12

it "goes on with the rows of the folds before, or without them where somebody has broken the file"
run train --data part --img-size 16 --out again --folds 3 --epochs 2 --quiet
cp again/validation.csv whole.csv
start train --data part --img-size 16 --out killed --folds 3 --epochs 2 --save-every 0 --quiet
second_fold() { grep -q '"event": "epoch", "fold": 1' killed/events.jsonl 2>/dev/null || is_gone; }
wait_for 60 second_fold || fail "no second fold was begun"
kill -9 "$PID" 2>/dev/null
ended 60
cp -r killed broken
run train --resume killed --quiet
expect_exit 0
expect_same killed/validation.csv whole.csv
expect_agrees killed 72
if [ ! -e broken/summary.json ]; then
    echo 'this,is' >broken/validation.csv
    rm -f broken/state/validation.csv
    run train --resume broken
    expect_exit 0
    expect_out 'validation.csv begins anew with fold [23]: .*other columns'
    expect "earlier folds are missing" [ "$(wc -l <broken/validation.csv)" -lt 73 ]
fi

finish
