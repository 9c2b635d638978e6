# Weights that a run starts from (--pretrained), and other programs that read the weights of a run: the
# safetensors package, in a Python environment that is made once in the build folder, and timm, if
# TIMM_PYTHON (or else python3) has it.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

VENV=$ROOT/build/tests/safetensors-venv
hub=$HOME/.cache/huggingface/hub
own=$XDG_CACHE_HOME/stoker

# train DATA OUT OPTIONS...: a short run.
train() {
    run train --data "$1" --out "$2" --img-size 32 --epochs 1 --batch 8 "${@:3}"
}

# nothing OUT: the last run was refused before it wrote anything.
nothing() {
    expect_no_file "$1"
    expect_empty "$OUT"
}

"$STOKER" sample three --classes 3 --per-class 6 --seed 1 --quiet || exit 1
"$STOKER" sample four --classes 4 --per-class 6 --seed 2 --quiet || exit 1
"$STOKER" train --data three --out first --img-size 16 --epochs 1 --quiet || exit 1
weights=$WORK/first/weights/best.safetensors

it "starts from a file, and says which"
train three r-file --pretrained first/weights/best.safetensors --lr 0
expect_exit 0
expect_out 'weights from first/weights/best.safetensors'
expect_no_out 'starts anew'
expect_file r-file/args.json "\"pretrained\": \"$weights\""
expect_file r-file/events.jsonl '"event": "decision", "what": "weights from first/weights'

it "gives a head for other classes its own first weights, in every fold"
train four r-head --pretrained "$weights" --folds 2
expect_exit 0
expect_out 'head for 4 classes starts anew: the file has 3'
expect_weights r-head/weights/fold1/best.safetensors

it "takes a word for no as none"
for word in false no none ''; do
    train three "r-no$word" --pretrained "$word"
    expect_exit 0
    expect_no_out 'weights from'
done

it "explains a name that is not there, with the command that fetches it"
train three r-none --model resnet18 --pretrained resnet18
expect_exit 2
expect_err 'hf download timm/resnet18.a1_in1k model.safetensors'
expect_err '--pretrained FILE.safetensors'
expect_err "looked in .*$hub"
expect_err "$own"
nothing r-none
train three r-none --model resnet18.tv_in1k --pretrained true
expect_exit 2
expect_err 'hf download timm/resnet18.tv_in1k model.safetensors'
nothing r-none
train three r-none --pretrained true
expect_exit 2
expect_err '--pretrained true: no weights of a known model are on this machine; fetch some'
expect_err "looked in .*$hub"
train three r-none --model convnet_s --pretrained true
expect_exit 2
expect_err 'convnet_s: there are no such weights here, and none that timm has published'
train three r-none --pretrained no/such.safetensors
expect_exit 2
expect_err 'no/such.safetensors: there is no such file'
nothing r-none

it "finds a name in the hub's cache and in Stoker's own"
snapshot=$hub/models--timm--convnet_s.mine/snapshots/0123
mkdir -p "$snapshot" "$hub/models--timm--convnet_s.mine/refs" "$own"
cp "$weights" "$snapshot/model.safetensors"
printf 0123 >"$hub/models--timm--convnet_s.mine/refs/main"
train three r-hub --pretrained yes
expect_exit 0
expect_out "weights from $snapshot/model.safetensors: convnet_s.mine, the only one"
cp "$weights" "$own/convnet_s.safetensors"
train three r-own --pretrained convnet_s
expect_exit 0
expect_out "weights from $own/convnet_s.safetensors"
train three r-tag --pretrained convnet_s.mine
expect_exit 0
expect_out "weights from $snapshot"

it "takes the setting from a file, as other tools write it"
printf 'pretrained: true\n' >yes.yaml
run train --config yes.yaml --data three --out r-yaml --img-size 32 --epochs 1
if grep -q 'no YAML' "$ERR"; then
    skip "this build has no YAML"
else
    expect_exit 0
    expect_out "weights from $own/convnet_s.safetensors"
fi

it "refuses weights of another model, damaged ones and pickles, and writes nothing"
train three r-bad --model resnet18 --pretrained "$weights"
expect_exit 3
expect_err 'is a checkpoint of convnet_s and does not fit resnet18; use --model convnet_s'
expect_err 'conv1.weight \(the file has 32x3x3x3, the model 64x3x7x7\)'
expect_err 'missing in the file: layer1.0.conv1.weight'
expect_err 'and [0-9]+ more$'
nothing r-bad
head -c 5000 "$weights" >cut.safetensors
train three r-bad --pretrained cut.safetensors
expect_exit 3
expect_err 'cut.safetensors is damaged'
nothing r-bad
printf 'PK\3\4\0\0\10\10\0\0\0\0 and so on' >net.pth
train three r-bad --pretrained net.pth
expect_exit 3
expect_err 'net.pth is a PyTorch pickle.*python3 -c'
nothing r-bad

