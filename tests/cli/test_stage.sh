# stoker stage: what it writes, training from it, going on after kills, refusals; subsets in train.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016,SC2034  # ls of our own names; scripts in quotes; lib.sh reads variables
. "$(dirname "$0")/lib.sh"

SLOW=$(dirname "$STOKER")/tests/slow_files.so
QUICK='--img-size 16 --epochs 1 --quiet'
export XDG_CACHE_HOME=$WORK/cache

"$STOKER" sample k --layout kaggle --classes 5 --per-class 24 --quiet || exit 1
"$STOKER" sample f --classes 6 --per-class 30 --quiet || exit 1

# hash_of FOLDER: of the names and bytes of all that is in it.
hash_of() { (cd "$1" && find . -type f ! -name .lock | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum); }

# same_run A B: validation and predictions of two run folders agree.
same_run() {
    expect_same "$1/submission.csv" "$2/submission.csv"
    cut -d , -f 1-8 "$1/results.csv" >"$WORK/a.csv"
    cut -d , -f 1-8 "$2/results.csv" >"$WORK/b.csv"
    expect_same "$WORK/a.csv" "$WORK/b.csv"
}

it "writes shards, tables and an index"
run stage k near --shard-size 50
expect_exit 0
expect_empty "$ERR"
expect_out '^staged: near, 5 classes, 120 \+ 0 \+ 30 pictures .* in 4 shards.*stoker train --data near'
for name in train-000000.tar train-000002.tar test-000000.tar samples.csv classes.txt stage.json \
    stoker.index sample_submission.csv; do
    expect_file "near/$name"
done
expect_no_file near/staging.json
expect_no_file near/train-000003.tar
expect_json near/stage.json
expect_same k/sample_submission.csv near/sample_submission.csv
expect "samples.csv has a row per picture" [ "$(wc -l <near/samples.csv)" = 151 ]
expect "only the lock is hidden" [ "$(cd near && echo .[!.]*)" = .lock ]

it "names members as WebDataset does"
tar tf near/train-000001.tar >members || fail "tar cannot read it"
expect "the second shard goes on counting" [ "$(head -n 2 members | tr '\n' ' ')" = "000000050.jpg 000000050.cls " ]
expect "every picture has a class" [ "$(grep -c 'jpg$' members)/$(grep -c 'cls$' members)" = 50/50 ]
tar tf near/test-000000.tar >members
expect "test pictures have none" [ "$(grep -c 'cls$' members)" = 0 ]
line=$(sed -n 52p near/samples.csv)
class=$(tar xOf near/train-000001.tar 000000050.cls)
expect "the number is the class's line" \
    [ "$(sed -n "$((class + 1))p" near/classes.txt)" = "$(cut -d , -f 2 <<<"$line")" ]
tar xOf near/train-000001.tar 000000050.jpg >picture
expect_same picture "k/$(cut -d , -f 4 <<<"$line")"

it "can be read with Python's tarfile"
if command -v python3 >/dev/null; then
    cat >read.py <<'END'
import csv, glob, sys, tarfile
rows = {(r["split"], r["member"]): r for r in csv.DictReader(open("near/samples.csv"))}
classes = open("near/classes.txt").read().split("\n")
count = 0
for name in sorted(glob.glob("near/*.tar")):
    split = name.split("/")[-1].split("-")[0]
    sample = {}
    for member in tarfile.open(name):
        key, _, kind = member.name.partition(".")
        data = tarfile.open(name).extractfile(member).read()
        sample.setdefault(key, {})[kind] = data
    for key, parts in sample.items():
        row = rows[(split, key + ".jpg")]
        assert parts["jpg"] == open("k/" + row["path"], "rb").read()
        assert split == "test" or classes[int(parts["cls"])] == row["class"]
        count += 1
print(count, "pictures")
END
    run_any python3 read.py
    expect_exit 0
    expect_out '^150 pictures$'
else
    skip "there is no python3"
fi

it "says that it was done before"
run stage k near --shard-size 50
expect_exit 0
expect_out '^already staged: near, 5 classes, 120 \+ 0 \+ 30 pictures'

it "trains to the same result as the source"
# shellcheck disable=SC2086  # words
for data in k near; do
    run train --data $data --out run-$data $QUICK
    expect_exit 0
done
same_run run-k run-near
run predict --run run-k --data near --out again.csv
expect_exit 0
expect_same run-k/submission.csv again.csv

