# Bad input: the command prints a sentence that names the fault, its place and the remedy, ends with a
# non-zero exit code, and leaves no half-written file.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
"$STOKER" sample f --classes 3 --per-class 8 --quiet || exit 1
labels=$(ls f/train | tr '\n' ' ')

train() {
    run train --data "$1" --out r --img-size 16 --epochs 1 "${@:2}"
}

# refused CODE PATTERN...: the exit code, one line on standard error with all patterns, no folder.
refused() {
    local code=$1 pattern
    shift
    expect_exit "$code"
    expect "one sentence is told" [ "$(wc -l <"$ERR")" = 1 ]
    expect_err '^stoker: '
    for pattern in "$@"; do
        expect_err "$pattern"
    done
    expect_empty "$OUT"
    expect_no_file r
    expect_no_file runs
}

it "no such folder"
train nowhere
refused 3 'nowhere' '--data'
train kk
refused 3 'did you mean k\?'
train k/train.csv
refused 3 'k/train.csv.*file'

it "an empty folder, and one without pictures"
mkdir empty
train empty
refused 3 'empty' '--data'
mkdir -p words/train/cat && echo hello >words/train/cat/readme.txt
train words
refused 3 'words/train' 'end with jpg, jpeg, png'

it "one class only"
mkdir -p single/train && cp -r "f/train/$(ls f/train | head -n 1)" single/train/
train single
refused 3 'single' 'one class'
cp -r k monotone && sed '2,$s/,.*/,same/' k/train.csv >monotone/train.csv
train monotone
refused 3 'same' 'one class'

it "a class with one image"
cp -r f lone && mkdir lone/train/zebra && cp "$(ls -d lone/train/*/ | head -n 1)0000.jpg" lone/train/zebra/
rm -r lone/val
train lone --rare-class error
refused 3 'zebra' '--rare-class'
train lone
expect_exit 0
expect_out '1 class has one image and will not be validated: zebra'
expect_file r/submission.csv zebra
rm -rf r
train lone --rare-class drop
expect_exit 0
expect_out 'zebra'
expect_not "the class is in the submission" grep -q zebra r/submission.csv
rm -rf r
mkdir -p odd/train && i=0
for file in f/train/*/*.jpg; do i=$((i + 1)) && mkdir "odd/train/$i" && cp "$file" "odd/train/$i/"; done
train odd --rare-class auto
refused 3 'classes have one image each' '--val-fraction 0'
train odd
expect_exit 3
expect_err 'nothing of odd is left to validate.*--val-fraction 0'
expect_no_file r

it "a class folder without pictures"
cp -r f hollow && mkdir hollow/train/void
train hollow
refused 3 'void'

it "labels for missing files"
cp -r k missing
id=$(sed -n 2p k/train.csv | cut -d , -f 1)
rm "missing/train/$id.jpg"
train missing
refused 3 "$id" '--mismatch skip' 'missing/train.csv'
train missing --mismatch skip
expect_exit 0
expect_out "$id"
rm -rf r

it "files without labels"
cp -r k extra && cp "k/train/$id.jpg" extra/train/stranger.jpg
train extra
refused 3 'stranger.jpg' '--mismatch skip'
train extra --mismatch skip
expect_exit 0
expect_out 'stranger'
rm -rf r
cp -r f loose && cp "k/train/$id.jpg" loose/train/stranger.jpg
train loose
refused 3 'stranger.jpg'

it "duplicate ids"
cp -r k twice && sed -n 2p k/train.csv >>twice/train.csv
train twice
expect_exit 0
expect_out "left out 1 row of train.csv that repeats the id and the label of another row: $id"
rm -rf r
cp k/train.csv twice/ && sed -n "2s/,.*/,$(sed -n '$s/.*,//p' k/train.csv)/p" k/train.csv >>twice/train.csv
train twice
refused 3 "'$id' twice" 'lines 2 and 26'
cp -r k twice2 && sed -n "2s/,/.jpg,/p" k/train.csv >>twice2/train.csv
train twice2
refused 3 "$id" 'lines 2 .*and 26'
cp -r k twice3 && sed -n 2p k/sample_submission.csv >>twice3/sample_submission.csv
train twice3
refused 3 'sample_submission.csv' 'twice'

