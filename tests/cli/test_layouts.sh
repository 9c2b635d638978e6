# Layouts of data sets: class folders and Kaggle tables, with the many names that people give them.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"

# train DATA RUN ...: one short training.
train() {
    run train --data "$1" --out "$2" --img-size 16 --epochs 1 --seed 1 "${@:3}"
}
# same A B: two runs that differ in nothing; labels alone would be too weak a proof.
same() {
    expect_same "$1/submission.csv" "$2/submission.csv"
    expect_same "$1/weights/best.safetensors" "$2/weights/best.safetensors"
}
"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
"$STOKER" sample f --classes 3 --per-class 8 --quiet || exit 1
labels=$(ls f/train | tr '\n' ' ')

it "trains on train, val and a flat test folder"
train f r-folders
expect_exit 0
expect_out '24 training images, 3 validation, 6 test, 3 classes'
{
    echo "id,label,$(ls f/train | paste -s -d ,)"
    ls f/test | sed 's/\.jpg$//'
} >wanted
expect_submission r-folders/submission.csv wanted "$labels"

it "takes train, val and test folders with a year or a number for what they are"
mkdir years && cp -r f/train years/train2019 && cp -r f/val years/val_2019 && cp -r f/test years/Test-2
train years r-years
expect_exit 0
expect_out '24 training images, 3 validation, 6 test, 3 classes'
expect_out 'test set from Test-2'
expect_same r-years/submission.csv r-folders/submission.csv

it "writes label and probabilities when there is no sample file"
expect "ten commas a line or so: id, label, 3 classes" \
    [ "$(awk -F , '{ print NF }' r-folders/submission.csv | sort -u)" = 5 ]
expect "the label is the class with the highest probability" awk -F , '
    NR == 1 { for (i = 3; i <= NF; i++) name[i] = $i; next }
    { best = 3; for (i = 4; i <= NF; i++) if ($i > $best) best = i; if ($2 != name[best]) exit 1 }' \
    r-folders/submission.csv

it "trains on nothing but class folders, and splits the same way each time"
cp -r f/train bare
train bare r-bare
expect_exit 0
expect_out '19 training images, 5 validation'
expect_no_file r-bare/submission.csv
expect_file r-bare/weights/best.safetensors
expect_summary r-bare/summary.json submission null
expect_summary r-bare/summary.json status complete
train bare r-bare2
expect_same r-bare/weights/best.safetensors r-bare2/weights/best.safetensors
run train --data bare --out r-bare3 --img-size 16 --epochs 1 --seed 2
expect_not "another seed trains the same" cmp -s r-bare/weights/best.safetensors \
    r-bare3/weights/best.safetensors

it "says that the classes are folders, and refuses columns of no table"
run plan --data f --img-size 16 --epochs 1 --json
expect_exit 0
expect_out "\"reason\": \"classes: folders $(ls f/train | head -n 3 | paste -s -d , | sed 's/,/, /g')"
run train --data f --img-size 16 --epochs 1 --label-column nonsense
expect_exit 2
expect_err '--label-column nonsense: no table of f that leads to its pictures has such a column'

it "reads the folder of a data set that lies alone in a location"
mkdir -p high/comp-name high/__MACOSX && cp -r k/. high/comp-name/ && echo text >high/readme.md
train high r-high
expect_exit 0
expect_out '^the data set from comp-name: there is nothing else beside it$'
train k r-plain
same r-high r-plain

it "takes the folder as a bare word"
run train f --img-size 16 --epochs 1 --out r-word
expect_exit 0
run train f --data bare --img-size 16 --epochs 1 --out r-word2
expect_exit 2
expect_err 'bare'
expect_no_file r-word2

it "accepts a test folder by class"
mkdir -p byclass && cp -r f/train f/val byclass/ && cp -r f/val byclass/test
train byclass r-byclass
expect_exit 0
expect_out '3 test'
expect "three rows" [ "$(wc -l <r-byclass/submission.csv)" = 4 ]
expect "no id twice" [ -z "$(cut -d , -f 1 r-byclass/submission.csv | sort | uniq -d)" ]
cut -d , -f 1 r-byclass/submission.csv | sed 1d >ids
expect "ids are sorted" sort -c ids

it "trains on train.csv and copies header, ids and order of the sample file"
train k r-kaggle
expect_exit 0
expect_submission r-kaggle/submission.csv k/sample_submission.csv "$labels"

it "divides the cells of the submission as the sample does"
cp -r k semicolons
sed -i 's/,/;/' semicolons/sample_submission.csv
train semicolons r-semicolons
expect_exit 0
expect_same r-semicolons/submission.csv <(sed 's/,/;/' r-kaggle/submission.csv)

it "keeps the order and spelling of the sample file, whatever they are"
cp -r k shuffled
{
    echo 'Image_ID,Prediction'
    tail -n +2 k/sample_submission.csv | sort -r | sed 's/^\([^,]*\),.*/\1.jpg,x/'
} >shuffled/sample_submission.csv
train shuffled r-shuffled
expect_exit 0
expect_submission r-shuffled/submission.csv shuffled/sample_submission.csv "$labels"
join -t , <(tail -n +2 r-kaggle/submission.csv | sort) \
    <(tail -n +2 r-shuffled/submission.csv | sed 's/\.jpg,/,/' | sort) >both
