# Tasks beyond one class per picture, from training to the last file: several labels, numbers, ranked lists, rows of
# several pictures.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 10 --quiet || exit 1
small=(--img-size 16 --epochs 1 --device cpu --model cifar_resnet20 --workers 1)

# folder NAME: a data set with the pictures of k, without tables.
folder() {
    mkdir "$1"
    ln -s ../k/train "$1/train"
    ln -s ../k/test "$1/test"
}

# Each picture has a label for its shape, two of them a second one. `age` lies beside the pictures. Rows of `eyes` have
# two pictures.
folder labels
awk -F '[,_]' 'NR == 1 { print "id,labels"; next } { print $1 "," $2 (NR % 3 ? " " $3 : "") }' k/train.csv >labels/train.csv
awk -F , 'NR == 1 { print "id,labels"; next } { print $1 ",disc dots" }' k/sample_submission.csv >labels/sample_submission.csv
folder numbers
awk -F , 'NR == 1 { print "id,score,age,sex"; next } { print $1 "," NR % 7 + 0.25 "," NR * 37 % 11 "," (NR % 3 ? "f" : "m") }' k/train.csv >numbers/train.csv
awk -F , 'NR == 1 { print "id,score"; next } { print $1 ",3.5" }' k/sample_submission.csv >numbers/sample_submission.csv
awk -F , 'NR == 1 { print "id,age,sex"; next } { print $1 "," NR "," (NR % 2 ? "f" : "m") }' k/sample_submission.csv >numbers/test.csv
folder ranked
cp k/train.csv ranked/
awk -F , 'NR == 1 { print; next } { print $1 ",disc_stripes triangle_dots" }' k/sample_submission.csv >ranked/sample_submission.csv
folder eyes
awk -F , 'NR == 1 { print "image_id,ill"; next } { print $1 "," NR % 2 }' k/train.csv >eyes/train.csv
awk -F , 'NR == 1 { print "image_id,eye_id"; next } { print $1 ",eye" int(NR / 2) }' k/sample_submission.csv >eyes/test.csv
awk -F , 'NR == 1 { print "eye_id,ill"; next } !seen[$2]++ { print $2 ",0.5" }' eyes/test.csv >eyes/sample_submission.csv
# The same where the training pictures can be grouped as the rows are.
folder sides
awk -F , 'NR == 1 { print "image_id,patient,side,ill"; next } { n = int(NR / 2); print $1 ",p" int(n / 2) "," (n % 2 ? "L" : "R") "," int(n / 4) % 2 }' k/train.csv >sides/train.csv
awk -F , 'NR == 1 { print "image_id,patient,side,row_id"; next } { n = int(NR / 2); s = n % 2 ? "L" : "R"; p = "t" int(n / 2); print $1 "," p "," s "," p "_" s }' k/sample_submission.csv >sides/test.csv
awk -F , 'NR == 1 { print "row_id,ill"; next } !seen[$4]++ { print $4 ",0.5" }' sides/test.csv >sides/sample_submission.csv

declare -A task=([labels]=multilabel [numbers]=regression [ranked]=ranking [eyes]=binary)
declare -A takes=([labels]='the labels that hold' [numbers]='a number' [ranked]='the 2 likeliest classes'
    [eyes]="the probability of '1'")
declare -A holds=([labels]='6 labels' [numbers]='1 number' [ranked]='3 classes' [eyes]='2 classes')
declare -A cell=([labels]='[a-z ]*' [numbers]='[0-9.]+' [ranked]='[a-z]+_[a-z]+ [a-z]+_[a-z]+' [eyes]='0[.][0-9e-]+')

