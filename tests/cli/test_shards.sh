# test_shards.sh - tar shards as data sets: tars of class folders, WebDataset's, and broken ones.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$WORK/.cache

# train DATA RUN ...: one short training.
train() {
    run train --data "$1" --out "$2" --img-size 16 --epochs 1 --seed 1 "${@:3}"
}

# same A B: two runs that differ in nothing.
same() {
    expect_same "$1/submission.csv" "$2/submission.csv"
    expect_same "$1/weights/best.safetensors" "$2/weights/best.safetensors"
}

# tensors RUN: the numbers of its weights, without the header, which names the classes.
tensors() {
    local file=$1/weights/best.safetensors
    tail -c +$(($(od -An -t u8 -N 8 "$file") + 9)) "$file"
}

# web FOLDER TAR: puts a tree of class folders into a tar as WebDataset has it; classes are numbers,
# the lines of classes.txt counted from 0.
web() {
    local class file key=0 number
    rm -rf web.tmp && mkdir web.tmp
    for class in "$1"/*/; do
        class=$(basename "$class")
        number=$(($(grep -nx "$class" classes.txt | cut -d : -f 1) - 1))
        for file in "$1/$class"/*; do
            cp "$file" "web.tmp/$(printf '%06d' $key).jpg"
            echo $number >"web.tmp/$(printf '%06d' $key).cls"
            key=$((key + 1))
        done
    done
    (cd web.tmp && find . -type f -name '*.*' | LC_ALL=C sort | tar -cf ../web.tar -T -) && mv web.tar "$2"
}

"$STOKER" sample f --classes 3 --per-class 8 --quiet || exit 1
train f r-folders
expect_exit 0

it "trains on a tar as on the folder that it was made of"
tar -C f -cf all.tar .
train all.tar r-tar
expect_exit 0
expect_out '24 training images, 3 validation, 6 test, 3 classes'
same r-tar r-folders
tar -cf around.tar f
train around.tar r-around
expect_exit 0
same r-around r-folders

it "trains on one tar per split"
mkdir splits
for split in train val test; do
    tar -C "f/$split" -cf "splits/$split.tar" .
done
train splits r-splits
expect_exit 0
same r-splits r-folders

it "trains on tars in folders of splits"
mkdir -p nested/train nested/val nested/test
for split in train val test; do
    cp "splits/$split.tar" "nested/$split/part-0.tar"
done
train nested r-nested
expect_exit 0
same r-nested r-folders

it "trains on WebDataset shards, with numbers or names as classes"
mkdir shards
ls f/train >classes.txt
web f/train shards/set-train-000000.tar
web f/val shards/set-val-000000.tar
train shards r-numbers
expect_exit 0
expect_out '24 training images, 3 validation, 3 classes'
expect_file r-numbers/weights/best.safetensors
cp classes.txt shards/
train shards r-names
expect_exit 0
expect_out '24 training images, 3 validation, 3 classes'
# Numbers follow the order of the names, so that all else is the same.
tensors r-numbers >numbers
tensors r-names >names
expect_same numbers names
cp splits/test.tar shards/
train shards r-tested
expect_exit 0
expect_out '24 training images, 3 validation, 6 test, 3 classes'
expect_file r-tested/submission.csv "^id,label,$(paste -s -d , classes.txt)"

it "says which samples of a WebDataset lack something"
mkdir lacking && cp shards/set-train-000000.tar lacking/
tar -f lacking/set-train-000000.tar --delete ./000003.cls ./000005.jpg
train lacking r-lacking
expect_exit 3
expect_err '1 picture without a label: 000003.jpg'
expect_no_file r-lacking
train lacking r-lacking2 --mismatch skip
expect_exit 0
expect_out 'left out 1 picture without a label: 000003.jpg'
expect_out 'left out 1 label without a picture: 000005.cls'

it "predicts the pictures of a tar"
run predict --run r-folders --data splits/test.tar --out p.csv
expect_exit 0
expect "six rows" [ "$(wc -l <p.csv)" = 7 ]
tail -n +2 r-folders/submission.csv >told
tail -n +2 p.csv >again
expect_same told again

it "names bad pictures in a tar and goes on"
cp -r f spoilt
file=$(find spoilt/train -name '*.jpg' | LC_ALL=C sort | head -n 1)
echo junk >"$file"
tar -C spoilt -cf spoilt.tar .
train spoilt.tar r-spoilt
expect_exit 0
expect_file r-spoilt/bad_images.csv "${file#spoilt/}"

it "refuses tars that are damaged, cut off, compressed or none"
cp all.tar damaged.tar
printf X | dd of=damaged.tar bs=1 seek=700 conv=notrunc 2>/dev/null
train damaged.tar r-bad
expect_exit 3
expect_err 'damaged\.tar: the header at byte 512'
head -c 30000 all.tar >cut.tar
train cut.tar r-bad
expect_exit 3
expect_err 'cut\.tar is cut off'
gzip -c all.tar >all.tar.gz
train all.tar.gz r-bad
expect_exit 3
expect_err 'compressed \(gzip\).*unpack it'
mkdir squeezed && cp all.tar.gz squeezed/
train squeezed r-bad
expect_exit 3
expect_err 'compressed \(gzip\)'
head -c 4000 /dev/urandom >noise.tar
train noise.tar r-bad
expect_exit 3
expect_err 'noise\.tar: it is no tar'
: >nothing.tar
train nothing.tar r-bad
expect_exit 3
expect_err 'nothing\.tar: it is empty'
train missing.tar r-bad
expect_exit 3
expect_err 'no such file: missing\.tar'
expect_no_file r-bad

it "refuses a member that two shards have"
mkdir twice && cp all.tar twice/a.tar && cp all.tar twice/b.tar
train twice r-twice
expect_exit 3
expect_err 'two shards of twice have a member .*: a\.tar and b\.tar'

it "refuses a staging that is not finished"
mkdir unfinished && cp all.tar unfinished/ && echo '{}' >unfinished/staging.json
train unfinished r-unfinished
expect_exit 3
expect_err 'staging of unfinished is not finished: run the same .stoker stage. again'

it "takes a folder with a tar and folders for what the folders are"
cp -r f beside && cp all.tar beside/
train beside r-beside
expect_exit 0
same r-beside r-folders

it "trains on shards in S3 as on those beside it, and knows them the next time"
"$STOKER" train --data s3:/// --out r-none >/dev/null 2>s3-words
if grep -q 'no S3 support' s3-words; then
    skip "built without S3"
else
    serve --root . --bucket shards=shards --bucket splits=splits --require-auth
    export AWS_ENDPOINT_URL=$URL AWS_REGION=us-east-1
    export AWS_ACCESS_KEY_ID=id AWS_SECRET_ACCESS_KEY=secret
    train s3://splits r-far --cache off
    expect_exit 0
    expect_out 'reading through 3 tars'
    same r-far r-folders
    train s3://splits r-far2 --cache off
    expect_exit 0
    expect_no_out 'reading through'
    same r-far2 r-folders
    train s3://splits/train.tar r-far3 --cache off
    expect_exit 0
    expect_no_out 'reading through'
    train s3://shards r-far4 --cache cached
    expect_exit 0
    same r-far4 r-tested
    head -c 30000 splits/train.tar >shorter && mv shorter splits/train.tar
    train s3://splits r-far5 --cache off --refresh
    expect_exit 3
    expect_err 's3://splits/train\.tar is cut off'
    stop
fi

it "reads real photographs from a tar"
photos=$ROOT/../shared/data/caltech101-128.tar
if [ -f "$photos" ]; then
    run bench loader --data "$photos" --batch 32 --img-size 64 --seconds 0.3 --json
    expect_exit 0
    expect_out '"bad": 0'
else
    skip "there is no ../shared/data/caltech101-128.tar"
fi
finish