expect "the labels are those of the other order" awk -F , '$2 != $3 { exit 1 } END { exit NR != 6 }' both

it "writes probabilities when the sample has a column per class"
cp -r k probabilities
{
    echo "id,$(echo "$labels" | tr ' ' '\n' | grep . | sort -r | paste -s -d ,)"
    tail -n +2 k/sample_submission.csv | sed 's/,.*/,0.3,0.3,0.4/'
} >probabilities/sample_submission.csv
train probabilities r-probabilities
expect_exit 0
expect_submission r-probabilities/submission.csv probabilities/sample_submission.csv
awk -F , 'NR == 1 { for (i = 2; i <= NF; i++) name[i] = $i; next }
    { best = 2; for (i = 3; i <= NF; i++) if ($i > $best) best = i; print $1 "," name[best] }' \
    r-probabilities/submission.csv >told
tail -n +2 r-kaggle/submission.csv >labelled
expect_same told labelled

it "reads labels.csv, quotes, CRLF and a BOM"
mkdir quoted && cp -r k/train k/test k/sample_submission.csv quoted/
{
    printf '\357\273\277"id","label"\r\n'
    tail -n +2 k/train.csv | sed 's/^\([^,]*\),\(.*\)$/"\1","\2"/' | sed 's/$/\r/'
} >quoted/labels.csv
train quoted r-quoted
expect_exit 0
same r-quoted r-kaggle

it "keeps classes with commas and quotes apart in the submission"
cp -r k odd
sed 's/,triangle/,"tri, ""angle""/; /""/s/$/"/' k/train.csv >odd/train.csv
rm odd/sample_submission.csv
train odd r-odd
expect_exit 0
expect_file r-odd/submission.csv '"tri, ""angle""_'

it "takes combinations of labels as several labels, or as classes when told"
cp -r k lists
awk -F , 'BEGIN { split("scab,rust,scab rust", l) } NR == 1 { print "id,labels" }
    NR > 1 { print $1 "," l[NR % 3 + 1] }' k/train.csv >lists/train.csv
train lists r-lists
expect_exit 0
expect_out "^task multilabel, .*such as 'scab rust'"
expect "each row has one label or both" awk -F , 'NR > 1 && $2 !~ /^(rust|scab|rust scab)$/ { exit 1 }' \
    r-lists/submission.csv
train lists r-texts --task single
expect_exit 0
expect_out "3 classes"
expect_submission r-texts/submission.csv k/sample_submission.csv

it "finds pictures by ids with and without their ending, in capitals and in subfolders"
cp -r k endings
sed '2,$s/,/.jpg,/' k/train.csv >endings/train.csv
train endings r-endings
expect_exit 0
same r-endings r-kaggle
mkdir deep && cp k/train.csv k/sample_submission.csv deep/ && cp -r k/test deep/
mkdir -p deep/train/part1 deep/train/part2
n=0
for file in k/train/*.jpg; do
    n=$((n + 1))
    name=${file##*/}
    cp "$file" "deep/train/part$((n % 2 + 1))/${name%.jpg}.JPG"
done
train deep r-deep
expect_exit 0
same r-deep r-kaggle

it "takes the names of columns and the ending of files when told"
cp -r k named
{
    echo 'row,file,species,weight'
    tail -n +2 k/train.csv | awk -F , '{ print NR "," $1 "," $2 "," NR * 2 }'
} >named/train.csv
train named r-named --id-column file --label-column species
expect_exit 0
same r-named r-kaggle
train named r-named2 --id-column file --label-column weigth
expect_exit 2
expect_err 'weigth.*did you mean|weigth.*weight'
expect_no_file r-named2
for file in named/train/*.jpg; do echo junk >"${file%.jpg}.png"; done
train named r-named3 --id-column file --label-column species
expect_exit 3
expect_err '--image-ext'
train named r-named4 --id-column file --label-column species --image-ext jpg
expect_exit 0
same r-named4 r-kaggle
train named r-named5 --image-ext svg
expect_exit 2
expect_err 'jpg, jpeg, png, webp, tif'

it "never reads solution.csv"
cp -r k spoilt
head -c 3000 /dev/urandom >spoilt/solution.csv
train spoilt r-spoilt
expect_exit 0
same r-spoilt r-kaggle
rm spoilt/solution.csv && mkdir spoilt/solution.csv
train spoilt r-spoilt2
expect_exit 0
same r-spoilt2 r-kaggle
rmdir spoilt/solution.csv
train spoilt r-spoilt3
expect_exit 0
same r-spoilt3 r-kaggle
if command -v strace >/dev/null 2>&1 && ! is_sanitized && strace -f true 2>/dev/null; then
    run_any strace -f -o trace -e trace=open,openat "$STOKER" train --data k --out r-traced --img-size 16 \
        --epochs 1
    expect_file trace 'train\.csv'
    expect_not "the file is opened" grep -q solution trace
fi

it "does not depend on where it is started from or how the path is written"
mkdir elsewhere
(cd elsewhere && "$STOKER" train --data ../k/ --out r --img-size 16 --epochs 1 --seed 1 --quiet)
same elsewhere/r r-kaggle
finish