for data in labels numbers ranked eyes; do
    it "plans $data"
    run plan --data "$data" "${small[@]}" --json
    expect_exit 0
    expect_out "^\{\"task\": \"${task[$data]}\", \"metric\": \"[a-z0-9_]+\", \"submission_takes\": \"${takes[$data]}"
    expect_out "\"submission\": \{\"rows\": [0-9]+, \"columns\": 2, \"header\": \"$(head -n 1 "$data/sample_submission.csv")\", \"sample\": \"sample_submission.csv\"\}"

    it "trains $data in folds, with a refit, and predicts the same again"
    run train --data "$data" --out "$data.run" --folds 3 --refit 1 "${small[@]}"
    expect_exit 0
    expect_out "^data: $data, 20 training images, 10 validation, [0-9]* test, ${holds[$data]}\$"
    expect_out 'out-of-fold .*: 30 of 30 training images, 3 of 3 folds'
    expect_summary "$data.run/summary.json" task "${task[$data]}"
    expect_summary "$data.run/summary.json" folds_done 4
    expect_not "the out-of-fold metric is known" grep -q '"oof_metric": null' "$data.run/summary.json"
    # shellcheck disable=SC2016  # awk's dollars
    expect "a row of the submission has another cell" \
        awk -F , -v cell="^${cell[$data]}\$" 'NR > 1 && (NF != 2 || $2 !~ cell) { exit 1 }' "$data.run/submission.csv"
    expect "the submission has the rows of the sample" \
        cmp <(cut -d , -f 1 "$data.run/submission.csv") <(cut -d , -f 1 "$data/sample_submission.csv")
    cp "$data.run/submission.csv" "$data.csv"
    run predict --run "$data.run" --quiet
    expect_exit 0
    expect_same "$data.run/submission.csv" "$data.csv"
    run predict --run "$data.run" --data "$data" --out again.csv --quiet
    expect_exit 0
    expect_empty "$ERR"
    expect_same again.csv "$data.csv"
done

# Whole numbers with a point; a class that no training picture shows; no description.
folder shapes
awk -F '[,_]' 'NR == 1 { print "id,label"; next } { print $1 "," ($2 == "disc") ".0" }' k/train.csv >shapes/train.csv
awk -F , 'NR == 1 { print "id,label"; next } { print $1 "," NR % 2 }' k/sample_submission.csv >shapes/sample_submission.csv
folder chances
cp k/train.csv chances/
awk -F , 'NR == 1 { print "id,unicorn," A; next } { print $1 ",0.25,0.25,0.25,0.25" }' \
    A="$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | paste -s -d ,)" k/sample_submission.csv >chances/sample_submission.csv

it "writes labels as the sample has them"
run train --data shapes --out shapes.run "${small[@]}"
expect_exit 0
expect_out "^labels of label without '.0': all are whole numbers, and the sample has none with it$"
expect_out '^metric acc1: no description names one, and each row takes the label$'
expect_out '^answer file: [0-9]+ rows of id,label, as sample_submission.csv has them$'
expect_not "a label has a point" grep -q '[.]' shapes.run/submission.csv

it "tells a metric that it does not compute"
echo 'Submissions are evaluated on the mean F2 score. The F score measures accuracy.' >shapes/description.md
run plan --data shapes "${small[@]}"
expect_exit 0
expect_out '^metric macro_f1: the description asks for "mean F2 score", which Stoker does not compute; macro_f1 rates instead$'
echo 'Submissions are evaluated on balanced accuracy.' >shapes/description.md
run plan --data shapes "${small[@]}"
expect_exit 0
expect_out '^metric balanced_acc: the description asks for "balanced accuracy"$'
rm shapes/description.md

it "rates probabilities by their log loss, and gives a class that nothing shows a little"
run plan --data chances "${small[@]}"
expect_exit 0
expect_out '^metric logloss: no description names one, and each row takes a probability for each class, which sum to 1$'
run train --data chances --out chances.run "${small[@]}"
expect_exit 0
expect_out 'first: unicorn. and gets 0.0294 in every row, as if it had one picture$'
expect_summary chances.run/summary.json metric logloss
# shellcheck disable=SC2016  # awk's dollars
expect "rows have 1 of 34 for it, and sum to 1" awk -F , \
    'NR > 1 && ($2 != "0.0294117647" || ($2 + $3 + $4 + $5 - 1) ^ 2 > 1e-12) { exit 1 }' chances.run/submission.csv
