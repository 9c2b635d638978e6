# Flags, YAML files and aliases; command lines that were written for other trainers.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
mkdir configs
printf 'epochs: 1\n' >probe.yaml
yaml=yes
"$STOKER" train --config probe.yaml 2>&1 | grep -q 'no YAML' && yaml=no

# Cases below that need a YAML file begin with `needs_yaml || ...`.
needs_yaml() {
    [ "$yaml" = yes ] || skip "this build has no YAML"
    [ "$yaml" = yes ]
}

# arg RUN KEY: what args.json of a run says.
arg() {
    grep -Eo "\"$2\": (\"[^\"]*\"|[^,}]*)" "$1/args.json" | sed 's/^[^:]*: //; s/"//g' | tr -d '\n'
}
expect_arg() {
    [ "$(arg "$1" "$2")" = "$3" ] || fail "$1/args.json has $2 '$(arg "$1" "$2")', expected '$3'"
}

# ---- configurations as they are printed in notes on slow training ----

it "runs configs/optimized_test.yaml: 16 workers, prefetch 4"
if needs_yaml; then
    cat >configs/optimized_test.yaml <<'YAML'
num_workers: 16  # Up from 8 - more parallel S3 reads
prefetch_factor: 4  # Up from 2 - prefetch more batches
YAML
    run train --data k --config configs/optimized_test.yaml --no_wandb --epochs 2 --img-size 16 --out r1
    expect_exit 0
    expect_empty "$ERR"
    expect_summary r1/summary.json workers 16
    expect_summary r1/summary.json prefetch 4
    expect_summary r1/summary.json epochs_done 2
    expect_out 'without effect.*no.wandb'
    head -n 1 "$OUT" >first
    expect_file first 'workers 16 \(config\)'
    expect_file first 'prefetch 4 \(config\)'
fi

it "takes the data set from data_root in the file"
if needs_yaml; then
    {
        cat configs/optimized_test.yaml
        echo "data_root: $WORK/k"
    } >configs/local.yaml
    run train --config configs/local.yaml --no_wandb --epochs 2 --img_size 16 --out r2
    expect_exit 0
    expect_submission r2/submission.csv k/sample_submission.csv
fi

it "runs a batch of 384 on 19 pictures, and says that it was cut"
if needs_yaml; then
    cat >configs/bigger.yaml <<'YAML'
batch_size: 384  # or even 512
lr: 0.75  # Scale accordingly
YAML
    run train --data k --config configs/bigger.yaml --no_wandb --epochs 2 --img-size 16 --out r3
    expect_exit 0
    expect_summary r3/summary.json batch 19
    expect_out 'batch 19.*19 training images'
    # The rate is scaled by (batch used / batch asked): 0.75 * 19 / 384.
    head -n 1 "$OUT" >first
    expect_file first 'lr 0\.0371094'
fi

it "runs at 160 pixels, and without persistent workers"
if needs_yaml; then
    cat >configs/small_pictures.yaml <<'YAML'
img_size: 160  # Down from 224
YAML
    cat >configs/not_persistent.yaml <<'YAML'
persistent_workers: false
YAML
    run train --data k --config configs/small_pictures.yaml --epochs 1 --per-class 2 --out r4
    expect_exit 0
    expect_arg r4 img_size 160
    run train --data k --config configs/not_persistent.yaml --epochs 1 --img-size 16 --out r5
    expect_exit 0
    expect_out 'without effect.*persistent'
fi

it "runs configs/single_gpu_full.yaml with a project and a name"
if needs_yaml; then
    cat >configs/single_gpu_full.yaml <<'YAML'
# Data loading - MAXIMIZED
batch_size: 384
num_workers: 32
prefetch_factor: 8

# Model - OPTIMIZED
compile_model: true  # PyTorch 2.0+ compilation

# Augmentation - SIMPLIFIED (for testing)
mixup_alpha: 0.0  # Disabled temporarily
cutmix_alpha: 0.0  # Disabled temporarily