# ---- the safetensors package ----

CANNOT='packages from PyPI are for make soak'
! is_full || python_with "$VENV" safetensors numpy

it "writes files that the safetensors package reads, metadata included"
cat >look.py <<'PYTHON'
import json
import sys

from safetensors import safe_open

with safe_open(sys.argv[1], "np") as file:
    notes = file.metadata()
    assert notes["model"] == "convnet_s", notes
    assert len(json.loads(notes["classes"])) == 3, notes
    assert len(json.loads(notes["mean"])) == 3 and notes["img_size"] == "16", notes
    names = list(file.keys())
    assert len(names) > 10, names
    for name in names:
        assert file.get_tensor(name).dtype == "float32", name
PYTHON
if [ -n "$CANNOT" ]; then
    skip "$CANNOT"
else
    run_any "$VENV/bin/python" look.py "$weights"
    expect_exit 0
fi

it "reads what the package writes, in other types and with a prefix, number for number"
cat >convert.py <<'PYTHON'
import sys

import numpy
from safetensors.numpy import load_file, save_file

# Numbers that a half float has, so that nothing is lost on the way.
halves = {k: v.astype("float16") for k, v in load_file(sys.argv[1]).items()}
save_file({"module." + k: v for k, v in halves.items()}, "half.safetensors", {"format": "np"})
save_file({k: v.astype("float64") for k, v in halves.items()}, "double.safetensors")
PYTHON
cat >compare.py <<'PYTHON'
import sys

from safetensors.numpy import load_file

halves = load_file("half.safetensors")
trained = load_file(sys.argv[1])
assert len(halves) == len(trained)
for name, value in trained.items():
    if "running_" not in name:  # statistics follow the pictures at any learning rate
        assert (halves["module." + name].astype("float32") == value).all(), name
PYTHON
if [ -n "$CANNOT" ]; then
    skip "$CANNOT"
else
    run_any "$VENV/bin/python" convert.py "$weights"
    expect_exit 0
    train three r-half --pretrained half.safetensors --lr 0
    expect_exit 0
    expect_out 'tensors converted to fp32: the file has F16'
    expect_out '"module\." taken off'
    run_any "$VENV/bin/python" compare.py r-half/weights/last.safetensors
    expect_exit 0
    train three r-double --pretrained double.safetensors --lr 0
    expect_exit 0
    expect_out 'the file has F64'
    expect_same r-half/weights/last.safetensors r-double/weights/last.safetensors
fi

# ---- timm ----

python=${TIMM_PYTHON:-python3}
missing=''
cat >timm_there.py <<'PYTHON'
import importlib.util
import sys

lacking = [name for name in ("torch", "timm", "safetensors") if not importlib.util.find_spec(name)]
sys.exit("it lacks " + ", ".join(lacking) if lacking else 0)
PYTHON
"$python" timm_there.py >timm.log 2>&1 || missing="$python cannot do it: $(tail -n 1 timm.log)"

it "saves what timm loads with strict=True, and loads what timm saves"
cat >timm_save.py <<'PYTHON'
import safetensors.torch
import timm
import torch

torch.manual_seed(0)
safetensors.torch.save_model(timm.create_model("resnet18"), "timm.safetensors")
PYTHON
cat >timm_load.py <<'PYTHON'
import sys

import safetensors.torch
import timm
import torch

saved = safetensors.torch.load_file(sys.argv[1])
model = timm.create_model("resnet18", num_classes=3)
torch.nn.Module.load_state_dict(model, dict(saved), strict=True)
for name, value in model.state_dict().items():
    assert name.endswith("num_batches_tracked") or torch.equal(value, saved[name]), name
missing, unexpected = safetensors.torch.load_model(model, sys.argv[1], strict=True)
assert not missing and not unexpected
timm.models.load_checkpoint(model, sys.argv[1], strict=True)
before = safetensors.torch.load_file("timm.safetensors")
for name, value in saved.items():
    if "running_" not in name and not name.startswith("fc."):
        assert torch.equal(value, before[name]), name
PYTHON
if [ -n "$missing" ]; then
    skip "$missing"
else
    run_any "$python" timm_save.py
    expect_exit 0
    train three r-timm --model resnet18 --img-size 32 --pretrained timm.safetensors --lr 0
    expect_exit 0
    expect_out 'head for 3 classes starts anew: the file has 1000'
    run_any "$python" timm_load.py r-timm/weights/last.safetensors
    expect_exit 0
fi

finish