it "tables that make no sense"
cp -r k table
for case in 'id\n1\n|one column' 'id,label\n|no rows' '\n|train.csv'; do
    printf '%b' "${case%|*}" >table/train.csv
    train table
    refused 3 "${case#*|}"
done
: >table/train.csv
train table
refused 3 'train.csv'
{ echo 'id,label' && echo '"unclosed,x' && tail -n +2 k/train.csv; } >table/train.csv
train table
refused 3 'train.csv'
sed '3s/,.*/,/' k/train.csv >table/train.csv
train table
refused 3 'line 3' 'empty' '--mismatch skip'
sed '3s/$/,more/' k/train.csv >table/train.csv
train table
refused 3 'line 3'
head -c 4000 /dev/urandom >table/train.csv
train table
expect "it is refused" [ "$CODE" != 0 -a "$CODE" -lt 126 ]
cp k/train.csv table/ && printf 'id,label\n' >table/sample_submission.csv
train table
refused 3 'sample_submission.csv'
printf 'id,cat,dog\n%s,0,1\n' "$(sed -n 2p k/sample_submission.csv | cut -d , -f 1)" >table/sample_submission.csv
train table
refused 3 'cat, dog'

it "tasks that do not fit the labels, and metrics that do not fit the task"
cp -r k ages && awk -F , 'NR == 1 { print "id,age" } NR > 1 { print $1 "," NR * 7 % 90 }' k/train.csv >ages/train.csv
train k --task regression
refused 2 '--task regression' 'cells that are no numbers'
train k --task binary
refused 2 '--task binary' 'two different values'
train ages --metric macro_f1
refused 2 'macro_f1' 'rmse'
train ages --classes 2
refused 2 '--classes' 'has numbers'
cp -r k words_in && awk -F , 'NR == 1 { print "id,a,b" } NR > 1 { print $1 ",x," NR }' k/train.csv >words_in/train.csv
printf 'id,a,b\n%s,0,0\n' "$(sed -n 2p k/sample_submission.csv | cut -d , -f 1)" >words_in/sample_submission.csv
train words_in
refused 3 "column 'a' holds cells that are no numbers" '--label-column'

it "a sample submission whose rows are nowhere"
cp -r k nowhere_rows && sed '2,$s/^/26/' k/sample_submission.csv >nowhere_rows/sample_submission.csv
train nowhere_rows
refused 3 'sample_submission.csv' 'none of the 6 ids' 'nowhere_rows/test' '--sample-submission none'
train nowhere_rows --sample-submission none
expect_exit 0
expect_file r/submission.csv '^id,label,'
rm -rf r
mkdir parts && cp -r f/train parts/train_val2019 && cp -r f/test parts/test2019
printf 'id,predicted\n268243,0\n268244,0\n' >parts/kaggle_sample_submission.csv
train parts
refused 3 'kaggle_sample_submission.csv' 'none of the 2 ids' 'parts/test2019'
train parts --sample-submission sub.csv
refused 2 '--sample-submission sub.csv'
rm -r parts/train_val2019 parts/kaggle_sample_submission.csv && cp -r f/val parts/val2019
train parts
refused 3 'no training set: test2019, val2019'

it "an unreadable image is skipped, counted and named"
cp -r k spoilt
head -c 200 "k/train/$id.jpg" >"spoilt/train/$id.jpg"
second=$(sed -n 3p k/train.csv | cut -d , -f 1)
: >"spoilt/train/$second.jpg"
third=$(sed -n 4p k/train.csv | cut -d , -f 1)
echo 'this is text' >"spoilt/train/$third.jpg"
run train --data spoilt --out r --img-size 16 --epochs 2
expect_exit 0
expect_summary r/summary.json bad_images 3
expect_summary r/summary.json status complete
for name in "$id" "$second" "$third"; do
    expect_file r/bad_images.csv "^train/$name\.jpg,(train|val),.+"