subset='--classes 4 --per-class 15 --val-per-class 3 --subset-seed 42'
it "stages the subset that train takes by itself"
# shellcheck disable=SC2086  # words
{
    run stage f part $subset --shard-size 25
    expect_exit 0
    expect_out '^subset: 4 of 6 classes, 15 \+ 3 pictures each, seed 42$'
    expect_out '60 \+ 12 \+ 42 pictures'
    run train --data f --out run-f $subset $QUICK
    expect_exit 0
    run train --data part --out run-part $QUICK
    expect_exit 0
    same_run run-f run-part
    run train --data part --out run-again $subset $QUICK
    same_run run-f run-again
}
run predict --run run-f --out again.csv
expect_exit 0
expect_same run-f/submission.csv again.csv

it "takes the subset's keys from a configuration"
printf 'data: f\nclasses: 2\nper_class: 5\nsubset_seed: 7\n' >subset.yaml
if run train --config subset.yaml --out run-yaml --img-size 24 --epochs 1 && grep -q 'YAML' "$ERR"; then
    skip "this build has no YAML"
else
    expect_exit 0
    expect_out '^subset: 2 of 6 classes, 5 training pictures each, seed 7$'
fi

it "takes the subset in bench loader too"
run bench loader f --classes 2 --per-class 5 --seconds 0.2 --img-size 24 --json
expect_exit 0
expect "ten pictures" [ "$(grep -Eo '"samples": [0-9]+' "$OUT")" = '"samples": 10' ]

it "refuses other flags, another source and folders of others"
run stage k near --shard-size 60
expect_exit 2
expect_err 'near holds another staging \(with --shard-size 50\); name another folder, or pass --overwrite'
run stage f near --shard-size 50
expect_exit 2
expect_err 'another staging \(from .*/k\)'
mkdir mine && echo work >mine/thesis
run stage k mine --overwrite
expect_exit 2
expect_err 'not empty'
expect "the folder is as it was" [ "$(ls -A mine)" = thesis ]
run stage k k/near
expect_exit 2
expect_err 'lies in the data set'
expect_no_file k/near
run stage k s3://bucket/near
expect_exit 2
run stage k near --shard-size 60 --overwrite
expect_exit 0
run stage k near --shard-size 50 --overwrite
expect_exit 0
hash_of near >hash.1
"$STOKER" stage k fresh --shard-size 50 --quiet
hash_of fresh >hash.2
expect_same hash.1 hash.2
rm -rf fresh

it "needs a source and a folder"
for words in '' 'k' '--data k' 'k a b'; do
    # shellcheck disable=SC2086  # words
    run stage $words
    expect_exit 2
done
run stage k near --data f
expect_exit 2
expect_err 'both name what to copy'
run stage nowhere else
expect_exit 3
expect_no_file else
run stage --data k word --shard-size 500
expect_exit 0
expect_file word/stoker.index
for case in '--quality 101|from 0 to 100' '--max-side -1|from 0 to' '--shard-size 0|from 1 to' '--classes 1|two or more'; do
    # shellcheck disable=SC2086  # words
    run stage k bad ${case%|*}
    expect_exit 2
    expect_err "${case#*|}"
    expect_no_file bad
done

it "is silent with --quiet and prints one object with --json"
run stage f quiet --quiet
expect_exit 0
expect_empty "$OUT"
expect_empty "$ERR"
run stage f object --json --per-class 20 --classes 99
expect_exit 0
expect_empty "$ERR"
expect_json "$OUT"
expect "one line" [ "$(wc -l <"$OUT")" = 1 ]
expect_out '"already_staged": false, "classes": 6, "train": 120, "val": 36, "test": 42, "bad": 0, "shards": 3'
expect_out '"warnings": \["--classes 99: there are only 6, all are used"\]'

it "says when its figures could not be printed"
if [ -w /dev/full ]; then
    run_any sh -c '"$@" >/dev/full' sh "$STOKER" stage f unprinted --json --per-class 1
    expect_exit 5
    expect_err 'standard output'
else
    skip "there is no /dev/full"
fi

