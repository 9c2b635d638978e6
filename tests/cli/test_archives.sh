# test_archives.sh - data sets in archives, as competitions hand them out: trained on as on what they unpack to.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$WORK/.cache

train() {
    run train --data "$1" --out "$2" --img-size 16 --epochs 1 --seed 1 "${@:3}"
}

same() {
    expect_same "$1/submission.csv" "$2/submission.csv"
    expect_same "$1/weights/best.safetensors" "$2/weights/best.safetensors"
}

python=$(command -v python3) || {
    it "needs Python to make zips"
    skip "there is no python3"
    finish
    exit
}

# zip_up ZIP FOLDER [stored|deflated]: puts what is in a folder into a zip.
zip_up() {
    "$python" - "$@" <<'END'
import os, sys, zipfile
out, folder = sys.argv[1:3]
method = zipfile.ZIP_STORED if sys.argv[3:] == ["stored"] else zipfile.ZIP_DEFLATED
with zipfile.ZipFile(out, "w", method) as z:
    for at, _, files in sorted(os.walk(folder)):
        for name in sorted(files):
            z.write(os.path.join(at, name), os.path.relpath(os.path.join(at, name), folder))
END
}

# A Kaggle folder: flat pictures and tables.
"$STOKER" sample classes --classes 3 --per-class 8 --quiet || exit 1
mkdir -p plain/train plain/test
echo id,label >plain/train.csv
for file in classes/train/*/* classes/val/*/*; do
    class=$(basename "$(dirname "$file")")
    cp "$file" "plain/train/$class-$(basename "$(dirname "$(dirname "$file")")")-$(basename "$file")"
    echo "$class-$(basename "$(dirname "$(dirname "$file")")")-$(basename "$file"),$class" >>plain/train.csv