cp chances.run/submission.csv chances.csv
for data in '' '--data chances'; do
    # shellcheck disable=SC2086  # two words
    run predict --run chances.run $data --out again.csv --quiet
    expect_exit 0
    expect_same again.csv chances.csv
done
run train --data chances --out given "${small[@]}" --metric acc1
expect_exit 0
expect_no_out '^metric '
# Answers in the form of the sample: lists with brackets and quotes, a class and its probability, shares of votes.
folder listed
awk -F '[,_]' 'NR == 1 { print "id,tags"; next } { print $1 ",\"[\x27" $2 "\x27" (NR % 3 ? ", \x27" $3 "\x27" : "") "]\"" }' k/train.csv >listed/train.csv
awk -F , 'NR == 1 { print "id,tags"; next } { print $1 ",[\x27disc\x27]" }' k/sample_submission.csv >listed/sample_submission.csv
folder sure
cp k/train.csv sure/
awk -F , 'NR == 1 { print "id,answer"; next } { print $1 ",disc_stripes 0.0" }' k/sample_submission.csv >sure/sample_submission.csv
folder votes
awk -F , 'NR == 1 { print "id,x_vote,y_vote"; next } { print $1 "," NR % 5 "," NR % 3 + 1 }' k/train.csv >votes/train.csv
awk -F , 'NR == 1 { print "id,x_vote,y_vote"; next } { print $1 ",0.5,0.5" }' k/sample_submission.csv >votes/sample_submission.csv
declare -A form=([listed]="^[^,]*,(\"?\\[('[a-z]+'(, )?)*\\]\"?)\$" [sure]='^[^,]*,[a-z]+_[a-z]+ (0[.])?[0-9e-]+$'
    [votes]='^[^,]*,[0-9.e-]+,[0-9.e-]+$')

for data in listed sure votes; do
    it "writes $data answers in the form of the sample, and predicts the same again"
    run train --data "$data" --out "$data.run" "${small[@]}"
    expect_exit 0
    expect_not "a row has another form" grep -qvE "${form[$data]}" <(tail -n +2 "$data.run/submission.csv")
    for more in '' "--data $data"; do
        # shellcheck disable=SC2086  # two words
        run predict --run "$data.run" $more --out again.csv --quiet
        expect_exit 0
        expect_same again.csv "$data.run/submission.csv"
    done
done
# shellcheck disable=SC2016  # awk's dollars
expect "shares of a row sum to 1" awk -F , 'NR > 1 && ($2 < 0 || $3 < 0 || ($2 + $3 - 1) ^ 2 > 1e-12) { exit 1 }' votes.run/submission.csv

it "refuses boxes in one sentence, and learns the column that is named"
folder boxes
awk -F , 'NR == 1 { print "id,kind,xmin,ymin,xmax,ymax"; next } { print $1 "," $2 ",1,2,30,40" }' k/train.csv >boxes/train.csv
awk -F , 'NR == 1 { print "id,PredictionString"; next } { print $1 ",disc 0.9 0 0 1 1" }' k/sample_submission.csv >boxes/sample_submission.csv
run plan --data boxes "${small[@]}"
expect_exit 3
expect_err 'the sample submission asks for boxes in pictures .xmin ... ymax in train.csv., and Stoker does not find things'
run plan --data boxes --label-column kind "${small[@]}"
expect_exit 0

it "takes the positive class from --positive, and refuses a name that is no class"
run plan --data eyes --positive 0 "${small[@]}"
expect_exit 0
expect_out "^task binary, each row takes the probability of '0': .*ill"
run plan --data eyes --positive eye "${small[@]}"
expect_exit 2
expect_err "[-]-positive eye: there is no such class; the two are '0' and '1'"