# Training
lr: 0.75  # Scaled for batch_size=384
YAML
    run train \
        --config configs/single_gpu_full.yaml \
        --wandb_project imagenet-resnet50 \
        --wandb_name single-gpu-aggressive-v1 --data k --epochs 1 --img-size 16
    expect_exit 0
    expect_empty "$ERR"
    run_dir=runs/single-gpu-aggressive-v1
    expect_submission "$run_dir/submission.csv" k/sample_submission.csv
    expect_summary "$run_dir/summary.json" workers 32
    expect_summary "$run_dir/summary.json" prefetch 8
    expect_out 'without effect.*wandb.project'
fi

it "runs the variants: 320 and 0.625, 48 workers, no compilation, mixup and CutMix again"
if needs_yaml; then
    cat >configs/variant1.yaml <<'YAML'
# Reduce batch size
batch_size: 320  # or 256
lr: 0.625  # or 0.5
YAML
    cat >configs/variant2.yaml <<'YAML'
num_workers: 48  # if CPU allows
YAML
    cat >configs/variant3.yaml <<'YAML'
# Disable compilation
compile_model: false
YAML
    cat >configs/variant4.yaml <<'YAML'
mixup_alpha: 0.2
cutmix_alpha: 1.0
YAML
    for number in 1 2 3 4; do
        run train --data k --config "configs/variant$number.yaml" --epochs 1 --img-size 16 --out "v$number"
        expect_exit 0
        expect_submission "v$number/submission.csv" k/sample_submission.csv
    done
    expect_arg v3 compile false
    expect_arg v4 cutmix 1
    # Several files in a row: the later one adds to the earlier.
    run train --data k --config configs/single_gpu_full.yaml --config configs/variant1.yaml --epochs 1 \
        --img-size 16 --out v5
    expect_exit 0
    expect_arg v5 workers 32
    head -n 1 "$OUT" >first
    expect_file first 'lr 0\.0371094' # 0.625 * 19 / 320
fi

it "cuts prefetching to --loader-memory with one line that says so"
run train --data k --workers 32 --prefetch 8 --loader-memory 100K --img-size 32 --epochs 1 --out r6
expect_exit 0
expect_out 'batches prepared ahead.*32 workers x prefetch 8'
expect_summary r6/summary.json workers 32
expect_summary r6/summary.json prefetch 8

# ---- every alias, as a flag and as a key ----

# One line per spelling: the key of args.json (- for what is only noted), the alias, a value. The
# spellings of one option are tried in different runs, those of different options together.
spellings='data data k
model model convnet_s
img_size img_size 16
batch batch 4
workers workers 2
prefetch prefetch 3
epochs epochs 1
folds folds 1
lr lr 0.01
accumulate accumulate 2
patience patience 5
mixup mixup 0.1
cutmix cutmix 0.2
precision precision fp32
compile compile false
metric metric logloss
budget budget 3600
device device cpu
seed seed 3
name name given-name
subset_seed subset_seed 42
- no_wandb true
- wandb_project some-project
- pin_memory true
- persistent_workers true

data data_root k
model model_name convnet_s
img_size image_size 24
batch batch_size 5
workers num_workers 3
prefetch prefetch_factor 2
epochs max_epochs 2
folds cv_folds 2
lr learning_rate 0.02
accumulate accumulation_steps 3
mixup mixup_alpha 0.3
cutmix cutmix_alpha 0.4
precision amp false
compile compile_model false
budget time_limit 1800
name wandb_name given-name

data data k
folds n_folds 3
img_size img_size 16
epochs epochs 1
name name given-name'

# check_spellings BLOCK: the run says what the block of spellings asked for.
check_spellings() {
    local key alias value
    while read -r key alias value; do
        case $key in
        -) grep -Eq "without effect.*${alias//_/.}" "$OUT" || fail "no line notes $alias" ;;
        data) expect_arg runs/given-name data "$WORK/k" ;;
        precision) ;;
        budget) expect_summary runs/given-name/summary.json budget_s "$value" ;;
        *) expect_arg runs/given-name "$key" "$value" ;;
        esac
    done <<<"$1"
    rm -rf runs/given-name
}

