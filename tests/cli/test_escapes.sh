# Foreign names, ids and values are printed without characters that control a terminal: control characters,
# as bytes and in UTF-8, and characters that change the direction of text.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A title for the window, a colour, C1's CSI as a byte and as UTF-8, DEL, an override and an isolate.
evil=$'\e]0;owned\a\e[31m\x9b31m\xc2\x9b31m\x7f\xe2\x80\xae\xe2\x81\xa6'
# The same without the byte that is not UTF-8.
path=$(printf '%s' "$evil" | LC_ALL=C sed 's/m\x9b/m/')
# As JSON has it.
evil_json='\\u001b]0;owned\\u0007\\u001b[31m\\u009b31m\\u007f\\u202e\\u2066'

# expect_clean: nothing of it was printed, and something was.
expect_clean() {
    cat "$OUT" "$ERR" >all
    expect "something was printed" [ -s all ]
    expect_not "no control character is printed" env LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' all
    expect_not "no C1 character as UTF-8" env LC_ALL=C grep -q $'\xc2[\x80-\x9f]' all
    expect_not "no override of directions" env LC_ALL=C grep -q $'\xe2\x80[\xaa-\xae]\|\xe2\x81[\xa6-\xa9]' all
    expect "all of it is UTF-8" iconv -f UTF-8 -t UTF-8 all
}

it "in what is wrong with a command line"
for arguments in "$evil" "train --$evil" "train --data $evil" "train --data k --model $evil" \
    "train --data k --epochs $evil" "predict --run $evil" "status $evil" "top $evil" "stop $evil" \
    "report $evil" "run --$evil" "run -- ./$evil" "bench $evil" "bench loader $evil" \
    "bench storage $evil" "bench step --device $evil" "plan --data $evil" "doctor --data $evil" \
    "lr --data $evil" "stage $evil d" "sample k --layout $evil" "completion $evil" "help $evil" \
    "train --config $evil" "train --resume $evil"; do
    mapfile -t -d ' ' words < <(printf '%s' "$arguments")
    run "${words[@]}"
    expect_not "$arguments is refused" [ "$CODE" = 0 ]
    expect_clean
done

it "in tables and configurations"
"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
cp -r k bad
printf '%s,%s\n' "$evil" nothing >>bad/train.csv
run train --data bad --out r --epochs 1 --img-size 16
expect_not "an id without a picture is refused" [ "$CODE" = 0 ]
expect_clean
printf '%s\n' 'epochs: "\e[31m\x9b31m\u202e"' >bad.yaml
run train --data k --config bad.yaml
expect_not "a value that is no number is refused" [ "$CODE" = 0 ]
expect_clean

it "in names of folders and pictures"
mkdir "$path" && cp -r k "$path/$path"
first=$(find "$path/$path/train" -name '*.jpg' | sort | head -n 1)
echo 'no picture' >"$first"
run train --data "$path/$path" --out "$path/run" --epochs 1 --img-size 16
expect_exit 0
expect_clean
run predict --run "$path/run" --out "$path.csv"
expect_exit 0
expect_clean
for verb in status "top --once" report; do
    # shellcheck disable=SC2086  # words
    run $verb "$path/run"
    expect_exit 0
    expect_clean
done
run report "$path/run" "$path/run" --out "$path.html"
expect_clean
run bench loader "$path/$path" --seconds 0.1 --img-size 16 --sheet "$path.png"
expect_clean
run stage "$path/$path" "$path/staged"
expect_exit 0
expect_clean
run train --data k --out "$path/again" --epochs 1 --img-size 16 --detach
expect_exit 0
expect_clean
"$STOKER" stop "$path/again" --wait 60s --quiet

it "in what a run folder says"
cp -r "$path/run" told
sed -i -E "s/(: \"[^\"]*)\"([,}])/\1$evil_json\"\2/g; s/\"event\": \"([a-z_]+)[^\"]*\"/\"event\": \"\1\"/" \
    told/events.jsonl told/summary.json
expect "the files are JSON" awk 'END { exit NR < 5 }' told/events.jsonl
for verb in status "top --once" report; do
    # shellcheck disable=SC2086  # words
    run $verb told
    expect_clean
    # shellcheck disable=SC2086  # words
    run $verb told --json
    expect_clean
done
run report told k
expect_clean
run report told "$path/run" --out two.html
expect_exit 0
expect_clean
expect_not "the page has none" env LC_ALL=C grep -q $'[\x01-\x08\x0e-\x1f\x7f]\|\xc2[\x80-\x9f]' two.html

it "but what is data stays as it is, byte for byte"
id=$(printf 'a\xc2\x9bb')
mkdir other && cp "$(find k/train -name '*.jpg' | sort | head -n 1)" "other/$id.jpg"
run predict --run told --data other --out rows.csv
expect_exit 0
expect "the id is in the table" env LC_ALL=C grep -q "^$id," rows.csv

finish
