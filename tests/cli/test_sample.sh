# What `stoker sample` makes, and what it refuses.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"

count() { find "$1" -name '*.jpg' | wc -l; }
hash_of() { (cd "$1" && find . -type f | sort | xargs sha256sum | sha256sum); }

it "makes the class folder layout"
run sample f --classes 4 --per-class 10
expect_exit 0
expect_out 'stoker train --data f'
expect_empty "$ERR"
expect "train has 4 folders of 10" [ "$(ls f/train | wc -l)/$(count f/train)" = 4/40 ]
expect "val has 4 folders of 2" [ "$(ls f/val | wc -l)/$(count f/val)" = 4/8 ]
expect "test is flat" [ "$(find f/test -type d | wc -l)" = 1 ]
expect "test has 2 of each class" [ "$(count f/test)" = 8 ]
expect "the folders of val are those of train" [ "$(ls f/val)" = "$(ls f/train)" ]
expect_tidy .

it "makes the Kaggle layout, with a solution"
run sample k --layout kaggle --classes 3 --per-class 8
expect_exit 0
expect_file k/train.csv '^id,label$'
expect "train.csv has a row per picture" [ "$(wc -l <k/train.csv)" = 25 ]
expect "train has 24 pictures" [ "$(count k/train)" = 24 ]
expect "test has 6 pictures" [ "$(count k/test)" = 6 ]
expect "there is no val" [ ! -e k/val ]
expect "sample and solution have the same ids in the same order" \
    [ "$(cut -d , -f 1 k/solution.csv)" = "$(cut -d , -f 1 k/sample_submission.csv)" ]
expect "every class has 8 rows" \
    [ "$(tail -n +2 k/train.csv | cut -d , -f 2 | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" = "8 8 8 " ]
expect "every class has 2 solutions" \
    [ "$(tail -n +2 k/solution.csv | cut -d , -f 2 | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" = "2 2 2 " ]
expect "the sample says nothing about the solution" \
    [ "$(tail -n +2 k/sample_submission.csv | cut -d , -f 2 | sort -u | wc -l)" = 1 ]
missing=0
while IFS=, read -r id _; do
    [ "$id" = id ] || [ -s "k/train/$id.jpg" ] || missing=$((missing + 1))
done <k/train.csv
expect "each row of train.csv has a file" [ "$missing" = 0 ]

it "makes JPEG pictures of varied sizes"
signature=$(for file in k/train/*.jpg; do od -An -t x1 -N 3 "$file"; done | sort -u)
expect "all begin as JPEG" [ "$signature" = " ff d8 ff" ]
# Height and width stand in the frame header: ff c0, two bytes length, one precision, h, w.
sizes=$(for file in k/train/*.jpg; do
    od -An -v -t x1 "$file" | tr -d '\n' | grep -Eo 'ff c[02] .. .. .. .. .. .. ..' | head -n 1
done | sort -u | wc -l)
expect "there are at least five sizes" [ "$sizes" -ge 5 ]

it "makes the same bytes from the same seed and others from another"
run sample k2 --layout kaggle --classes 3 --per-class 8
run sample k3 --layout kaggle --classes 3 --per-class 8 --seed 7
expect_exit 0
expect "the same seed, the same bytes" [ "$(hash_of k)" = "$(hash_of k2)" ]
expect "another seed, other bytes" [ "$(hash_of k)" != "$(hash_of k3)" ]

it "refuses a folder that is not empty and leaves it alone"
mkdir full && echo mine >full/notes
run sample full
expect_exit 2
expect_err 'full.*not empty'
expect "the folder is as it was" [ "$(ls -A full)$(cat full/notes)" = notesmine ]

it "fills an empty folder and makes the folders above"
mkdir hollow
run sample hollow --per-class 2 --classes 2
expect_exit 0
expect "it has pictures" [ "$(count hollow)" -gt 0 ]
run sample a/b/c/ --per-class 2 --classes 2
expect_exit 0
expect "it has pictures" [ "$(count a/b/c)" -gt 0 ]

it "refuses bad values with their range and leaves nothing"
for case in '--classes 1|from 2 to' '--classes 1000000|from 2 to' '--classes two|from 2 to' \
    '--per-class 0|from 2 to' '--per-class -3|from 2 to' '--layout tree|folder, kaggle' \
    '--seed x|whole number' '--klasses 3|classes'; do
    # shellcheck disable=SC2086  # words
    run sample bad ${case%|*}
    expect_exit 2
    expect_err "${case#*|}"
    expect_no_file bad
done
expect_tidy .

it "refuses to go without a name, into a file, and two names"
run sample
expect_exit 2
expect_err 'folder'
run sample full/notes
expect_exit 2
run sample one two
expect_exit 2
expect_err "'two'"
expect_no_file one

it "is silent with --quiet and with --json"
run sample quiet --quiet --per-class 2 --classes 2
expect_exit 0
expect_empty "$OUT"
expect_empty "$ERR"
run sample machine --json --per-class 2 --classes 2
expect_exit 0
expect_empty "$ERR"
[ ! -s "$OUT" ] || expect_jsonl "$OUT"

it "leaves nothing when Ctrl-C comes"
mkdir cut && cd cut || exit 1
start sample d --per-class 100000 --classes 40
wait_for 20 compgen -G '.d*' || fail "it never began"
kill -INT "$PID"
ended 20
expect_exit 130
expect_err 'd'
expect_empty .
cd .. || exit 1

it "leaves nothing when the disk is full"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    mkdir small
    run_any unshare -m sh -c 'mount -t tmpfs -o size=200k none small && cd small &&
        "$0" sample d; code=$?; ls -A; exit $code' "$STOKER"
    if grep -q 'mount' "$ERR"; then
        skip "no file system can be mounted here"
    else
        expect_exit 5
        expect_err 'No space left'
        expect_empty "$OUT"
    fi
else
    skip "needs root and unshare to make a small disk"
fi
finish