it "accepts every alias as a flag, with dashes or underscores"
dashes=- # of each block in turn; in soak each block has both
while IFS= read -r -d '#' block; do
    dashes=$([ "$dashes" = _ ] && echo - || echo _)
    ! is_full || dashes='_ -'
    for dash in $dashes; do
        flags=()
        while read -r key alias value; do
            flags+=("--${alias//_/$dash}")
            [ "$value" = true ] || flags+=("$value")
        done <<<"$block"
        run train "${flags[@]}"
        expect_exit 0
        check_spellings "$block"
    done
done <<<"${spellings//$'\n\n'/#}#"

it "takes a time as people write it"
for case in 2h30m=9000 00:11:00=660; do # others are in test_base_str.c
    run train --data k --budget "${case%=*}" --img-size 16 --epochs 1 --out r-time
    expect_exit 0
    expect_summary r-time/summary.json budget_s "${case#*=}"
done

it "accepts every alias as a key of the file"
if needs_yaml; then
    while IFS= read -r -d '#' block; do
        while read -r key alias value; do
            echo "$alias: $value"
        done <<<"$block" >keys.yaml
        run train --config keys.yaml
        expect_exit 0
        check_spellings "$block"
    done <<<"${spellings//$'\n\n'/#}#"
    printf 'out: given-out\ndata: k\nepochs: 1\nimg-size: 16\n' >out.yaml
    run train --config out.yaml
    expect_exit 0
    expect_file given-out/submission.csv
fi

it "takes precision and amp as people write them"
for value in 16-mixed bf16 fp32-strict true; do # others are in test_options.c
    run train --data k --out r-p --precision "$value" --img-size 16 --epochs 1
    expect_exit 0
    expect_summary r-p/summary.json precision "$([ "$value" = fp32-strict ] && echo "$value" || echo fp32)"
done

it "takes --deterministic in every verb that computes"
run train --data k --out r-d --deterministic --img-size 16 --epochs 1
expect_exit 0
expect_out 'deterministic true'
expect "args.json has it" grep -q '"deterministic": true' r-d/args.json
run predict --run r-d --deterministic --precision bf16 --out r-d.csv
expect_exit 0
expect_file r-d.csv
run lr --data k --out r-dl --deterministic --img-size 16 --steps 50
expect "lr takes it: $(cat "$ERR")" [ "$CODE" != 2 ]

# ---- who wins, and what is wrong ----

it "begins another run with the options of one"
if needs_yaml; then
    for file in args.yaml args.json; do
        run train --config "r-d/$file" --out "again-$file"
        expect_exit 0
        expect_same <(grep -v '"run_id"\|"out"' r-d/args.json) <(grep -v '"run_id"\|"out"' "again-$file/args.json")
    done
    expect_not "two runs have one name" grep -qF "$(grep '"run_id"' r-d/args.json)" again-args.json/args.json
fi

it "lets flags win over the file, wherever they stand"
if needs_yaml; then
    printf 'epochs: 1\nbatch_size: 4\nseed: 5\n' >low.yaml
    run train --data k --batch 6 --config low.yaml --epochs 2 --img-size 16 --out r-win
    expect_exit 0
    expect_arg r-win epochs 2
    expect_arg r-win batch 6
    expect_arg r-win seed 5
    expect_summary r-win/summary.json epochs_done 2
fi

it "names the nearest option when there is none of that name"
for case in '--epoch 3|--epochs' '--batchsize 3|--batch' '--num_wrokers 2|workers' \
    '--learning-rat 1|learning.rate|lr' '--imgsize 3|--img-size' '--prefetch_facter 2|prefetch' \
    '--wieght-decay 1|--weight-decay'; do
    # shellcheck disable=SC2086
    run train --data k ${case%%|*}
    expect_exit 2
    expect_err "did you mean.*(${case#*|})"
done
if [ "$yaml" = yes ]; then
    printf 'epochs: 1\nbatch_sise: 12\n' >typo.yaml
    run train --data k --config typo.yaml
    expect_exit 2
    expect_err 'typo.yaml, line 2.*batch_sise.*did you mean batch'
fi
run train --data k --zzzzqqqq 1
expect_exit 2
expect_err '--zzzzqqqq'
expect_no_file runs/train

