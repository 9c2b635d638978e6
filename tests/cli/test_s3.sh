# Data in S3, served by the object server: keys with all kinds of characters, credentials, TLS.
# tests/soak/test_s3.sh uses a server of somebody else, which checks our signatures.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2317  # ls of our own names; functions for expect
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cache_kills.sh
. "$ROOT/tests/cli/cache_kills.sh"

it "S3 is built in"
has_s3 || { skip 'built without S3' && finish; }

make_awkward_set
mkdir pics && cp -r set pics/set

KEY=AKIAREADER SECRET=hidden-words-of-the-reader TOKEN=hidden-token-of-the-role
serve --bucket pics=pics --page 10 --require-auth --access-key "$KEY"
export AWS_ENDPOINT_URL=$URL AWS_ACCESS_KEY_ID=$KEY AWS_SECRET_ACCESS_KEY=$SECRET

# train DATA RUN ...: one short training; what it prints is looked through for secrets at the end.
train() {
    run train --data "$1" --out "$2" --img-size 16 --epochs 1 --seed 1 "${@:3}"
    cat "$OUT" "$ERR" >>printed
}

# plan ...: the same, up to the first reading of pictures.
plan() {
    run plan --data "$@" --img-size 16 --epochs 1
    cat "$OUT" "$ERR" >>printed
}

it "trains on S3 as on the same folder here, names of all kinds and several pages of them included"
train set r-local
expect_exit 0
train s3://pics/set r-s3
expect_exit 0
expect_out '24 training images, 3 validation, 6 test, 3 classes'
expect_same r-local/weights/best.safetensors r-s3/weights/best.safetensors
expect_same r-local/submission.csv r-s3/submission.csv
expect "no picture is bad" [ "$(wc -l <r-s3/bad_images.csv)" = 1 ]
expect "there were several pages" [ "$(asked lists)" -ge 4 ]

it "asks for no list the next time, and says from when its own is; lists again on request"
control 'clear_stats=1'
train s3://pics/set/ r-again --cache off
expect_exit 0
expect_out 'listing of s3://pics/set from 20[0-9-]+ [0-9:]+, 33 objects'
expect_out 'refresh lists again'
expect "no list was asked for" [ "$(asked lists)" = 0 ]
expect_same r-s3/weights/best.safetensors r-again/weights/best.safetensors
plan s3://pics/set --refresh
expect_exit 0
expect_no_out 'listing of s3://pics/set from'
expect "a list was asked for" [ "$(asked lists)" -gt 0 ]

it "refuses a wrong secret, in the listing and when it reads"
control 'deny=set&deny_code=SignatureDoesNotMatch'
for more in --refresh --no-refresh; do
    train s3://pics/set r-wrong "$more" --cache off
    expect_exit 5
    expect_err 'secret key does not belong to the access key id'
    expect_err 'credentials from the environment'
    expect_no_file r-wrong/weights/best.safetensors
done
control 'reset=1'

it "refuses a key that the store does not know"
AWS_ACCESS_KEY_ID=AKIANOBODYKNOWSIT plan s3://pics/set --refresh --cache off
expect_exit 5
expect_err 'does not know the access key id from the environment'

it "explains what may be listed but not read"
control 'deny=jpg'
train s3://pics/set r-blind --refresh --cache off
expect "it fails" [ "$CODE" != 0 ]
cat "$OUT" "$ERR" r-blind/bad_images.csv >told 2>/dev/null
expect "s3:GetObject is named" grep -q 's3:GetObject' told
control 'reset=1'

it "speaks TLS, and only with a store that it may trust"
if command -v python3 >/dev/null && command -v openssl >/dev/null; then
    mkfifo until
    python3 "$ROOT/tests/servers/tls_relay.py" "${URL##*:}" <until >port 2>relay.log &
    relay=$!
    exec 8>until
    wait_for 60 grep -q . port || fail "TLS does not start: $(tail -n 1 relay.log)"
    AWS_ENDPOINT_URL=https://127.0.0.1:$(<port)
    export AWS_ENDPOINT_URL
    plan s3://pics/set --cache off --refresh
    expect_exit 5
    expect_err 'certificate is not trusted .*AWS_CA_BUNDLE'
    AWS_CA_BUNDLE=$WORK/ca.pem train s3://pics/set r-tls --cache off
    expect_exit 0
    expect_same r-s3/weights/best.safetensors r-tls/weights/best.safetensors
    AWS_CA_BUNDLE=$WORK/nothing.pem plan s3://pics/set --cache off --refresh
    expect_exit 5
    expect_err 'nothing.pem'
    exec 8>&-
    wait "$relay"
    export AWS_ENDPOINT_URL=$URL
else
    skip "there is no python3 or no openssl"
fi

it "explains a picture that was deleted since, and goes on"
mv "pics/set/train/$class/a+b.jpg" .
train s3://pics/set r-deleted --cache off
expect_exit 0
expect_file r-deleted/bad_images.csv "no object set/train/$class/a\\+b.jpg in bucket pics \\(404\\)"
expect_file r-deleted/bad_images.csv 'refresh lists again'
mv a+b.jpg "pics/set/train/$class/"

it "helps with a wrong bucket and a wrong prefix"
plan s3://picz
expect_exit 3
expect_err 'no bucket picz'
plan s3://pics/sett
expect_exit 3
expect_err 'did you mean s3://pics/set'
stop

it "takes temporary credentials with their token, from a profile"
serve --bucket pics=pics --require-auth --access-key "$KEY" --session-token "$TOKEN"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
write_profile "$KEY" "$SECRET" "$TOKEN"
export AWS_PROFILE=lab AWS_ENDPOINT_URL=$URL
train s3://pics/set r-role --refresh --cache off
expect_exit 0
expect_same r-s3/weights/best.safetensors r-role/weights/best.safetensors
sed -i 's/^aws_session_token = ..../aws_session_token = AAAA/' .aws/credentials
plan s3://pics/set --refresh --cache off
expect_exit 5
expect_err "session token .* profile 'lab'"
rm -r .aws

it "writes no secret anywhere"
expect_file printed
expect_not "a secret was written" grep -rqF -e "$SECRET" -e "$TOKEN" printed r-* kept
expect_not "an authorization was written" grep -rqE 'AWS4-HMAC|Signature=' printed r-* kept
stop
finish