it "says how the values of a row's pictures become one"
run plan --data eyes "${small[@]}"
expect_out 'pictures for [0-9]+ rows, whose values are averaged: several have the same eye_id, and the training pictures cannot be grouped so'
run plan --data eyes --pool max "${small[@]}"
expect_out 'pictures for [0-9]+ rows, of whose values the largest count: several have the same eye_id$'
run plan --data sides "${small[@]}"
expect_out 'whose values are averaged or maximised, as validates better: several have the same row_id$'
expect_summary eyes.run/summary.json pool mean
expect_summary ranked.run/summary.json pool null

it "takes the largest where it is told, and predicts so again"
for pool in mean max; do
    run train --data sides --out "sides.$pool" --folds 2 --refit 1 --pool "$pool" "${small[@]}"
    expect_exit 0
    expect_out 'out-of-fold .*: [0-9]+ rows of 30 training images, 2 of 2 folds'
    expect_summary "sides.$pool/summary.json" pool "$pool"
    run predict --run "sides.$pool" --data sides --out again.csv --quiet
    expect_exit 0
    expect_same again.csv "sides.$pool/submission.csv"
done
expect_not "the largest is the mean" cmp -s sides.mean/submission.csv sides.max/submission.csv
run train --data sides --out sides.plain --pool max --no-calibrate --val-fraction 0 "${small[@]}"
expect_exit 0
expect_summary sides.plain/summary.json pool max
run predict --run sides.plain --data sides --out again.csv --quiet
expect_same again.csv sides.plain/submission.csv

# Classes of one to three pictures each, which a network from scratch does not learn in two epochs.
"$STOKER" sample few --layout kaggle --classes 12 --per-class 30 --quiet || exit 1
rm few/sample_submission.csv
mkdir rare
ln -s ../few/train rare/train
ln -s ../few/test rare/test
awk -F , 'NR == 1 { print; next } n[$2]++ < 4' few/train.csv >rare/train.csv
(cd few/test && printf 'id,label\n' && for picture in *; do echo "${picture%.*},disc_stripes triangle_dots"; done) >rare/sample_submission.csv

it "lets means of rare classes join the head where that validates better"
run train --data rare --out rare.run --mismatch skip "${small[@]}" --epochs 8
expect_exit 0
expect_out '^the means of rare classes (join the head, with weight [0-9.]+: mapk [0-9.]+ instead of|do not join the head: mapk)'
run predict --run rare.run --data rare --out again.csv --mismatch skip --quiet
expect_exit 0
expect_same again.csv rare.run/submission.csv
run train --data rare --out rare.folds --mismatch skip --folds 2 --refit 1 "${small[@]}" --epochs 8
expect_exit 0
expect_out '^the means of rare classes'
run predict --run rare.folds --data rare --out again.csv --mismatch skip --quiet
expect_exit 0
expect_same again.csv rare.folds/submission.csv
run train --data rare --out rare.plain --mismatch skip --no-class-means "${small[@]}"
expect_exit 0
expect_not "means were computed" grep -q 'the means of rare classes' "$OUT"

it "writes true answers into the tables"
expect_file labels.run/oof.csv '^id,label,fold,[a-z,]+$'
expect "labels are those of the table" \
    cmp <(tail -n +2 labels/train.csv | sed 's/ /\n/' | sort | uniq -c | wc -l) <(tail -n +2 labels.run/oof.csv | cut -d , -f 1,2 | sed 's/ /\n/' | sort | uniq -c | wc -l)
expect_file labels.run/validation.csv '^train/[0-9a-f]+.jpg,[a-z]+ [a-z]+,[a-z ]*,0[.][0-9]+,2$'
expect_file numbers.run/oof.csv '^[0-9a-f]+,[0-6][.]25,1,[0-9.]+$'
expect_file numbers.run/validation.csv '^train/[0-9a-f]+.jpg,[0-6][.]25,[0-9.]+,,2$'
expect "a picture is missing from validation.csv" [ "$(wc -l <numbers.run/validation.csv)" = 31 ]
expect_summary numbers.run/summary.json best_acc1 null

