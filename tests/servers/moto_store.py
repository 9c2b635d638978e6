"""An S3 that is not ours and checks signatures: moto's server, filled and with its door locked.

    moto_store.py FOLDER

The files of FOLDER become objects of the bucket `pics`, below `set/` and below `big/`, where thousands of small ones
lie beside them in `notes/`. It prints what a client needs, one `NAME=VALUE` a line, then `ready`; from then on every
request must be signed. TLS_URL is the same store over TLS (tls_relay.py), with a certificate that only who trusts
`ca.pem` takes. It obeys lines of its input (`delete KEY`), each answered with `done`, and ends when its input does.
"""
import json
import os
import sys
import urllib.request

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "1000000"  # before moto is loaded: setting up is free

import boto3  # noqa: E402
import tls_relay  # noqa: E402
from moto.backends import get_backend  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

BUCKET = "pics"
NOTES = 5000
# What no file of a folder can be called, and more that is awkward in addresses.
ODD = [
    "big/notes/odd/x//y.txt",
    "big/notes/odd/control\x01\x1f.txt",
    "big/notes/odd/line\nfeed.txt",
    "big/notes/odd/%2F%41.txt",
    "big/notes/odd/back\\slash;:@$,!*()[]{}|^`~.txt",
    "big/notes/odd/ends with a blank ",
]


def tell(**values):
    for name, value in values.items():
        print(f"{name}={value}", flush=True)


def fill(folder):
    """Puts the objects past the HTTP server, which would take half a minute for them.

    keys.json gets the keys of `big/`, without that prefix, in the order of their bytes.
    """
    store = get_backend("s3")["123456789012"]["aws"]
    keys = [f"big/notes/c{i % 4 if i < 2000 else 4}/{i:05d}.txt" for i in range(NOTES)] + ODD
    for key in keys:
        store.put_object(BUCKET, key, key.encode())
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            key = os.path.relpath(path, folder)
            with open(path, "rb") as file:
                picture = file.read()
            store.put_object(BUCKET, "set/" + key, picture)
            store.put_object(BUCKET, "big/" + key, picture)
            keys.append("big/" + key)
    with open("keys.json", "w", encoding="utf-8") as file:
        json.dump(sorted((key[len("big/") :] for key in keys), key=str.encode), file)
    return store


def allow(actions):
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def make_user(iam, name, actions):
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=allow(actions))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


def make_role(iam, sts):
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=document)["Role"]
    iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=allow("s3:*"))
    return sts.assume_role(RoleArn=role["Arn"], RoleSessionName="test")["Credentials"]


def main():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    setup = {
        "endpoint_url": url,
        "region_name": "us-east-1",
        "aws_access_key_id": "setup",
        "aws_secret_access_key": "setup",
    }
    iam = boto3.client("iam", **setup)
    boto3.client("s3", **setup).create_bucket(Bucket=BUCKET)
    store = fill(sys.argv[1])
    key, secret = make_user(iam, "reader", "s3:*")
    blind_key, blind_secret = make_user(iam, "blind", "s3:ListBucket")
    role = make_role(iam, boto3.client("sts", **setup))
    lock = urllib.request.Request(url + "/moto-api/reset-auth", data=b"0")
    lock.add_header("Content-Type", "text/plain")
    urllib.request.urlopen(lock).read()
    tell(TLS_URL=f"https://127.0.0.1:{tls_relay.serve(port)}")
    tell(URL=url, KEY=key, SECRET=secret, BLIND_KEY=blind_key, BLIND_SECRET=blind_secret)
    tell(ROLE_KEY=role["AccessKeyId"], ROLE_SECRET=role["SecretAccessKey"])
    tell(ROLE_TOKEN=role["SessionToken"])
    print("ready", flush=True)
    for line in sys.stdin:
        verb, _, key = line.rstrip("\n").partition(" ")
        if verb == "delete":
            store.delete_object(BUCKET, key)
        print("done", flush=True)
    server.stop()


main()
