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
awk -F , 'NR == 1 { print "id,score,age"; next } { print $1 "," NR % 7 + 0.25 "," NR * 37 % 11 }' k/train.csv >numbers/train.csv
awk -F , 'NR == 1 { print "id,score"; next } { print $1 ",3.5" }' k/sample_submission.csv >numbers/sample_submission.csv
awk -F , 'NR == 1 { print "id,age"; next } { print $1 "," NR }' k/sample_submission.csv >numbers/test.csv
folder ranked
cp k/train.csv ranked/
awk -F , 'NR == 1 { print; next } { print $1 ",disc_stripes triangle_dots" }' k/sample_submission.csv >ranked/sample_submission.csv
folder eyes
awk -F , 'NR == 1 { print "image_id,ill"; next } { print $1 "," NR % 2 }' k/train.csv >eyes/train.csv
awk -F , 'NR == 1 { print "image_id,eye_id"; next } { print $1 ",eye" int(NR / 2) }' k/sample_submission.csv >eyes/test.csv
awk -F , 'NR == 1 { print "eye_id,ill"; next } !seen[$2]++ { print $2 ",0.5" }' eyes/test.csv >eyes/sample_submission.csv

declare -A task=([labels]=multilabel [numbers]=regression [ranked]=ranking [eyes]=binary)
declare -A takes=([labels]='the labels that hold' [numbers]='a number' [ranked]='the 2 likeliest classes'
    [eyes]="the probability of '1'")
declare -A cell=([labels]='[a-z ]*' [numbers]='[0-9.]+' [ranked]='[a-z]+_[a-z]+ [a-z]+_[a-z]+' [eyes]='0[.][0-9e-]+')

for data in labels numbers ranked eyes; do
    it "plans $data"
    run plan --data "$data" "${small[@]}" --json
    expect_exit 0
    expect_out "^\{\"task\": \"${task[$data]}\", \"metric\": \"[a-z0-9_]+\", \"submission_takes\": \"${takes[$data]}"

    it "trains $data in folds, with a refit, and predicts the same again"
    run train --data "$data" --out "$data.run" --folds 3 --refit 1 "${small[@]}"
    expect_exit 0
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

it "predicts pictures without tables"
run predict --run ranked.run --data k/test --out plain.csv --quiet
expect_exit 0
expect_empty "$ERR"
expect_file plain.csv '^[0-9a-f]+,[a-z]+_[a-z]+ [a-z]+_[a-z]+,[0-9.]+,[0-9.]+,[0-9.]+$'
run predict --run numbers.run --data k/test --out plain.csv --quiet
expect_exit 0
expect_out '^warning: .* has no table with them: each counts as its mean'
expect "the warning comes once" [ "$(wc -l <"$OUT")" = 1 ]
expect_file plain.csv '^id,score$'

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
finish