done
expect "named once each" [ "$(wc -l <r/bad_images.csv)" = 4 ]
expect_out 'bad image'
expect_out 'bad images +3'
expect_submission r/submission.csv k/sample_submission.csv "$labels"
rm -rf r

it "no readable image at all"
cp -r k ruined
for file in ruined/train/*.jpg; do echo junk >"$file"; done
train ruined
expect_exit 3
expect_err '4 of 19 images cannot be used, more than --max-bad'
if [ -e r ]; then
    # The pictures are only opened while training: what was asked for may then be there from priors.
    expect_sound r k/sample_submission.csv "$labels"
    expect_summary r/summary.json status failed
    expect_summary r/summary.json stop_reason error
fi
rm -rf r

it "stops when more pictures are bad than --max-bad allows, and says so"
"$STOKER" sample many --classes 2 --per-class 50 --quiet
for number in 0000 0001 0002 0003 0004 0005; do
    for class in many/train/*; do echo junk >"$class/$number.jpg"; done
done
run train --data many --out r-many --img-size 16 --epochs 3
expect_exit 3
expect_err 'images cannot be used, more than --max-bad allows \(a higher one goes on.*\); the first is train/.*jpg: '
expect "those that were met are named" [ "$(wc -l <r-many/bad_images.csv)" -gt 4 ]
run train --data many --out r-many --img-size 16 --epochs 1 --max-bad 20
expect_exit 0
expect_summary r-many/summary.json bad_images 12
run train --data k --out r-none --img-size 16 --epochs 1 --max-bad 0
expect_exit 0
cp -r k one && echo junk >"one/train/$id.jpg"
run train --data one --out r-one --img-size 16 --epochs 1 --max-bad 0
expect_exit 3
run train --data one --out r-one --img-size 16 --epochs 1 --max-bad 101
expect_exit 2
expect_err 'max-bad'
rm -rf r-many r-none r-one

# as_nobody COMMAND...: runs without root's rights, which make everything writable.
as_nobody() {
    if [ "$(id -u)" = 0 ]; then
        run_any setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
    else
        run_any "$@"
    fi
}

it "an output folder that cannot be written"
if [ "$(id -u)" = 0 ] && ! setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$STOKER" 2>/dev/null; then
    skip "no other user can be taken on, or none can run the command"
else
    mkdir locked
    [ "$(id -u)" != 0 ] || chmod 755 "$LIB_FOLDER" "$WORK"
    chmod 555 locked
    as_nobody "$STOKER" train --data k --out locked/r --img-size 16 --epochs 1
    if [ "$CODE" = 3 ] || grep -q 'no such folder' "$ERR"; then
        skip "another user cannot reach the folder of the tests"
    else
        expect_exit 5
        expect_err 'locked/r.*Permission denied'
        expect_empty "$OUT"
        expect_empty locked
        as_nobody "$STOKER" train --data k --out locked --img-size 16 --epochs 1
        expect_exit 5
        expect_err 'locked.*Permission denied'
        as_nobody "$STOKER" sample locked/d
        expect_exit 5
        expect_err 'locked.*Permission denied'
        expect_empty locked
    fi
    chmod 755 locked
fi
echo file >plain
run train --data k --out plain/r --img-size 16 --epochs 1
expect_exit 5
expect_err 'plain'
run train --data k --out plain --img-size 16 --epochs 1
expect_exit 5
expect_err 'plain is a file|plain.*File exists'
expect "the file is as it was" [ "$(cat plain)" = file ]

it "a pipe among the pictures is a bad picture, not something to wait for"
"$STOKER" sample piped --classes 2 --per-class 6 --quiet
for picture in piped/train/*/0000.jpg piped/test/0000.jpg; do
    rm "$picture" && mkfifo "$picture"
done
run train --data piped --out r-piped --img-size 16 --epochs 1 --budget 30s
expect_exit 0
expect "the pipes are named" [ "$(grep -c 'it is not a file' r-piped/bad_images.csv)" = 3 ]
expect_summary r-piped/summary.json bad_images 3

