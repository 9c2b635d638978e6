# Recipes: which is taken, what wins over it, models that are trained on everything, and what fits into a budget.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for wait_for
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 24 --quiet || exit 1
"$STOKER" train --data k --img-size 16 --epochs 1 --out first --quiet || exit 1
weights=first/weights/best.safetensors
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
small=(--data k --img-size 16)
tune=("${small[@]}" --pretrained "$weights")
# Two classes: the head of the weights does not fit.
"$STOKER" sample two --classes 2 --per-class 8 --quiet || exit 1
# More pictures than a short budget has time for, on any machine.
"$STOKER" sample many --layout kaggle --classes 3 --per-class 60 --quiet || exit 1

# On a device that waits for each picture a run takes its time without a core. The long ones begin now.
odd() { launch "$1" LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US="$2" "$STOKER" "${@:3}"; }
odd hopeless 50000 plan --data many --model mobilenetv2_100 --batch 2 --budget 8s
odd hasty 150000 train --data many --device cpu --model mobilenetv2_100 --budget 8s --out hasty
odd models 1000 train "${tune[@]}" --budget 16s --out models

# end_within SIGNAL FOLDER MODEL SLOW: fine-tunes, and sends the signal after two epochs of that model. As soon as
# there is the folder SLOW, the device waits 5 ms for each picture: ten epochs more take seconds on any machine.
has_epochs() { grep -q "\"event\": \"epoch\", \"fold\": $2, \"epoch\": 2" "$1/events.jsonl"; }
end_within() {
    LD_PRELOAD=$FAKES/odd_device.so ODD_DEVICE_US=20 ODD_DEVICE_TIMES=250 ODD_DEVICE_FROM=$4 \
        start train "${tune[@]}" --epochs 12 --out "$2"
    wait_for 120 has_epochs "$2" "$3" || fail "model $3 of $2 did not come to its second epoch"
    kill "-$1" "$PID"
    ended 60
}

it "names the recipe and why it was taken"
run train "${small[@]}" --epochs 2 --out r1
expect_exit 0
expect_out '^recipe scratch: for 2 epochs from scratch; sgd, crop-scale 0\.7$'
expect_file r1/args.json '"recipe": "scratch"'
run train "${tune[@]}" --epochs 2 --refit 0 --out r2
expect_exit 0
expect_out '^recipe touch: for 2 epochs from pretrained weights; adamw, crop-scale 0\.6, norm-stats kept, label-smoothing 0\.1, head-lr 0\.003$'
expect_file r2/args.json '"optimizer": "adamw"'
expect_file r2/args.json '"label_smoothing": 0\.1'

it "takes a recipe by name, and what is given before it"
run train "${tune[@]}" --epochs 2 --refit 0 --recipe plain --label-smoothing 0.05 --out r3
expect_exit 0
expect_out '^recipe plain: sgd, crop-scale 0\.7, label-smoothing 0\.05$'
expect_file r3/args.json '"optimizer": "sgd"'
run train "${tune[@]}" --recipe best
expect_exit 2
expect_err 'auto, plain, touch, finetune'

it "means the same with all values as with the recipe"
run train "${small[@]}" --epochs 2 --out r4 --optimizer sgd --crop-scale 0.7 --label-smoothing 0 --mixup 0 --ema 0 --weight-decay 5e-4 --quiet
expect_exit 0
expect_same r1/submission.csv r4/submission.csv

it "begins with a head of zeros where the file's does not fit"
run train --data two --img-size 16 --pretrained "$weights" --epochs 1 --lr 0 --refit 0 --out zeros
expect_exit 0
expect_out 'head for 2 classes starts anew'
expect "every picture gets the same probabilities" \
    [ "$(tail -n +2 zeros/validation.csv | cut -d , -f 4 | sort -u)" = 0.5 ]

it "trains a second model on everything after pretrained weights"
run train "${tune[@]}" --epochs 2 --out both
expect_exit 0
expect_out '^refit 1/1  epoch 2/2'
expect_no_out '[12] of 2 models:' # without a budget nothing is weighed
expect_out 'submission.csv \([0-9]+ rows, from 2 models\)'
expect_out '^  held out    acc1 [0-9.]+%, validation of [0-9]+ pictures; refits trained on them, too$'
expect_summary both/summary.json folds_done 2
expect_summary both/summary.json status complete
expect_summary both/summary.json held_out '[0-9.]+'
expect_weights both/weights/refit0/best.safetensors
expect "rows of the refit have no validation" grep -Eq '^1,2,[0-9.e-]+,[0-9.]+,,,,' both/results.csv
expect_submission both/submission.csv k/sample_submission.csv "$labels"
run predict --run both --out again.csv
expect_exit 0
expect_same both/submission.csv again.csv