it "names the range of a bad value"
for case in '--epochs 0|from 1 to' '--epochs 1.5|whole number' '--batch -4|from 1 to' '--batch many|auto or' \
    '--lr -1|from 0 to' '--lr nan|number' '--workers -1|from 0 to' '--prefetch 0|from 1 to' '--img-size 4|from 8 to' \
    '--folds 0|from 1 to' '--mixup -1|from 0 to' '--precision fp8|auto, fp16, bf16, fp32, fp32-strict' \
    '--metric accuracy|acc1, acc5, error, logloss, macro_f1' '--budget soon|90s' '--budget 0|from 1' \
    '--budget -5|from 1' '--compile=perhaps|true or false' '--seed -1|at least 0' '--val-fraction 2|from 0 to' \
    '--device tpu|cpu' '--loader-memory lots|512M' '--model resnet1800|resnet18'; do
    # shellcheck disable=SC2086
    run train --data k --out r-bad ${case%|*}
    [ "$CODE" = 2 ] || fail "${case%|*}: the exit code is $CODE"
    expect_err "${case#*|}"
    expect_empty "$OUT"
    expect_no_file r-bad
done
if [ "$yaml" = yes ]; then
    printf '\nlr: fast\n' >value.yaml
    run train --data k --config value.yaml
    expect_exit 2
    expect_err 'value.yaml, line 2: lr.*from 0 to'
fi

it "explains a file that it cannot use"
run train --data k --config nowhere.yaml
expect_exit 2
expect_err 'nowhere.yaml'
if [ "$yaml" = yes ]; then
    printf 'train:\n  epochs: 3\n' >deep.yaml
    printf 'epochs: [1, 2]\n' >list.yaml
    printf 'epochs: "3\n' >broken.yaml
    printf -- '- epochs\n' >row.yaml
    for file in deep list broken row; do
        run train --data k --config "$file.yaml"
        expect_exit 2
        expect_err "$file.yaml, line"
    done
    : >empty.yaml
    printf '# nothing\n---\n' >comment.yaml
    for file in empty comment; do
        run train --data k --config "$file.yaml" --img-size 16 --epochs 1
        expect_exit 0
    done
    head -c 2000 /dev/urandom >noise.yaml
    run train --data k --config noise.yaml
    expect_exit 2
    mkdir folder.yaml
    run train --data k --config folder.yaml
    expect_exit 2
fi

it "asks for a value that is missing, and refuses stray words"
for words in '--epochs' '--data' 'k extra' '-e 3' '--no-epochs' '--no-compile=1'; do
    # shellcheck disable=SC2086
    run train $words
    expect_exit 2
    expect_err '^stoker: '
done

it "has help, quiet and json for every verb, and for the command itself"
for verb in sample train predict; do
    run "$verb" --help
    expect_exit 0
    expect_out "usage: stoker $verb"
    for flag in quiet json config; do
        expect_out "\\-\\-(\\[no-\\])?$flag"
    done
    expect_empty "$ERR"
    run "$verb" --nonsense --help
    expect_exit 2
done
run --help
expect_exit 0
for verb in sample train predict; do
    expect_out "^  $verb "
done
expect_out 'Exit codes'
run --version
expect_exit 0
expect_out '^stoker [0-9]'
run
expect_exit 2
run trian
expect_exit 2
expect_err 'did you mean train'
run help trian
expect_exit 2
expect_err 'trian'
run help train
expect_exit 0
expect_out '--budget'

it "prints completions that the shell understands"
run completion bash
expect_exit 0
cp "$OUT" completion.bash
expect "bash reads it" bash -n completion.bash
words=$(bash -c '. ./completion.bash; COMP_WORDS=(stoker train --ep); COMP_CWORD=2; _stoker; echo "${COMPREPLY[*]}"')
expect "--ep becomes --epochs" [ "$words" = --epochs ]
words=$(bash -c '. ./completion.bash; COMP_WORDS=(stoker tr); COMP_CWORD=1; _stoker; echo "${COMPREPLY[*]}"')
expect "tr becomes train" [ "$words" = train ]
run completion ksh
expect_exit 2
finish
