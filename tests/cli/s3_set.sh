# s3_set.sh - helpers for tests that read from S3: whether it is built in, a data set with awkward names, a profile
# with credentials. Sourced after lib.sh.
# shellcheck shell=bash disable=SC2012  # ls of our own names

has_s3() {
    "$STOKER" train --data s3:/// --out r-none >/dev/null 2>s3-words
    ! grep -q 'no S3 support' s3-words
}

# make_awkward_set: makes the folder set, whose pictures and one of whose classes have names that are awkward in
# addresses. $class is another class.
make_awkward_set() {
    local folder picture count
    local names=('a b.jpg' 'a+b.jpg' '100%.jpg' '%41.jpg' 'ü&x=1.jpg' 'h#h?q.jpg' "quo\"te's.jpg" '日本;~!*().jpg')
    "$STOKER" sample set --classes 3 --per-class 8 --seed 3 --quiet || exit 1
    for folder in set/train/*; do
        count=0
        for picture in "$folder"/*; do
            mv "$picture" "$folder/${names[count]}"
            count=$((count + 1))
        done
    done
    class=$(ls set/train | head -n 1)
    mv "set/train/$class" "set/train/c l+as%s ü"
    mv "set/val/$class" "set/val/c l+as%s ü"
    class=$(ls set/train | tail -n 1)
}

# write_profile KEY SECRET TOKEN: writes the profile `lab` into .aws/credentials.
write_profile() {
    mkdir -p .aws
    cat >.aws/credentials <<END
[lab]
aws_access_key_id = $1
aws_secret_access_key = $2
aws_session_token = $3
END
}