it "trains on everything at once with --val-fraction 0"
run train "${small[@]}" --epochs 2 --val-fraction 0 --out whole
expect_exit 0
expect_out '^data: k, 72 training images, [0-9]+ test, 3 classes'
expect_summary whole/summary.json held_out null
expect_summary whole/summary.json best_acc1 null
expect_submission whole/submission.csv k/sample_submission.csv "$labels"

it "goes on within a refit as if nothing had happened"
if can_fake odd_device; then
    end_within INT cut 1 cut/weights/refit0
    expect_exit 0
    expect_file cut/events.jsonl 'refit 1 of 1 is not used'
    expect_summary cut/summary.json folds_done 1
    expect_no_file cut/weights/refit0/best.safetensors
    run train --resume cut
    expect_exit 0
    expect_out '^goes on in refit 1 at epoch [0-9]+, step [0-9]+: resumed$'
    expect_out '^  held out    acc1 [0-9.]+%, validation of 14 pictures; refits trained on them, too$'
    expect_summary cut/summary.json folds_done 2
    expect_weights cut/weights/refit0/best.safetensors
fi

it "predicts without a refit that was killed"
if can_fake odd_device; then
    end_within KILL killed 1 killed/weights/refit0
    run predict --run killed --out one.csv
    expect_exit 0
    expect_out 'one.csv \([0-9]+ rows, from 1 model\)'
    run train --resume killed
    expect_exit 0
    expect_summary killed/summary.json folds_done 2
fi

it "adds no refit to a run of a version that had none"
if can_fake odd_device; then
    end_within KILL old 0 old
    sed -i '/"refit"/d; /"recipe"/d' old/args.json
    run train --resume old
    expect_exit 0
    expect_summary old/summary.json folds_planned 1
fi

it "gives the model that was asked for its epochs before a refit"
if can_fake odd_device; then
    run_any env LD_PRELOAD="$FAKES/odd_device.so" ODD_DEVICE_US=1000 \
        "$STOKER" train "${tune[@]}" --epochs 100000 --budget 4s --out cut_epochs
    expect_exit 0
    expect_summary cut_epochs/summary.json folds_done 1
    expect_summary cut_epochs/summary.json stop_reason budget
fi

it "says what does not fit into a hopeless budget"
landed hopeless
if can_fake odd_device; then
    expect_exit 0
    expect_out '^warning: the budget is short: at 64 px (there is time for (at most )?[0-9.e-]+ epochs over 144 pictures|predicting alone takes the time); for 12 epochs give a --budget of (about|more than) [1-9]'
fi

# A step of 8 pictures takes more than two seconds on any machine.
it "makes pictures smaller where not one step of the rehearsal fits"
landed hasty
if can_fake odd_device; then
    expect_exit 0
    expect_out '^img-size (64|96|128) instead of 224: at 224 px (there is time for at most [0-9.e-]+ epochs|predicting alone takes the time), at (64|96|128) px '
    expect_out '^warning: the budget is short: at (64|96|128) px .*; for 12 epochs give a --budget of more than '
    expect_out '^recipe scratch: for [0-9.e-]+ epochs? from scratch'
    expect_no_out 'for 20 epochs'
    expect_file hasty/events.jsonl '"event": "start", .*"img_size": (64|96|128)'
    expect_submission hasty/submission.csv many/sample_submission.csv "$labels"
fi

it "trains several models where the time allows them"
landed models
if can_fake odd_device; then
    expect_exit 0
    expect_out '^1 validated model and [1-5] refits? on all pictures, about [0-9]+ epochs each: one model alone would get [0-9]+ epochs over all 72 pictures$'
    expect_file models/args.json '"folds": 1'
    expect_file models/args.json '"refit": [1-5]'
    expect_file models/summary.json '"status": "(complete|partial)"' # on a busy machine the last epoch is cut
    expect_submission models/submission.csv k/sample_submission.csv "$labels"
    expect_weights models/weights/best.safetensors
fi