it "draws a confusion only where there are classes"
expect_file ranked.run/report.html 'id="confusion"'
expect_not "labels have a confusion" grep -q 'id="confusion"' labels.run/report.html
run report labels.run
expect_exit 0
expect_empty "$ERR"
expect_not "labels have a confusion" grep -q 'id="confusion"' labels.run/report.html
run report numbers.run
expect_exit 0
expect_empty "$ERR"

it "says in the report what is learned"
expect_file labels.run/report.html '<dt>Labels</dt><dd>6<'
expect_file numbers.run/report.html '<dt>Numbers</dt><dd>1<'
expect_file ranked.run/report.html '<dt>Classes</dt><dd>3<'

it "predicts pictures without tables"
run predict --run ranked.run --data k/test --out plain.csv --quiet
expect_exit 0
expect_empty "$ERR"
expect_file plain.csv '^[0-9a-f]+,[a-z]+_[a-z]+ [a-z]+_[a-z]+,[0-9.]+,[0-9.]+,[0-9.]+$'
run predict --run numbers.run --data k/test --out plain.csv --quiet
expect_exit 0
expect_out '^warning: .* has learned from 2 columns beside the pictures, and .*k/test has no table of test rows: every column counts as empty'
expect "the warning comes once" [ "$(wc -l <"$OUT")" = 1 ]
expect_file plain.csv '^id,score$'

it "turns columns into numbers as training did, whatever tables lie there now"
folder elsewhere
cp numbers/{test,sample_submission}.csv elsewhere/
awk -F , -v OFS=, 'NR > 1 { $3 = $3 * 100 + 7; $4 = "x" NR % 5 } 1' numbers/train.csv >elsewhere/train.csv
run predict --run numbers.run --data elsewhere --out moved.csv --quiet
expect_exit 0
expect_empty "$ERR"
expect_same moved.csv numbers.csv
rm elsewhere/train.csv
run predict --run numbers.run --data elsewhere --out moved.csv --quiet
expect_exit 0
expect_empty "$ERR"
expect_same moved.csv numbers.csv
awk -F , -v OFS=, 'NR > 1 { $3 = "other" } 1' numbers/test.csv >elsewhere/test.csv
run predict --run numbers.run --data elsewhere --out unknown.csv --quiet
expect_exit 0
expect_empty "$ERR"
expect_not "an unknown text counts as none" cmp -s unknown.csv numbers.csv
cut -d , -f 1,2 numbers/test.csv >elsewhere/test.csv
run predict --run numbers.run --data elsewhere --out absent.csv --quiet
expect_exit 0
expect_out '^warning: 1 of the 2 columns that .* has learned from is not in the table of test rows of .*elsewhere [(]sex[)]: they count as empty'
expect "the warning comes once" [ "$(wc -l <"$OUT")" = 1 ]
expect_same absent.csv unknown.csv

it "predicts with a model that does not say how columns become numbers"
cp -r numbers.run older.run
find older.run -name best.safetensors -exec sed -i 's/"columns":/"olumnsc":/' {} +
run predict --run older.run --out older.csv --quiet
expect_exit 0
expect_out '^warning: .* was written by an earlier version, which did not keep how columns become numbers'
expect_same older.csv numbers.csv
run predict --run older.run --data k/test --out plain.csv --quiet
expect_exit 0
expect_out '^warning: .* has no table with them: each counts as its mean'

