# What recipes come to on real photographs: a table of accuracies at fixed epochs and seeds on the CPU, from real
# pretrained weights. A change of a recipe, a rate or a step that costs accuracy shows here. The least accuracies are
# what was measured when the recipes were made (docs/recipes.md), less four standard errors of the test pictures.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
RUN_TIMEOUT=600
shared=$ROOT/../shared/data
weights=$shared/weights/tf_efficientnet_lite0.safetensors

# lay_out FOLDER CLASSES_FOLDER TRAIN TEST: of each class the first TRAIN pictures train and the next TEST are to be
# predicted, under names that begin with their class.
lay_out() {
    local class file number
    for class in "$2"/*/; do
        class=${class%/}
        number=0
        mkdir -p "$1/train/${class##*/}" "$1/test"
        for file in "$class"/*.jpg; do
            if ((number < $3)); then
                ln -s "$file" "$1/train/${class##*/}/"
            elif ((number < $3 + $4)); then
                ln -s "$file" "$1/test/${class##*/}@$number.jpg"
            fi
            number=$((number + 1))
        done
    done
}

# reaches LEAST ARGUMENTS...: trains, and expects at least so many percent of the test pictures right.
reaches() {
    rm -rf r
    run train --img-size 96 --device cpu --out r --model tf_efficientnet_lite0 --pretrained "$weights" "${@:2}"
    expect_exit 0
    local right
    right=$(tail -n +2 r/submission.csv | awk -F , '{ split($1, id, "@"); n += id[1] == $2 } END { printf "%.1f", 100 * n / NR }')
    echo "     $right % right, held out $(json r/summary.json held_out): ${*:2}"
    expect "$right % right, fewer than $1" awk -v a="$right" -v b="$1" 'BEGIN { exit !(a >= b) }'
}

it "reaches the accuracies of the table"
if [ ! -f "$weights" ] || [ ! -d "$shared/photos" ]; then
    skip "../shared/data has no photographs and weights"
else
    lay_out photos "$shared/photos" 40 40
    mkdir all && tar xf "$shared/caltech101-128.tar" -C all
    lay_out caltech "$PWD/all" 12 8
    reaches 47 --data photos --epochs 2 --refit 0 --seed 1
    reaches 61 --data photos --epochs 8 --refit 0 --seed 1
    reaches 66 --data photos --epochs 8 --seed 2
    reaches 75 --data caltech --epochs 3 --refit 0 --seed 1
    reaches 77 --data caltech --epochs 3 --val-fraction 0 --seed 2
fi
finish
