# Folds: taken from a column, made of groups, their score, and folds that do not count in it.
# Mostly waits.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 24 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
# Three folds called b, c and a; pictures of one patient are three rows that follow each other.
awk -F , 'NR == 1 { print $0 ",kfold,patient"; next }
    { print $0 "," substr("bca", NR % 3 + 1, 1) ",p" int(NR / 3) }' k/train.csv >table.csv
cp table.csv k/train.csv
small=(--img-size 16 --epochs 1)

# column FILE FOLDS NAME: per row of oof.csv its fold and what the table has in the column.
column() {
    awk -F , -v name="$3" 'FNR == 1 { for (i = 1; i <= NF; i++) { if ($i == name) at = i } }
        NR == FNR { value[$1] = $at; next } FNR > 1 { print $3, value[$1] }' "$2" "$1" | sort -u
}

# cut_short NAME ARGUMENTS...: a training that learns nothing until its time is up, on a device that waits, so that
# all are under way beside the cases before theirs.
odd=$FAKES/odd_device.so
! is_sanitized || odd=''
cut_short() {
    launch "$1" LD_PRELOAD="$odd" ODD_DEVICE_US=3000 "$STOKER" train --out "$1" --device cpu --img-size 16 --workers 1 --budget 20s --lr 1e-9 "${@:2}"
}

# Fold a of `unfit` is of a class that its training part has not, which no prior foresees; fold b of the class that
# nearly all others have, which every prior does. `plain` has hardly anything but one class, and `bare` no test set.
for data in unfit plain bare; do
    cp -r k "$data.data"
done
awk -F , -v OFS=, 'NR > 1 { $2 = NR < 22 ? "B" : "A"; $3 = NR < 22 ? "a" : NR < 32 ? "b" : -1 } 1' \
    table.csv >unfit.data/train.csv
awk -F , -v OFS=, 'NR > 1 { $2 = NR % 9 == 0 ? "B" : "A" } 1' table.csv >plain.data/train.csv
cp plain.data/train.csv bare.data/ && rm -r bare.data/test bare.data/sample_submission.csv
cut_short none --data plain.data --folds 2
cut_short single --data plain.data
cut_short bare --data bare.data --folds 2
launch fewer LD_PRELOAD="$odd" ODD_DEVICE_US=10000 "$STOKER" train --data k --out fewer --device cpu --img-size 16 --workers 1 --budget 8s --group-column patient --folds 3

it "takes folds from a column, in the order of their values"
run train --data k --out given --fold-column kfold "${small[@]}"
expect_exit 0
expect_out '^3 folds as given: column kfold; 24 pictures each'
expect "each value is a fold" [ "$(column given/oof.csv k/train.csv kfold | tr '\n' ',')" = '0 a,1 b,2 c,' ]
expect_summary given/summary.json folds_planned 3
expect_file given/args.json '"folds": 3'
expect_submission given/submission.csv k/sample_submission.csv "$labels"
run train --data k --out given3 --fold-column kfold --folds 3 "${small[@]}" --quiet
expect_exit 0
expect_same given/oof.csv given3/oof.csv