it "writes what --metric rates, and goes on so"
folder flags
awk -F , 'NR == 1 { print "id,ill"; next } { print $1 "," NR % 2 }' k/train.csv >flags/train.csv
awk -F , 'NR == 1 { print "id,ill"; next } { print $1 "," NR % 2 }' k/sample_submission.csv >flags/sample_submission.csv
run plan --data flags "${small[@]}" --json
expect_out '"submission_takes": "the label"'
run plan --data flags "${small[@]}" --metric auc --json
expect_out "\"metric\": \"auc\", \"submission_takes\": \"the probability of '1'\""
run train --data flags --out flags.run --metric auc "${small[@]}"
expect_exit 0
expect_out "^task binary, each row takes the probability of '1': the metric is --metric auc"
expect_not "the metric is said to be the description's" grep -q 'the description asks for' "$OUT"
expect_file flags.run/submission.csv '^[0-9a-f]+,0[.][0-9e-]+$'
cp flags.run/submission.csv flags.csv
run predict --run flags.run --quiet
expect_exit 0
expect_same flags.run/submission.csv flags.csv
run predict --run flags.run --data flags --out again.csv --quiet
expect_exit 0
expect_same again.csv flags.csv
run train --resume flags.run --epochs 2 --quiet
expect_exit 0
expect_file flags.run/submission.csv '^[0-9a-f]+,0[.][0-9e-]+$'

it "refuses to average runs of other tasks"
run predict --run ranked.run --run labels.run --data k/test --out no.csv
expect_exit 3
expect_err 'ranked.run predicts classes and labels.run predicts labels, so that their predictions cannot be averaged'
run predict --run labels.run --run numbers.run --data k/test --out no.csv
expect_exit 3
expect_err 'labels.run predicts labels and numbers.run predicts numbers'
expect_no_file no.csv

it "refuses to stage what a copy cannot hold"
for data in labels numbers ranked eyes; do
    run stage --data "$data" near
    expect_exit 2
    expect_err "cannot stage $data: it has .*; train on the data set itself, with --cache"
    expect_no_file near
done

# half RUN: whether the first epoch of a run is over.
half() {
    grep -qs '"event": "epoch"' "$1/events.jsonl"
}

for data in labels numbers eyes; do
    it "goes on with $data after a signal as if nothing had happened"
    can_fake odd_device || continue
    # Each picture takes its time, so that the signal comes before the end.
    launch "$data" LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US=20000 "$STOKER" train --data "$data" \
        --out "$data.half" "${small[@]}" --epochs 4 --quiet
    wait_for 60 half "$data.half"
    run stop "$data.half"
    landed "$data"
    expect_exit 0
    expect_summary "$data.half/summary.json" stop_reason signal
    run train --resume "$data.half" --quiet
    expect_exit 0
    run train --data "$data" --out "$data.whole" "${small[@]}" --epochs 4 --quiet
    expect_exit 0
    expect_same "$data.half/submission.csv" "$data.whole/submission.csv"
    expect_same "$data.half/validation.csv" "$data.whole/validation.csv"
done

it "learns numbers as shares of their range, and goes on with that"
run train --data numbers --out bce "${small[@]}" --epochs 4 --loss bce
expect_exit 0
expect_out 'loss bce'
# shellcheck disable=SC2016  # awk's dollars
expect "val/loss is a cross-entropy" awk -F , 'NR > 1 && !($5 > 0.2 && $5 < 1.5) { exit 1 }' bce/results.csv
# shellcheck disable=SC2016  # awk's dollars
expect "the submission is within the range" \
    awk -F , 'NR > 1 && !($2 > 0.25 && $2 < 6.25) { exit 1 }' bce/submission.csv
cp bce/submission.csv bce.csv
run predict --run bce --quiet
expect_exit 0
expect_same bce.csv bce/submission.csv
expect_not "another loss learns something else" cmp -s bce.csv numbers.whole/submission.csv
run train --data numbers --out bce.half "${small[@]}" --epochs 2 --schedule constant --loss bce --quiet
expect_exit 0
run train --resume bce.half --epochs 4 --quiet
expect_exit 0
run train --data numbers --out bce.whole "${small[@]}" --epochs 4 --schedule constant --loss bce --quiet
expect_exit 0
expect_same bce.half/submission.csv bce.whole/submission.csv
run train --resume bce.half --epochs 6 --loss mse
expect_exit 2
expect_err 'loss'