it "makes pictures smaller"
run stage f small --max-side 48 --quality 50 --json
expect_exit 0
expect_out '"recoded": 258'
run stage f large --json --shard-size 2000
expect "they take less room" \
    [ "$(cat small/*.tar | wc -c)" -lt $(($(cat large/*.tar | wc -c) * 3 / 4)) ]
run stage f same --max-side 4000 --json
expect_out '"recoded": 0'
# shellcheck disable=SC2086  # words
run train --data small --out run-small $QUICK
expect_exit 0

it "leaves bad pictures out and counts them"
cp -r f broken
echo 'no picture' >"broken/train/$(head -n 1 part/classes.txt)/0003.jpg"
run stage broken mended --quality 90
expect_exit 0
expect_out '^warning: 1 of 258 pictures could not be used; mended/bad_images.csv names them'
expect_file mended/bad_images.csv '0003.jpg,train,"it is no picture of a format'
expect_out '^warning: bad image .*0003.jpg \(train\)'
run stage broken strict --quality 90 --max-bad 0
expect_exit 3
expect_err '0003.jpg.*the same command goes on'
run train --data strict
expect_exit 3
expect_err 'not finished'

# slow MILLISECONDS ARGUMENTS...: starts the command; every file of f takes so long to open.
slow() {
    local ms=$1
    shift
    lib_command="stoker $*"
    set -m
    env LD_PRELOAD="$SLOW" SLOW_FILES_ROOT="$WORK/f" SLOW_FILES_OPEN_MS="$ms" \
        "$STOKER" "$@" >"$OUT" 2>"$ERR" </dev/null &
    PID=$!
    set +m
}

it "goes on after a kill at several moments"
"$STOKER" stage f whole --shard-size 10 --max-side 60 --quiet || fail "it cannot be staged"
if is_sanitized; then
    skip "a sanitizer does not go with slow files"
else
    killed=0
    for moment in staging.json .train-000001.record train-000009.tar .val-000001.record \
        samples.csv stoker.index; do
        slow 30 stage f cut --shard-size 10 --max-side 60
        wait_for 20 test -e "cut/$moment" || is_gone || fail "$moment never came"
        kill -9 "$PID" 2>/dev/null
        ended 20
        [ "$CODE" = 0 ] || killed=$((killed + 1))
    done
    [ "$killed" -ge 3 ] || fail "only $killed kills came in time"
    run stage f cut --shard-size 10 --max-side 60
    expect_exit 0
    hash_of whole >hash.1
    hash_of cut >hash.2
    expect_same hash.1 hash.2
fi

it "ends cleanly at Ctrl-C and says how to go on"
if is_sanitized; then
    skip "a sanitizer does not go with slow files"
else
    slow 50 stage f stopped --shard-size 10 --max-side 60
    wait_for 20 test -e stopped/staging.json || fail "it never began"
    kill -INT "$PID"
    ended 20
    expect_exit 130
    expect_err 'stopped; [0-9]+ of 27 shards are finished and stay in stopped: the same command goes on'
    expect "nothing half is left" [ -z "$(find stopped -name '*.tmp')" ]
    run train --data stopped
    expect_exit 3
    expect_err 'not finished.*stage'
    run stage f stopped --shard-size 10 --max-side 60
    expect_exit 0
    hash_of stopped >hash.2
    expect_same hash.1 hash.2
fi

it "does not mix two stagings"
if is_sanitized; then
    skip "a sanitizer does not go with slow files"
else
    slow 100 stage f shared --shard-size 10
    wait_for 20 test -e shared/staging.json || fail "it never began"
    "$STOKER" stage f shared --shard-size 10 >second.out 2>second.err
    expect "the second is refused" [ "$?" = 2 ]
    expect_file second.err 'another staging is writing to shared right now'
    ended 30
    expect_exit 0
fi

it "ends with a sentence when the disk is full, and goes on when there is room"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    mkdir disk
    run_any unshare -m sh -c 'mount -t tmpfs -o size=400k none disk || exit 77
        "$0" stage f disk/near --shard-size 10; echo "first $?"
        ls disk/near >&2
        mount -o remount,size=40m disk && "$0" stage f disk/near --shard-size 10; echo "then $?"
        "$0" stage f other --shard-size 10 --quiet && rm -f disk/near/.lock other/.lock &&
            diff -r disk/near other && echo same' "$STOKER"
    if [ "$CODE" = 77 ]; then
        skip "no file system can be mounted here"
    else
        expect_out '^first 5$'
        expect_err 'No space left on device; [1-9][0-9]* of 27 shards are finished'
        expect_out '^then 0$'
        expect_out '^going on: [1-9][0-9]* of 27 shards were finished before'
        expect_out '^same$'
    fi
else
    skip "needs root and unshare to make a small disk"
fi

it "stages from an object store, without secrets in what it writes"
serve --root f --require-auth --delay-ms 5
export AWS_ENDPOINT_URL=$URL AWS_REGION=us-east-1
export AWS_ACCESS_KEY_ID=AKIDLETTERS AWS_SECRET_ACCESS_KEY=TopSecretWords
run stage s3://bucket/ s3near --classes 4 --per-class 15 --val-per-class 3 --subset-seed 42 --shard-size 25
if grep -q 'without S3\|no S3' "$ERR"; then
    skip "this build has no S3"
else
    expect_exit 0
    expect_file s3near/stage.json '"source": "s3://bucket'
    for name in train-000000.tar val-000000.tar test-000001.tar samples.csv classes.txt; do
        expect_same "part/$name" "s3near/$name"
    done
    expect_not "no secret is written" grep -rqE 'TopSecretWords|AKIDLETTERS' s3near
fi
stop
unset AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION
finish
