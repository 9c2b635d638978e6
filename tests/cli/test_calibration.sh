# Calibrated probabilities and labels: the temperature and the label rule of a model, in its file and in what it predicts.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for expect
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 100 --quiet || exit 1
cp -r k rare
mv k/sample_submission.csv k/solution.csv . # without a sample file the submission has probabilities
# A network that knows all pictures of k and is far from sure of them. All runs begin with it and change it little.
"$STOKER" train --data k --img-size 16 --epochs 14 --val-fraction 0 --label-smoothing 0.6 --out base --quiet || exit 1
small=(--img-size 16 --pretrained base/weights/last.safetensors)
train=(--data k "${small[@]}" --epochs 1 --lr 1e-4 --metric logloss --label-smoothing 0.6)

# note_of FILE: the calibration in the metadata of weights.
note_of() { head -c 4000 "$1" | grep -aEo '"calibration": "\{[^}]*\}' | sed 's/\\//g'; }

# strip RUN TO: copies a run whose weights have no calibration, like those of earlier versions.
strip() {
    cp -r "$1" "$2"
    find "$2/weights" -name best.safetensors -exec sed -i 's/"calibration"/"xalibration"/' {} +
}

# log_loss FILE: of the columns of classes, where the first two are the picture and its label.
log_loss() {
    awk -F , 'NR == 1 { for (i = 3; i <= NF; i++) at[$i] = i; next }
        { sum -= log($at[$2]); n++ } END { printf "%.6f\n", sum / n }' "$1"
}

# test_loss FILE: the same of a submission and solution.csv.
test_loss() {
    awk -F , 'NR == FNR { label[$1] = $2; next } FNR > 1 { $2 = label[$1] } { OFS = ","; print }' solution.csv "$1" |
        tr ' ' , >"$WORK/labelled"
    log_loss "$WORK/labelled"
}

below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

it "fits a temperature to the validation"
run train "${train[@]}" --refit 1 --out r
expect_exit 0
expect_out '^probabilities at temperature 0\.[0-9]+: log loss [0-9.]+ instead of [0-9.]+ on [0-9]+ held-out pictures$'
expect_out '^  held out    logloss [0-9.]+, validation of [0-9]+ pictures, at temperature 0\.[0-9]+; refits'
expect_summary r/summary.json temperature '0\.[0-9]+'
expect "held out is better than the best epoch" below "$(json r/summary.json held_out)" "$(json r/summary.json best_metric)"
temperature=$(json r/summary.json temperature)
expect "the model's file has it" grep -q "\"temperature\": $temperature," <<<"$(note_of r/weights/best.safetensors)"
expect "and that of the refit" grep -q "\"temperature\": $temperature," <<<"$(note_of r/weights/refit0/best.safetensors)"
expect_weights r/weights/best.safetensors

it "predicts as train did"
run predict --run r --out again.csv
expect_exit 0
expect_same r/submission.csv again.csv

it "reads weights of before it"
strip r old
run predict --run old --out old.csv
expect_exit 0
expect_not "the temperature matters" cmp -s r/submission.csv old.csv
expect "and is better on the test set" below "$(test_loss r/submission.csv)" "$(test_loss old.csv)"

it "leaves everything plain with --calibrate false"
run train "${train[@]}" --refit 1 --calibrate false --out plain
expect_exit 0
expect_no_out 'temperature'
expect_summary plain/summary.json temperature null
expect "held out is the best epoch's" [ "$(json plain/summary.json held_out)" = "$(json plain/summary.json best_metric)" ]
expect "there is no calibration in the file" [ -z "$(note_of plain/weights/best.safetensors)" ]
expect_same plain/submission.csv old.csv

it "calibrates out-of-fold predictions"
run train "${train[@]}" --folds 3 --refit 0 --out folds
expect_exit 0
expect_out '^probabilities of fold [123] at temperature 0\.'
expect_out '^  held out    logloss [0-9.]+, out-of-fold predictions of 300 pictures, at temperature 0\.'
run train "${train[@]}" --folds 3 --refit 0 --calibrate false --out folds_plain --quiet
expect_exit 0
cut -d , -f 1,2,4- folds/oof.csv >oof.csv
cut -d , -f 1,2,4- folds_plain/oof.csv >oof_plain.csv
expect "oof.csv has the probabilities that are better" below "$(log_loss oof.csv)" "$(log_loss oof_plain.csv)"
expect "held out is their log loss" below "$(awk -v a="$(log_loss oof.csv)" -v b="$(json folds/summary.json held_out)" \
    'BEGIN { print a > b ? a - b : b - a }')" 0.00001
run predict --run folds --out again.csv
expect_exit 0
expect_same folds/submission.csv again.csv

# Two classes are common. Two of five pictures of the last one are rare, and nobody can see which.
cp -r rare grades
last=$(tail -n +2 solution.csv | cut -d , -f 2 | sort -u | tail -n 1)
awk -F , -v last="$last" -v OFS=, 'NR > 1 {
        $2 = $2 == last && seen++ % 5 < 2 ? "rare" : "common"
    } { print }' k/train.csv >rare/train.csv

it "names rare classes where macro F1 counts"
run train --data rare "${small[@]}" --epochs 4 --refit 0 --val-fraction 0.3 --metric macro_f1 --sampling natural --out f1
expect_exit 0
expect_out '^labels by weights of rare classes: macro_f1 [0-9.]+ instead of [0-9.]+ on [0-9]+ held-out pictures$'
expect_out '^  held out    macro_f1 [0-9.]+, validation of [0-9]+ pictures, rare classes weighted$'
expect "the best epoch has the score with the rule" [ "$(json f1/summary.json best_metric)" = "$(json f1/summary.json held_out)" ]
told=$(grep -oE '^labels by weights of rare classes: macro_f1 [0-9.]+' "$WORK/out" | grep -oE '[0-9.]+$')
expect "results.csv has it" grep -qF ",$told" f1/results.csv
run predict --run f1 --out again.csv
expect_exit 0
expect_same f1/submission.csv again.csv
strip f1 f1_old
run predict --run f1_old --out old.csv
expect_exit 0
expect "the likeliest class is less often rare" [ "$(grep -c ',rare$' old.csv)" -lt "$(grep -c ',rare$' f1/submission.csv)" ]

# Grades 0, 1 and 2; which pictures of the last class have 2 instead of 1 nobody can see. A training that sees the grades
# equally often puts places between them where the validation has mostly the lower one: the cut points move.
awk -F , -v last="$last" -v OFS=, 'NR > 1 { $2 = $2 != last ? 0 : seen++ % 5 < 4 ? 1 : 2 } { print }' \
    k/train.csv >grades/train.csv

it "cuts the scale where kappa counts"
run train --data grades "${small[@]}" --epochs 4 --lr 0.002 --sampling balanced --refit 0 --metric qwk --folds 2 --out qwk
expect_exit 0
expect_out '^labels by cut points [0-9.]+, [0-9.]+: qwk [0-9.-]+ instead of [0-9.-]+ on [0-9]+ held-out pictures$'
expect_out '^  held out    qwk [0-9.]+, out-of-fold predictions of 300 pictures, with cut points$'
run predict --run qwk --out again.csv
expect_exit 0
expect_same qwk/submission.csv again.csv

finish