it "lets a new head learn alone at first"
freeze=(--data two --img-size 16 --pretrained "$weights" --refit 0)
run train "${freeze[@]}" --epochs 3 --optimizer AdamW --out alone
expect_exit 0
expect_out '^recipe touch: for 3 epochs from pretrained weights; adamw, .*, freeze-epochs 2$'
expect_file alone/args.json '"freeze_epochs": 2'
run train "${freeze[@]}" --epochs 3 --freeze-epochs 2 --out alone2 --quiet
expect_exit 0
expect_same alone/validation.csv alone2/validation.csv
run train "${freeze[@]}" --epochs 3 --freeze-epochs 0 --out alone3 --quiet
expect_exit 0
! cmp -s alone/validation.csv alone3/validation.csv || fail "freezing changed nothing"
run train "${freeze[@]}" --epochs 1 --out alone4 --quiet
expect_file alone4/args.json '"freeze_epochs": 0'
run train "${tune[@]}" --epochs 3 --refit 0 --out alone5 --quiet # the head of the weights fits
expect_file alone5/args.json '"freeze_epochs": 0'

it "keeps the norms' statistics of pretrained weights, unless rates are given"
run train "${freeze[@]}" --epochs 3 --out kept
expect_exit 0
expect_out '^recipe touch: .*, norm-stats kept, .*, head-lr 0.003'
expect_file kept/args.json '"norm_stats": "kept"'
expect_file kept/args.json '"lr": 0.0003'
run train "${freeze[@]}" --epochs 3 --lr 0.0003 --head-lr 0.003 --out kept2 --quiet
expect_file kept2/args.json '"norm_stats": "batch"'
expect_not "other statistics, other results" cmp -s kept/validation.csv kept2/validation.csv
run lr "${freeze[@]::6}" --steps 50 --out kept3 --quiet
expect_exit 0
expect_file kept3/args.json '"norm_stats": "batch"'
run train --config kept/args.yaml --out kept4 --quiet
expect_exit 0
expect_same kept/validation.csv kept4/validation.csv
run train --data two --img-size 16 --norm-stats kept --epochs 1 --out kept5
expect_exit 2
expect_err 'random weights have no statistics to keep'

