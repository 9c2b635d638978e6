# `stoker predict`: the submission again, other pictures, and runs that cannot predict.
# Measures no time.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
{
    echo "id,$(echo "$labels" | tr ' ' '\n' | grep . | paste -s -d ,)"
    tail -n +2 k/sample_submission.csv | sed 's/,.*/,1,0,0/'
} >wide && mv wide k/sample_submission.csv
"$STOKER" train --data k --out r --img-size 16 --epochs 3 --quiet || exit 1
cp r/submission.csv first

it "writes the submission again, byte for byte"
rm r/submission.csv
run predict --run r
expect_exit 0
expect_out 'r/submission.csv \(6 rows, from 1 model\)'
expect_same r/submission.csv first
run predict r
expect_exit 0
expect_same r/submission.csv first
expect_tidy r

it "works from any folder, since the run remembers where its data are"
mkdir elsewhere && cd elsewhere || exit 1
run predict --run ../r
expect_exit 0
cd .. || exit 1
expect_same r/submission.csv first

it "averages the folds again"
"$STOKER" train --data k --out r-folds --folds 2 --img-size 16 --epochs 2 --quiet || exit 1
cp r-folds/submission.csv first-folds
run predict --run r-folds
expect_exit 0
expect_out 'from 2 models'
expect_same r-folds/submission.csv first-folds

it "writes to another file, and leaves the run alone"
run predict --run r --out there.csv
expect_exit 0
expect_same there.csv first
expect_same r/submission.csv first
run predict --run r --out no/such/folder.csv
expect_exit 5
expect_err 'no/such/folder.csv'
expect_no_file no

it "predicts another folder of pictures"
mkdir other && n=0
for file in k/train/*.jpg; do
    n=$((n + 1))
    [ "$n" -gt 5 ] || cp "$file" "other/picture$n.jpg"
done
run predict --run r --data other
expect_exit 0
expect_file r/predictions.csv
expect "a row for each" [ "$(wc -l <r/predictions.csv)" = 6 ]
expect "in the order of the names" [ "$(tail -n +2 r/predictions.csv | cut -d , -f 1 | tr '\n' ' ')" = \
    'picture1 picture2 picture3 picture4 picture5 ' ]
expect "rows sum to 1" awk -F , 'NR > 1 { s = $3 + $4 + $5; if (s < 0.999999 || s > 1.000001) exit 1 }' \
    r/predictions.csv
expect_same r/submission.csv first
run predict --run r --data other --out other.csv
expect_exit 0
expect_same other.csv r/predictions.csv
run predict --run r --data k --out same.csv
expect_exit 0
expect_same same.csv first

it "speaks JSON, and nothing when quiet"
run predict --run r --json
expect_exit 0
expect_empty "$ERR"
expect_jsonl "$OUT"
expect_out '"event": "submission"'
run predict --run r --quiet
expect_exit 0
expect_empty "$OUT"
expect_empty "$ERR"

it "needs a run folder"
run predict
expect_exit 2
expect_err '--run'
run predict --run nowhere
expect_exit 2
expect_err 'nowhere'
run predict --run k
expect_exit 2
expect_err 'k is not a run folder'
expect_no_file k/submission.csv
cp -r r torn && head -c 40 r/args.json >torn/args.json
run predict --run torn
expect_exit 2
expect_err 'torn'

it "predicts from class priors when a run has no weights, and says so"
cp -r r bare && rm -r bare/weights bare/predictions.csv
run predict --run bare
expect_exit 0
expect_out 'no trained model.*priors'
expect_submission bare/submission.csv k/sample_submission.csv
run predict --run bare --data other
expect_exit 3
expect_err 'no trained model'
expect_no_file bare/predictions.csv

it "refuses corrupt weights and leaves the old submission"
size=$(wc -c <r/weights/best.safetensors)
for kind in short noise empty header kind; do
    rm -rf spoilt && cp -r r spoilt
    file=spoilt/weights/best.safetensors
    case $kind in
    short) head -c $((size / 2)) r/weights/best.safetensors >"$file" ;;
    noise) head -c 5000 /dev/urandom >"$file" ;;
    empty) : >"$file" ;;
    header) printf '\377\377\377\377\377\377\377\377{}' >"$file" ;;
    kind) tail -c +9 r/weights/best.safetensors | sed '1s/"F32"/"F99"/' >tail9 &&
        { head -c 8 r/weights/best.safetensors && cat tail9; } >"$file" ;;
    esac
    run predict --run spoilt
    [ "$CODE" = 3 ] || [ "$CODE" = 5 ] || fail "$kind: the exit code is $CODE"
    expect_err 'weights/best.safetensors'
    expect_same spoilt/submission.csv first
    expect_tidy spoilt
done

it "says that the data are gone, and takes them from elsewhere"
mv k moved
run predict --run r
expect_exit 3
expect_err "$WORK/k"
expect_same r/submission.csv first
run predict --run r --data moved --out moved.csv
expect_exit 0
expect_same moved.csv first
mv moved k

it "needs only the test pictures once it is trained"
cp -r k/train spare && rm -r k/train
run predict --run r
expect_exit 0
expect_same r/submission.csv first
mv spare k/train

it "gives a test picture that cannot be read its row all the same"
id=$(sed -n 3p k/sample_submission.csv | cut -d , -f 1)
cp "k/test/$id.jpg" whole.jpg && head -c 100 whole.jpg >"k/test/$id.jpg"
run predict --run r --out bad.csv
expect_exit 0
expect_out "bad image.*$id"
expect_submission bad.csv k/sample_submission.csv
expect "the other rows are as before" [ "$(grep -v "^$id" bad.csv)" = "$(grep -v "^$id" first)" ]
run train --data k --out r-bad --img-size 16 --epochs 1
expect_exit 0
expect_file r-bad/bad_images.csv "$id.jpg,test"
expect_summary r-bad/summary.json bad_images 1
expect_submission r-bad/submission.csv k/sample_submission.csv
rm "k/test/$id.jpg"
run predict --run r --out missing.csv
expect_exit 0
expect_submission missing.csv k/sample_submission.csv
cp whole.jpg "k/test/$id.jpg"

it "stops soon at Ctrl-C and leaves the old submission"
# Links to the same pictures again and again: some 49000, which take a while.
mkdir many && cp -r k/train many/0
for n in 1 2 3 4 5 6 7 8 9 10 11; do
    mkdir more && cp -al many more/"$n" && mv more/"$n" many/ && rmdir more
done
start predict --run r --data many --out many.csv
sleep 1.5
expect "it is still at work" kill -0 "$PID"
kill -INT "$PID"
begun=$SECONDS
ended 60
expect_exit 130
expect_err 'stopped'
expect "it ended within seconds" [ $((SECONDS - begun)) -le 4 ]
expect_no_file many.csv
expect_tidy .
finish