it "learns labels with another loss"
for loss in focal asymmetric; do
    run train --data labels --out "$loss" "${small[@]}" --loss "$loss" --positive-weight auto --quiet
    expect_exit 0
    expect_file "$loss/args.yaml" "^loss: $loss"
    expect_not "it is another training" cmp -s "$loss/submission.csv" labels.whole/submission.csv
done

it "refuses a loss that does not go with the task"
run train --data labels --out no "${small[@]}" --loss mse
expect_exit 2
expect_err '--loss mse does not go with the task multilabel, .* one of these: bce, focal, asymmetric$'
run train --data eyes --out no "${small[@]}" --positive-weight 3
expect_exit 2
expect_err '--positive-weight is for several labels, and the task is binary'
run train --data eyes --out no "${small[@]}" --loss bec
expect_exit 2
expect_err 'auto.* ce.* bce.* focal.* asymmetric.* mse.* mae.* huber'
expect_no_file no

it "notices labels, numbers and columns that changed before a resume"
sed -i '2s/,[a-z]*/,disc/; 3s/,[a-z]*/,triangle/; 4s/,[a-z]*/,square/' labels/train.csv
run train --resume labels.whole --epochs 6
expect_exit 3
expect_err 'names or labels of the images of .*labels changed between train and resume'
cp numbers/train.csv before.csv
sed -i '2s/,[0-9.]*,/,0.75,/' numbers/train.csv
run train --resume numbers.whole --epochs 6
expect_exit 3
expect_err 'changed between train and resume'
awk -F , -v OFS=, 'NR == 5 { $3 = $3 + 40 } 1' before.csv >numbers/train.csv
run train --resume numbers.whole --epochs 6
expect_exit 3
expect_err 'or columns beside them changed between train and resume'
cp before.csv numbers/train.csv
run train --resume numbers.whole --epochs 6 --quiet
expect_exit 0

# The column `part` says which rows train, validate and are predicted; without another word the test rows are its own.
folder parts
# shellcheck disable=SC2016  # awk's dollars
awk -F , 'NR == 1 { print "id,score,part"; next }
    { print $1 "," NR % 7 + 0.25 "," (NR % 5 == 0 ? "val" : NR % 5 == 1 ? "test" : "train") }' k/train.csv >parts/train.csv

it "validates with the rows that a column names, and predicts its test rows"
run train --data parts --out parts.run "${small[@]}"
expect_exit 0
expect_out '^data: parts, 18 training images, 6 validation, 6 test, 1 number$'
expect_out '^18 rows train, 6 validate, 6 are test rows: column part of train.csv says so$'
expect "other pictures validated than those of the column" \
    cmp <(awk -F , '$3 == "val" { print "train/" $1 ".jpg" }' parts/train.csv | sort) <(tail -n +2 parts.run/validation.csv | cut -d , -f 1 | sort)
expect "other rows are predicted than those of the column" \
    cmp <(awk -F , '$3 == "test" { print $1 }' parts/train.csv) <(tail -n +2 parts.run/submission.csv | cut -d , -f 1)
run predict --run parts.run --data parts --out parts.csv --quiet
expect_exit 0
expect_same parts.csv parts.run/submission.csv

it "says that folds do not use the given validation set"
run train --data parts --out parts.folds --folds 2 "${small[@]}"
expect_exit 0
expect_out 'the 6 images of the validation set are not used'

it "does not put numbers into the sample of another competition that asks for texts"
run predict --run parts.run --data labels --out foreign.csv
expect_exit 0
expect_out 'sample_submission.csv asks for texts, and the models say numbers: the file gets their own columns'
expect "another header: $(head -n 1 foreign.csv)" [ "$(head -n 1 foreign.csv)" = id,score ]

finish