it "sees a large class less often"
mkdir -p odd/train/many odd/train/few odd/train/some
for class in many few some; do
    i=0
    for file in k/train/*; do
        i=$((i + 1)) && cp "$file" "odd/train/$class/$class$i.${file##*.}"
        [ "$class" = many ] || [ "$i" -lt 6 ] || break
    done
done
run train --data odd --img-size 16 --epochs 1 --out odd1
expect_exit 0
expect_out '^sampling sqrt: the largest class has [0-9.]+ times as many pictures as the others$'
expect_file odd1/args.json '"sampling": "sqrt"'
run train --data odd --img-size 16 --epochs 1 --sampling natural --out odd2
expect_exit 0
expect_file odd2/args.json '"sampling": "natural"'
expect_no_out '^sampling'
run train "${small[@]}" --epochs 1 --out odd3
expect_file odd3/args.json '"sampling": "natural"'

it "validates and predicts at the size of evaluation"
wide=(--data k --model mobilenetv2_100 --img-size 64 --epochs 1)
run train "${wide[@]}" --lr 1e-4 --out wide1
expect_exit 0
expect_file wide1/args.json '"eval_size": 64' # from scratch: as trained
wide+=(--pretrained wide1/weights/best.safetensors --refit 0)
run train "${wide[@]}" --out wide2
expect_exit 0
expect_file wide2/args.json '"eval_size": 80'
expect "the checkpoint has that size" grep -aEq '"img_size": ?"80"' wide2/weights/best.safetensors
cp wide2/submission.csv train.csv
run predict --run wide2 --out again.csv
expect_exit 0
expect_same train.csv again.csv
run train "${wide[@]}" --eval-size 64 --out wide3
expect_exit 0
expect_file wide3/args.json '"eval_size": 64'
expect_not "other pictures, other predictions" cmp -s wide2/validation.csv wide3/validation.csv

it "goes on at the size of training in a run of a version that knew no other"
if can_fake odd_device; then
    LD_PRELOAD=$FAKES/odd_device.so ODD_DEVICE_US=20000 \
        start train "${wide[@]}" --data two --epochs 6 --out wide4
    wait_for 120 has_epochs wide4 0 || fail "wide4 did not come to its second epoch"
    kill -KILL "$PID"
    ended 60
    sed -i '/"eval_size"/d' wide4/args.json
    run train --resume wide4
    expect_exit 0
    expect_file wide4/args.json '"eval_size": 64'
fi

it "begins with small pictures"
early=(--data k --img-size 32 --early-size 16)
run train "${early[@]}" --epochs 4 --out early1
expect_exit 0
expect_out '^pictures of 32 px: the first half of the training is over'
expect "the checkpoint has the usual size" grep -aEq '"img_size": ?"32"' early1/weights/last.safetensors
run train --data k --img-size 32 --epochs 4 --out early2
expect_exit 0
expect_file early2/args.json '"early_size": 0'
expect_no_out 'pictures of'
expect_not "other pictures, other weights" cmp -s early1/submission.csv early2/submission.csv
run train "${early[@]}" --early-size small
expect_exit 2
run train "${early[@]}" --early-size 64 --epochs 1 --out early4
expect_exit 0
expect_out 'early-size 0 \(not below --img-size\)'
expect_file early4/args.json '"early_size": 0'

it "predicts with small pictures what is stopped in the first half, and goes on with them"
if can_fake odd_device; then
    LD_PRELOAD=$FAKES/odd_device.so ODD_DEVICE_US=20 ODD_DEVICE_TIMES=250 ODD_DEVICE_FROM=early3 \
        start train "${early[@]}" --epochs 12 --out early3
    wait_for 120 has_epochs early3 0 || fail "early3 did not come to its second epoch"
    kill -INT "$PID"
    ended 60
    expect_summary early3/summary.json status partial
    expect "the checkpoint has the small size" grep -aEq '"img_size": ?"16"' early3/weights/best.safetensors
    run predict --run early3 --out again.csv
    expect_exit 0
    expect_same early3/submission.csv again.csv
    run train --resume early3
    expect_exit 0
    expect_out '^pictures of 32 px: '
    expect_summary early3/summary.json status complete
    expect "the checkpoint has the usual size" grep -aEq '"img_size": ?"32"' early3/weights/last.safetensors
fi

# Versions of the same pictures, that look alike; the names are numbers.
mkdir -p versions/Test && number=0
for picture in k/train/*.jpg; do
    number=$((number + 1))
    for kind in Cover JMiPOD UERD; do
        mkdir -p "versions/$kind"
        cp "$picture" "versions/$kind/$number.jpg"
    done
done
printf 'Id,Label\n' >versions/sample_submission.csv
for picture in k/test/*.jpg; do
    cp "$picture" versions/Test/
    printf '%s,0.5\n' "$(basename "$picture")" >>versions/sample_submission.csv
done
native='native pixels: the classes are versions of the same pictures'

it "leaves pictures unscaled where the classes are versions of the same pictures"
run train --data versions --img-size 32 --epochs 1 --out native
expect_exit 0
expect_out "^recipe scratch: for 1 epoch from scratch; sgd, $native\$"
expect_out '^validation by groups: column name of the picture'
expect_file native/args.json '"resize": "none"'
expect_file native/args.json '"crop_scale": 1'
expect "all versions of a picture validate or none" [ -z "$(tail -n +2 native/validation.csv | cut -d , -f 1 |
    sed 's:.*/::' | sort | uniq -c | awk '$1 != 3')" ]
expect "the checkpoint says so" grep -aEq '"resize": ?"none"' native/weights/best.safetensors
run predict --run native --out again.csv
expect_exit 0
expect_same native/submission.csv again.csv
run train --data versions --img-size 32 --epochs 1 --resize none --out native2 --quiet
expect_exit 0
expect_same native/submission.csv native2/submission.csv

it "shows windows as large as the pictures by default"
run train --data versions --epochs 1 --out large
expect_exit 0
side=$(sed -nE 's/.*img-size ([0-9]+) \(auto\).*/\1/p' "$OUT" | head -n 1)
expect "windows of $side px are as small as other pictures of this model" [ "${side:-0}" -gt 64 ]

it "scales versions where that is asked for"
run train --data versions --img-size 32 --epochs 1 --resize scale --out scaled
expect_exit 0
expect_out 'sgd, crop-scale 0\.7$'
expect_not "other parts, other weights" cmp -s native/submission.csv scaled/submission.csv
run train --data versions --img-size 32 --epochs 1 --crop-scale 0.5 --out scaled2
expect_exit 0
expect_file scaled2/args.json '"resize": "scale"'
run train --data versions --resize none --crop-scale 0.5
expect_exit 2
expect_err 'resize none and --crop-scale 0\.5'

it "scales numbered pictures of classes that only have names like versions"
cp -r versions others
number=0
for picture in $(printf '%s\n' k/train/*.jpg | tac); do
    number=$((number + 1))
    cp "$picture" "others/JMiPOD/$number.jpg"
    cp "$picture" "others/UERD/$number.jpg"
done
run train --data others --img-size 32 --epochs 1 --out others-run
expect_exit 0
expect_out 'sgd, crop-scale 0\.7$'

finish
