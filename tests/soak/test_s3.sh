# Data in an S3 server of somebody else, which checks signatures: moto, in a Python environment that is made
# once in the build folder.
# shellcheck shell=bash source=tests/cli/lib.sh
# shellcheck disable=SC2012,SC2153,SC2317  # ls of our own names; what the store tells; functions for expect
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/s3_set.sh
. "$ROOT/tests/cli/s3_set.sh"

VENV=$ROOT/build/tests/moto-venv

it "S3 is built in, and moto can be had"
if ! has_s3; then
    skip 'built without S3'
    finish
elif ! command -v openssl >/dev/null; then
    skip 'the command openssl, which makes a certificate, is not installed'
    finish
elif ! python_with "$VENV" 'moto[s3]>=5.1,<6' flask flask-cors; then # less than moto[server] has
    skip "$CANNOT"
    finish
fi

# The store adds `notes` by itself.
make_awkward_set

# The store; it ends when file descriptor 8 is closed.
mkfifo orders
"$VENV/bin/python" "$ROOT/tests/servers/moto_store.py" set <orders >store 2>requests.log &
exec 8>orders
wait_for 60 grep -q '^ready$' store || fail "moto does not start: $(tail -n 3 requests.log)"
eval "$(grep -E '^[A-Z_]+=[A-Za-z0-9+/=:.]+$' store)"

for variable in $(compgen -e AWS_); do
    unset "$variable"
done
export HOME=$WORK XDG_CACHE_HOME=$WORK/cache AWS_EC2_METADATA_DISABLED=true no_proxy=127.0.0.1
export AWS_ENDPOINT_URL=$URL
LISTS=$WORK/cache/stoker/lists

