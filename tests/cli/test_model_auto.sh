# Runs that name no model: the best pretrained model on this machine that fits the device and the time, the model of
# a file of weights, and the small network where there are no weights.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

own=$XDG_CACHE_HOME/stoker
hub=$HOME/.cache/huggingface/hub
"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
small=(--data k --img-size 32)
# Where speed is measured for seconds, the device waits for each picture, which takes no core.
waits=(LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US=5000)
! is_sanitized || waits=()

# Weights of two models, of which the second is better and slower.
for model in mobilenetv2_100 tf_efficientnet_lite0; do
    "$STOKER" train "${small[@]}" --model "$model" --epochs 1 --out "$model" --quiet || exit 1
    mv "$model/weights/best.safetensors" "$model.safetensors" || exit 1
done

# train OUT OPTIONS...: a short run.
train() {
    run train "${small[@]}" --out "$1" --epochs 1 --refit 0 "${@:2}"
}

it "trains the small network from random weights where there are none"
train none
expect_exit 0
expect_out '^model convnet_s \(auto\)'
expect_no_out 'weights from'
expect_file none/args.json '"model": "convnet_s"'

it "takes the only pretrained model that is here, and says so"
mkdir -p "$own"
cp mobilenetv2_100.safetensors "$own/"
train one
expect_exit 0
expect_out '^model mobilenetv2_100 \(auto\)'
expect_out '^model mobilenetv2_100: the only usable pretrained model on this machine$'
expect_out "^weights from $own/mobilenetv2_100.safetensors: mobilenetv2_100$"
expect_out '^recipe touch: for 1 epoch from pretrained weights'
expect_file one/args.json '"model": "mobilenetv2_100"'
expect_file one/args.json "\"pretrained\": \"$own/mobilenetv2_100.safetensors\""

it "takes it for --pretrained true, too, and for no other setting"
train yes --pretrained true
expect_exit 0
expect_out '^model mobilenetv2_100: the only'
train no --pretrained false
expect_exit 0
expect_out '^model convnet_s \(auto\)'
expect_no_out 'weights from'
train named --model convnet_s
expect_exit 0
expect_no_out 'weights from'
expect_no_out '^model convnet_s:'
expect_file named/args.json '"pretrained": null'

it "takes the fastest good one on a CPU without a budget"
snapshot=$hub/models--timm--tf_efficientnet_lite0.in1k/snapshots/0123
mkdir -p "$snapshot"
cp tf_efficientnet_lite0.safetensors "$snapshot/model.safetensors"
train cpu
expect_exit 0
expect_out '^model mobilenetv2_100: the fastest good one of 2 pretrained models on this machine: larger ones take long on a CPU$'

it "prefers a model of known accuracy"
cp none/weights/best.safetensors "$own/convnet_s.safetensors"
train known
expect_exit 0
expect_out '^model mobilenetv2_100: the fastest good one of 2'
rm "$own/convnet_s.safetensors"

it "takes the best one for which there is time, and plan says the same"
run_any env "${waits[@]}" "$STOKER" plan "${small[@]}" --budget 60s
expect_exit 0
expect_out '^model tf_efficientnet_lite0: the best of 2 pretrained models on this machine; there is time for about [0-9]+ epochs$'
expect_out "^weights from $snapshot/model.safetensors: tf_efficientnet_lite0.in1k, timm's default"
expect_no_out 'weights from .*mobilenetv2'
run_any env "${waits[@]}" "$STOKER" plan "${small[@]}" --budget 1s
expect_exit 0
# A busy machine may measure nothing in a second: then it is the choice without a time.
expect_out '^model (mobilenetv2_100|tf_efficientnet_lite0): the (best|fastest)( good one)? of 2 pretrained models on this machine'

it "goes on with the model and the weights that it chose"
has_epoch() { grep -q '"event": "epoch"' "chosen/events.jsonl"; }
start train "${small[@]}" --budget 120s --folds 2 --refit 0 --out chosen
wait_for 120 has_epoch || fail "there was no epoch"
kill -INT "$PID"
ended 60
expect_exit 0
expect_out '^model tf_efficientnet_lite0: the best of 2'
expect_out '^model tf_efficientnet_lite0 \(auto\)'
expect_file chosen/args.json '"model": "tf_efficientnet_lite0"'
expect_file chosen/args.json "\"pretrained\": \"$snapshot/model.safetensors\""
run status chosen --json
expect_exit 0
expect_out '"model": "tf_efficientnet_lite0"'
rm -r "$own"
run train --resume chosen --budget 1h --epochs 4
expect_exit 0
expect_out '^model tf_efficientnet_lite0'
expect_file chosen/events.jsonl '"event": "epoch", "fold": 1'
run predict --run chosen --out again.csv
expect_exit 0
expect_out 'again.csv \([0-9]+ rows, from 2 models\)'
expect_submission again.csv k/sample_submission.csv

it "leaves out weights that cannot be used"
mkdir -p "$own"
cp mobilenetv2_100.safetensors "$own/"
head -c 9000 tf_efficientnet_lite0.safetensors >"$snapshot/model.safetensors"
train damaged
expect_exit 0
expect_out '^warning: tf_efficientnet_lite0 is not considered: .*model.safetensors is not a whole safetensors file'
expect_out '^model mobilenetv2_100: the only usable pretrained model'
rm -r "$hub"
train tiny --img-size 16
expect_exit 0
expect_out '^warning: mobilenetv2_100 is not considered: --img-size 16: mobilenetv2_100 needs images of at least'
expect_out '^model convnet_s \(auto\)'

it "takes the model of a file without --model"
train file --pretrained tf_efficientnet_lite0.safetensors
expect_exit 0
expect_out "^model tf_efficientnet_lite0: named in the file's metadata$"
expect_out '^weights from tf_efficientnet_lite0.safetensors: the file that was given$'
train name --pretrained mobilenetv2_100
expect_exit 0
expect_out '^model mobilenetv2_100: named'

it "explains a file of no model"
printf '\110\0\0\0\0\0\0\0{"blocks.0.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}    1234' >odd.safetensors
train odd --pretrained odd.safetensors
expect_exit 3
expect_err 'odd.safetensors: these weights fit none of the models; name the model with --model'
expect_no_file odd

finish