it "tells the out-of-fold score after every fold and in the end"
run train --data k --out scored --folds 3 --metric macro_f1 --img-size 16 --epochs 2
expect_exit 0
expect_out '^out-of-fold accuracy [0-9.]+ %, macro_f1 [0-9.]+: [0-9]+ of 72 training images, 1 of 3 folds'
expect_out 'of 3 folds, out-of-fold accuracy [0-9.]+%, out-of-fold macro_f1 [0-9.]+;'
expect_file scored/events.jsonl '"event": "decision", "what": "out-of-fold accuracy'
accuracy=$(awk -F , 'NR == 1 { for (i = 4; i <= NF; i++) name[i] = $i; next }
    { best = 4; for (i = 5; i <= NF; i++) if ($i > $best) best = i; right += name[best] == $2 }
    END { printf "%.2f", 100 * right / (NR - 1) }' scored/oof.csv)
expect "the score is that of oof.csv, $accuracy" \
    [ "$(printf %.2f "$(json scored/summary.json oof_acc1)")" = "$accuracy" ]
expect_summary scored/summary.json oof_metric '0\.[0-9]+|1'

it "keeps groups together"
run train --data k --out grouped --group-column patient --folds 3 "${small[@]}"
expect_exit 0
expect_out '^3 folds of 25 groups: column patient; 2[0-9]( to 2[0-9])? pictures each'
expect "a patient is in one fold only" \
    [ -z "$(column grouped/oof.csv k/train.csv patient | cut -d ' ' -f 2 | sort | uniq -d)" ]
expect "every picture is predicted" [ "$(wc -l <grouped/oof.csv)" = 73 ]
run train --data k --out side --group-column patient --val-fraction 0.25 "${small[@]}"
expect_exit 0
expect_out '^validation by groups: column patient; 1[5-9]|2[01] of 72 pictures validate'

"$STOKER" sample f --classes 2 --per-class 4 --quiet || exit 1
it "looks for no groups when told so"
run plan --data k "${small[@]}"
expect_exit 0
expect_out '^rows with the same patient validate together: the name of the column says'
run plan --data k --group-column none "${small[@]}"
expect_exit 0
expect_not "groups were found" grep -q 'validate together' "$OUT"
run plan --data f --group-column none --quiet "${small[@]}"
expect_exit 0

it "says what is wrong with columns"
refused() {
    local code=$1 words=$2
    shift 2
    run train --out refused "$@" "${small[@]}"
    expect_exit "$code"
    expect_err "$words"
    expect_no_file refused
}
refused 2 "--fold-column fold: .*has no such column .did you mean 'kfold'.*id, label, kfold, patient" \
    --data k --fold-column fold
refused 2 '--group-column patient: .*has no table of labels' --data f --group-column patient
refused 2 'pass one of the two' --data k --fold-column kfold --group-column patient
refused 2 '--folds 5: column kfold of .* gives 3 folds' --data k --fold-column kfold --folds 5
refused 3 'cannot make 50 folds of 25 groups' --data k --group-column patient --folds 50
refused 2 'leave --val-per-class out' --data k --group-column patient --val-per-class 2
sed '5s/,[abc],/,,/' table.csv >k/train.csv
refused 3 'train.csv, line 5: column kfold is empty' --data k --fold-column kfold
cp table.csv k/train.csv

it "works with folds that lack a class, and with a class of one picture"
awk -F , -v OFS=, 'NR == 2 { $2 = "lonely" } NR > 2 && NR < 7 { $2 = "rare"; $3 = "a" } 1' table.csv >k/train.csv
rm k/sample_submission.csv
run train --data k --out odd --fold-column kfold --rare-class train "${small[@]}"
expect_exit 0
expect_out 'do not validate some class \(fold 2: rare\)'
expect_out '1 of 3 folds do not train on some class \(fold 1: rare\)'
expect_not "the lonely picture validates" grep -q ',lonely,[0-9]' odd/oof.csv
run train --data k --out odd2 --group-column patient --folds 3 --rare-class train "${small[@]}" --quiet
expect_exit 0
cp table.csv k/train.csv

it "trains the same from a staged copy that has the column, and from tars beside the table"
run stage k near --fold-column kfold --quiet
expect_exit 0
expect_file near/samples.csv '^split,class,id,path,member,kfold$'
run train --data near --out from-near --fold-column kfold "${small[@]}" --quiet
expect_exit 0
expect_same given/oof.csv from-near/oof.csv
refused 2 'was staged with column kfold; stage the data set again with --group-column patient' \
    --data near --group-column patient
run stage k plain --quiet
refused 2 'was staged with column patient; stage the data set again with --fold-column kfold' \
    --data plain --fold-column kfold
mkdir tars && tar -cf tars/pictures.tar -C k train && cp k/train.csv tars
run train --data tars --out from-tars --fold-column kfold "${small[@]}" --quiet
expect_exit 0
expect_same given/oof.csv from-tars/oof.csv

it "a resumed run is refused other folds, and predicts without the column"
cp -r given again
awk -F , -v OFS=, 'NR == 3 { $3 = $3 == "a" ? "b" : "a" } 1' table.csv >k/train.csv
sed -i 's/"complete"/"partial"/' again/summary.json
run train --resume again
expect_exit 3
expect_err 'or its column kfold changed between train and resume'
cp table.csv k/train.csv
run train --resume again --quiet
expect_exit 0
expect_same given/oof.csv again/oof.csv
expect_summary again/summary.json oof_acc1 "$(json given/summary.json oof_acc1)"
sed -i 's/,patient$/,other/; s/,kfold,/,gone,/' k/train.csv
run predict --run given
expect_exit 0
expect_out 'from 3 models'

it "a fold that is cut short and does not beat class priors is not in the ensemble"
# unfit ARGUMENTS...: a training on a device that is slow in the second fold, until that fold has one epoch more. The
# signal comes long before it has done all six.
fold_rows() { grep -c '^1,' unfit/results.csv 2>/dev/null; }
has_more_rows() { [ "$(fold_rows)" -gt "$rows" ]; }
unfit() {
    rows=$(fold_rows)
    rows=${rows:-0}
    ODD_DEVICE_US=3000 ODD_DEVICE_TIMES=20 ODD_DEVICE_FROM=$WORK/unfit/weights/fold1 LD_PRELOAD=$odd start "$@"
    wait_for 60 has_more_rows || fail "the second fold did no epoch"
    kill -INT "$PID"
    ended 60
}
unfit train --out unfit --img-size 16 --workers 1 --epochs 6 --lr 1e-9 --data unfit.data --fold-column kfold
expect_exit 0
expect_out '^fold 2 of 2 is not in the ensemble: it was cut short, and its best validation, loss .*, does not beat class priors, .* and 100.0 %'
expect_summary unfit/summary.json status partial
expect_summary unfit/summary.json folds_done 1
expect_weights unfit/weights/fold0/best.safetensors
expect_weights unfit/weights/fold1/below_prior.safetensors
expect_no_file unfit/weights/fold1/best.safetensors
expect "only fold 0 is in oof.csv" [ "$(tail -n +2 unfit/oof.csv | cut -d , -f 3 | sort -u)" = 0 ]
run predict --run unfit
expect_exit 0
expect_out 'from 1 of 2 models'
cp unfit/submission.csv before.csv
unfit train --resume unfit
expect_exit 0
expect_no_out 'are lost'
expect_summary unfit/summary.json folds_done 1
expect_no_file unfit/weights/fold1/best.safetensors
expect_same before.csv unfit/submission.csv

it "a fold that was trained as long as was asked for votes"
run train --data unfit.data --out whole --fold-column kfold "${small[@]}" --lr 1e-9 --quiet
expect_exit 0
expect_summary whole/summary.json status complete
expect_summary whole/summary.json folds_done 2

it "priors stay where no model beats them, and without a test set that is an error"
landed none
expect_exit 0
expect_summary none/summary.json status prior
expect_summary none/summary.json folds_done 0
expect_summary none/summary.json oof_acc1 null
expect_file none/submission.csv
landed single
expect_exit 0
expect_summary single/summary.json status prior
expect_same none/submission.csv single/submission.csv
expect_out '^class priors instead of the model: the budget ended it, and its best validation, loss'
expect_no_out '^  weights'
expect_no_out 'held out'
expect_summary single/summary.json held_out null
expect_weights single/weights/below_prior.safetensors
expect_no_file single/weights/best.safetensors
landed bare
expect_exit 2
expect_err "no fold's model beats class priors"

it "gives up folds before the first is trained, where the rehearsal tells"
landed fewer
if [ -n "$odd" ]; then
    expect_exit 0
    expect_out '^1 of 3 folds: 3 folds of 10 epochs need [0-9.]+ s more'
    expect "no epoch comes before it" awk '/^1 of 3 folds/ { said = 1 } /^fold .* epoch / && !said { exit 1 }' "$OUT"
    expect_no_out '^fold [23]/3'
    expect_summary fewer/summary.json folds_planned 3
fi

finish