done
echo id,label >plain/sample_submission.csv
for file in classes/test/*; do
    cp "$file" plain/test/
    echo "$(basename "$file"),$(head -n 2 plain/train.csv | tail -n 1 | cut -d , -f 2)" >>plain/sample_submission.csv
done
train plain r-plain
expect_exit 0

it "trains on zips beside tables as on the folders that they were made of"
mkdir zips
cp plain/*.csv zips/
zip_up zips/train.zip plain/train stored
zip_up zips/test.zip plain/test
train zips r-zips
expect_exit 0
same r-zips r-plain

it "finds packed tables, the doubled folder and plain tars that are called otherwise"
mkdir mixed only
cp -r plain/train only/
zip_up mixed/train.zip only
tar -C plain/test -cf mixed/test.tar.gz .
for table in train sample_submission; do
    mkdir t && cp "plain/$table.csv" t/ && zip_up "mixed/$table.csv.zip" t && rm -r t
done
train mixed r-mixed
expect_exit 0
same r-mixed r-plain

it "shows a single archive with everything in it as its folders"
mkdir single
zip_up single/competition.zip plain
train single r-single
expect_exit 0
same r-single r-plain

it "takes a single archive without what lies beside it"
cp single/competition.zip .
cp plain/train.csv beside.csv # a table beside it counts for nothing
train competition.zip r-archive
expect_exit 0
same r-archive r-plain
run predict --run r-archive --data competition.zip --out again.csv
expect_exit 0
expect_same again.csv r-plain/submission.csv
mkdir folder.zip
cp -r plain/* folder.zip/
run plan --data folder.zip --img-size 16
expect_exit 0
run plan --data nowhere.zip
expect_exit 3
expect_err 'nowhere\.zip'
head -c 3000 competition.zip >torn.zip
run plan --data torn.zip
expect_exit 3
expect_err 'torn\.zip cannot be read in place'

it "leaves an archive alone where its folder is there"
cp -r plain both
cp mixed/train.zip both/
head -c 1000 zips/test.zip >both/test.zip
train both r-both
expect_exit 0
expect_out 'train\.zip is not used.*the folder train has its files'
expect_out 'test\.zip is not used'
same r-both r-plain

it "says why an archive cannot be used"
mkdir cut
cp zips/* cut/
head -c 3000 zips/train.zip >cut/train.zip
train cut r-cut
expect_exit 3
expect_out 'train\.zip is not used: cannot read the zip cut/train\.zip: it has no directory at its end'
expect_no_file r-cut/weights

it "counts a damaged member as a bad picture"
mkdir damaged
cp zips/* damaged/
"$python" - damaged/train.zip <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    info = z.infolist()[3]
with open(sys.argv[1], "r+b") as f:
    f.seek(info.header_offset + 60)
    f.write(b"damage")
print(info.filename)
END
train damaged r-damaged
expect_exit 0
expect_file r-damaged/bad_images.csv 'another checksum'

it "unpacks a compressed tar once"
mkdir squeezed
cp plain/*.csv squeezed/
tar -C plain/train -czf squeezed/train.tar.gz .
cp zips/test.zip squeezed/
train squeezed r-squeezed
if grep -q 'no libarchive' "$OUT"; then
    expect_exit 3
    expect_out 'train\.tar\.gz \(gzip\): this build of Stoker has no libarchive; unpack it by hand'
    finish
    exit
fi
expect_exit 0
expect_out 'unpacking train\.tar\.gz once: '
same r-squeezed r-plain
train squeezed r-squeezed2
expect_exit 0
expect_no_out 'unpacking'
same r-squeezed2 r-plain
ls .cache/stoker/unpacked/*.members >/dev/null || fail "nothing was kept"
ln -s squeezed linked
for name in ./squeezed/ "$PWD/squeezed" squeezed/../squeezed linked; do
    run plan --data "$name" --img-size 16
    expect_exit 0
    expect_no_out 'unpacking'
done

it "makes pictures of JSON files once, however the folder is spelled"
mkdir bands
"$python" - <<'END'
import json, random
random.seed(1)
rows = [{"id": f"x{i}", "band_1": [random.random() for _ in range(64)], "ill": i % 2} for i in range(20)]
json.dump(rows, open("bands/train.json", "w"))
END
run plan --data bands --img-size 16
expect_exit 0
expect_out 'making 20 pictures of train\.json'
ln -s bands bands-linked
for name in bands ./bands/ "$PWD/bands" bands/../bands bands-linked; do
    run plan --data "$name" --img-size 16
    expect_exit 0
    expect_no_out 'making'
done
sed -i 's/"ill": 1/"ill": 2/' bands/train.json
touch -d '2020-01-01' bands/train.json
run plan --data bands --img-size 16
expect_exit 0
expect_out 'making 20 pictures of train\.json'

it "unpacks single tables that are compressed"
mkdir tables
cp zips/*.zip tables/
for table in train sample_submission; do
    gzip -c "plain/$table.csv" >"tables/$table.csv.gz"
done
train tables r-tables
expect_exit 0
same r-tables r-plain

it "stages what is in archives as what is in folders"
run stage zips staged-zips
expect_exit 0
run stage plain staged-plain
expect_exit 0
for shard in staged-plain/*.tar staged-plain/*.csv; do
    expect_same "$shard" "staged-zips/$(basename "$shard")"
done

it "takes no link and no path out of an archive"
mkdir hostile
cp plain/*.csv zips/test.zip hostile/
"$python" - "${TMPDIR:=/tmp}" <<'END'
import io, os, sys, tarfile
with tarfile.open("hostile/train.tar.xz", "w:xz") as t:
    for name in sorted(os.listdir("plain/train")):
        t.add("plain/train/" + name, name)
    for name in "../../outside.jpg", sys.argv[1] + "/stoker-outside.jpg":
        member = tarfile.TarInfo(name)
        member.size = 4
        t.addfile(member, io.BytesIO(b"evil"))
    link = tarfile.TarInfo("link.jpg")
    link.type = tarfile.SYMTYPE
    link.linkname = "/etc/passwd"
    t.addfile(link)
END
train hostile r-hostile
expect_exit 0
expect_out 'left out 3 members of train\.tar\.xz that are no file inside of it \(links: 1\)'
same r-hostile r-plain
if [ -n "$(find . -name 'outside.jpg')" ] || [ -e "$TMPDIR/stoker-outside.jpg" ]; then
    fail "a member was written outside"
fi

it "reads archives in S3"
"$STOKER" train --data s3:/// --out r-none >/dev/null 2>s3-words
if grep -q 'no S3 support' s3-words; then
    skip "built without S3"
else
    serve --root . --bucket zips=zips --bucket squeezed=squeezed --require-auth
    export AWS_ENDPOINT_URL=$URL AWS_REGION=us-east-1
    export AWS_ACCESS_KEY_ID=id AWS_SECRET_ACCESS_KEY=secret
    train s3://zips r-far --cache cached
    expect_exit 0
    same r-far r-plain
    train s3://zips r-far2 --cache cached
    expect_exit 0
    same r-far2 r-plain
    train s3://squeezed r-far3 --cache off
    expect_exit 0
    expect_out 'unpacking train\.tar\.gz once: '
    same r-far3 r-plain
    stop
fi

finish