# as KEY SECRET [TOKEN]: who asks from now on.
as() {
    export AWS_ACCESS_KEY_ID=$1 AWS_SECRET_ACCESS_KEY=$2
    unset AWS_SESSION_TOKEN
    [ $# -lt 3 ] || export AWS_SESSION_TOKEN=$3
}

# train DATA RUN ...: one short training; what it prints is looked through for secrets at the end.
train() {
    run train --data "$1" --out "$2" --img-size 16 --epochs 1 --seed 1 "${@:3}"
    cat "$OUT" "$ERR" >>printed
}

lists_asked() {
    grep -c 'list-type=2' requests.log
}

it "trains on S3 as on the same folder here, names of all kinds included"
as "$KEY" "$SECRET"
train set r-local
expect_exit 0
train s3://pics/set r-s3
expect_exit 0
expect_out '24 training images, 3 validation, 6 test, 3 classes'
expect_same r-local/weights/best.safetensors r-s3/weights/best.safetensors
expect_same r-local/submission.csv r-s3/submission.csv
expect "no picture is bad" [ "$(wc -l <r-s3/bad_images.csv)" = 1 ]

it "asks for no list the next time, and says from when its own is"
asked=$(lists_asked)
train s3://pics/set/ r-again
expect_exit 0
expect_out 'listing of s3://pics/set from 20[0-9-]+ [0-9:]+, 33 objects'
expect_out 'refresh lists again'
expect "no list was asked for" [ "$(lists_asked)" = "$asked" ]
expect_same r-s3/weights/best.safetensors r-again/weights/best.safetensors

it "lists again on request"
train s3://pics/set r-refresh --refresh
expect_exit 0
expect_no_out 'listing of s3://pics/set from'
expect "a list was asked for" [ "$(lists_asked)" -gt "$asked" ]

it "lists 5,000 objects over several pages, with every key as it is"
rm -rf "$LISTS"
asked=$(lists_asked)
train s3://pics/big r-all
expect_exit 0
expect "there were several pages" [ "$(lists_asked)" -gt $((asked + 5)) ]
run_any "$VENV/bin/python" -c '
import glob, json, sys, urllib.parse
lines = open(glob.glob(sys.argv[1] + "/*.list")[0], "rb").read().split(b"\n")
keys = [urllib.parse.unquote_to_bytes(line.split(b" ")[2]) for line in lines[1:-2]]
wanted = [key.encode() for key in json.load(open("keys.json"))]
print(len(keys), "objects")
sys.exit(keys != wanted)' "$LISTS"
expect_exit 0
expect_out '^50[0-9][0-9] objects$'

it "refuses a wrong secret, in the listing and when it reads"
as "$KEY" WRONGsecretWRONG
for more in --refresh --no-refresh; do
    train s3://pics/set r-wrong "$more" --cache off
    expect_exit 5
    expect_err 'secret key does not belong to the access key id'
    expect_err 'credentials from the environment'
    expect_no_file r-wrong/weights
done

it "refuses a key that the store does not know"
as AKIANOBODYKNOWSIT WRONGsecretWRONG
train s3://pics/set r-wrong --refresh --cache off
expect_exit 5
expect_err 'does not know the access key id from the environment'

it "takes temporary credentials with their token, from a profile"
as '' ''
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
write_profile "$ROLE_KEY" "$ROLE_SECRET" "$ROLE_TOKEN"
AWS_PROFILE=lab train s3://pics/set r-role --refresh --cache off
expect_exit 0
expect_same r-s3/weights/best.safetensors r-role/weights/best.safetensors
sed -i 's/^aws_session_token = ..../aws_session_token = AAAA/' .aws/credentials
AWS_PROFILE=lab train s3://pics/set r-wrong --refresh --cache off
expect_exit 5
expect_err "session token .* profile 'lab'"
rm -r .aws

it "speaks TLS, and only with a store that it may trust"
as "$KEY" "$SECRET"
export AWS_ENDPOINT_URL=$TLS_URL
train s3://pics/set r-tls --cache off
expect_exit 5
expect_err 'certificate is not trusted .*AWS_CA_BUNDLE'
AWS_CA_BUNDLE=$WORK/ca.pem train s3://pics/set r-tls --cache off
expect_exit 0
expect_same r-s3/weights/best.safetensors r-tls/weights/best.safetensors
AWS_CA_BUNDLE=$WORK/nothing.pem train s3://pics/set r-tls --cache off --refresh
expect_exit 5
expect_err 'nothing.pem'
export AWS_ENDPOINT_URL=$URL

it "explains what may be listed but not read"
as "$BLIND_KEY" "$BLIND_SECRET"
train s3://pics/set r-blind --refresh --cache off
expect "it fails" [ "$CODE" != 0 ]
cat "$OUT" "$ERR" r-blind/bad_images.csv >told 2>/dev/null
expect "s3:GetObject is named" grep -q 's3:GetObject' told

it "explains a picture that was deleted since, and goes on"
as "$KEY" "$SECRET"
train s3://pics/set r-before --cache "$WORK/own"
expect_exit 0
echo "delete set/train/$class/a+b.jpg" >&8
wait_for 20 grep -q '^done$' store
rm -rf "$WORK/own/packs"
train s3://pics/set r-deleted --cache "$WORK/own"
expect_exit 0
expect_file r-deleted/bad_images.csv "no object set/train/$class/a\\+b.jpg in bucket pics \\(404\\)"
expect_file r-deleted/bad_images.csv 'refresh lists again'

it "helps with a wrong bucket and a wrong prefix"
train s3://picz r-wrong
expect_exit 3
expect_err 'no bucket picz'
train s3://pics/sett r-wrong
expect_exit 3
expect_err 'did you mean s3://pics/set'

it "writes no secret anywhere"
: >secrets
for secret in "$SECRET" "$BLIND_SECRET" "$ROLE_SECRET" "$ROLE_TOKEN" WRONGsecretWRONG; do
    expect "a secret is not empty" [ "${#secret}" -gt 10 ]
    echo "$secret" >>secrets
done
rm -f store
expect_file printed
expect_not "a secret was written" \
    grep -rqF -f secrets printed r-* cache "$WORK/own"
expect_not "an authorization was written" grep -rqE 'AWS4-HMAC|Signature=' printed r-* cache "$WORK/own"

exec 8>&-
wait
finish