it "a disk that is full before, during and after"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    mkdir small
    # What a run needs grows from the first files to two checkpoints of 2.3 MB each and a state of
    # 4.6 MB, which is there twice while it is replaced.
    for size in 4k 16k 40k 1000k 3000k 4700k 8000k 12000k; do
        run_any unshare -m bash -c 'mount -t tmpfs -o size='"$size"' none small || exit 77
            "$0" train --data k --out small/r --img-size 16 --epochs 2 --seed 1
            code=$?; rm -rf left; cp -r small left; exit $code' "$STOKER"
        if [ "$CODE" = 77 ]; then
            skip "no file system can be mounted here"
            break
        fi
        [ "$CODE" = 5 ] || fail "$size: the exit code is $CODE, expected 5"
        expect_err 'No space left'
        expect_sound left/r k/sample_submission.csv "$labels"
        expect_tidy left
    done
    # An earlier run is kept whole.
    [ "$CODE" = 77 ] || run_any unshare -m bash -c 'mount -t tmpfs -o size=20000k none small || exit 77
        "$0" train --data k --out small/r --img-size 16 --epochs 2 --seed 1 --quiet || exit 1
        "$0" train --data k --out small/r --img-size 16 --epochs 2 --seed 2
        code=$?; rm -rf left; cp -r small left; exit $code' "$STOKER"
    if [ "$CODE" != 77 ]; then
        expect_exit 5
        expect_sound left/r k/sample_submission.csv "$labels"
        expect_sound left/r.1 k/sample_submission.csv "$labels"
        expect_summary left/r.1/summary.json status complete
        expect_weights left/r.1/weights/best.safetensors
        expect_tidy left
    fi
else
    skip "needs root and unshare to make a small disk"
fi

it "can be repeated once there is room"
mkdir -p r/state && : >r/state/lock # what is left when not even the first file could be written
train k
expect_exit 0
expect_submission r/submission.csv k/sample_submission.csv "$labels"
rm -rf r

it "a limit on the size of files"
# In blocks of 1024 bytes: small files pass, the weights do not.
run_any bash -c 'ulimit -f 500; "$0" train --data k --out r --img-size 16 --epochs 2' "$STOKER"
expect_exit 5
expect_err 'safetensors.*File too large'
expect_sound r k/sample_submission.csv "$labels"
expect_submission r/submission.csv k/sample_submission.csv "$labels"
expect_summary r/summary.json status partial # from the weights in memory
expect_summary r/summary.json stop_reason error
expect_tidy r
rm -rf r

it "a device that is not there, and more memory than there is"
train k --device cuda:7
refused 4 'cuda'
train k --batch 19 --img-size 2048 --model resnet18 --assume-memory 1G
refused 4 'memory' '--img-size'
rm -rf r

it "two runs into one folder at once"
"$STOKER" sample slow --layout kaggle --classes 3 --per-class 60 --quiet
start train --data slow --out shared --epochs 1000
wait_for 30 test -e shared/submission.csv || fail "the first run never began"
first=$PID
run train --data k --out shared --img-size 16 --epochs 1
expect_exit 2
expect_err 'shared.*another run'
PID=$first
kill -INT "$PID"
ended 60
expect_exit 0
expect_submission shared/submission.csv slow/sample_submission.csv
it "keys in an address are not shown"
for address in s3://me:geheim@bucket/x s3://me:ge/geheim@bucket/x https://me:geheim@host/x; do
    for words in "train --out r --data" "plan --data" "doctor --data" "bench loader --data" \
        "stage near --data" "stage f near --data" "predict --run r-none --data"; do
        # shellcheck disable=SC2086  # words
        run $words "$address"
        expect "$words $address is refused" [ "$CODE" != 0 ]
        expect_not "$words $address shows it: $(cat "$OUT" "$ERR")" grep -q geheim "$OUT" "$ERR"
    done
done
run train --out r --data s3://me:geheim
expect_not "a key without a bucket is shown: $(cat "$ERR")" grep -q geheim "$ERR"
expect_not "it was written" grep -rq geheim . "$XDG_CACHE_HOME" "$HOME"

finish
