# `stoker predict`: writes the submission again, predicts other pictures, refuses runs without a model.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2012,SC2016  # ls of our own names; scripts in quotes
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 8 --quiet || exit 1
labels=$(tail -n +2 k/train.csv | cut -d , -f 2 | sort -u | tr '\n' ' ')
{
    echo "id,$(echo "$labels" | tr ' ' '\n' | grep . | paste -s -d ,)"
    tail -n +2 k/sample_submission.csv | sed 's/,.*/,1,0,0/'
} >wide && mv wide k/sample_submission.csv
"$STOKER" train --data k --out r --img-size 16 --epochs 3 --quiet || exit 1
cp r/submission.csv first

it "writes the submission again, byte for byte"
rm r/submission.csv
run predict --run r
expect_exit 0
expect_out 'r/submission.csv \(6 rows, from 1 model\)'
expect_same r/submission.csv first
run predict r
expect_exit 0
expect_same r/submission.csv first
expect_tidy r

it "works from any folder, since the run remembers where its data are"
mkdir elsewhere && cd elsewhere || exit 1
run predict --run ../r
expect_exit 0
cd .. || exit 1
expect_same r/submission.csv first

it "averages the folds again"
"$STOKER" train --data k --out r-folds --folds 2 --img-size 16 --epochs 2 --quiet || exit 1
cp r-folds/submission.csv first-folds
run predict --run r-folds
expect_exit 0
expect_out 'from 2 models'
expect_same r-folds/submission.csv first-folds

it "predicts with the averages of the best epoch, which is not the last one"
"$STOKER" train --data k --out averaged --folds 3 --img-size 16 --epochs 6 --ema 0.5 --schedule constant --lr 0.3 \
    --quiet || exit 1
cp averaged/submission.csv first-averaged
run predict --run averaged
expect_exit 0
expect_same averaged/submission.csv first-averaged

it "writes to another file, and leaves the run alone"
run predict --run r --out there.csv
expect_exit 0
expect_same there.csv first
expect_same r/submission.csv first
run predict --run r --out no/such/folder.csv
expect_exit 5
expect_err 'no/such/folder.csv'

it "says before anything is read where it cannot write"
mv k moved
run predict --run r --out no/such/folder.csv
expect_exit 5
expect_err '^stoker: --out no/such/folder.csv: there is no folder no/such/; make it first$'
if [ "$(id -u)" != 0 ]; then
    mkdir closed && chmod 555 closed
    run predict --run r --out closed/there.csv
    expect_exit 5
    expect_err '^stoker: --out closed/there.csv: cannot write to closed/: Permission denied$'
    cp -r r closed-run && chmod 555 closed-run
    run predict --run closed-run
    expect_exit 5
    expect_err '^stoker: cannot write closed-run/submission.csv: .*Permission denied$'
    chmod 755 closed-run && rm -r closed closed-run
fi
mv moved k
expect_no_file no

it "predicts another folder of pictures"
mkdir other && n=0
for file in k/train/*.jpg; do
    n=$((n + 1))
    [ "$n" -gt 5 ] || cp "$file" "other/picture$n.jpg"
done
run predict --run r --data other
expect_exit 0
expect_file r/predictions.csv
expect "a row for each" [ "$(wc -l <r/predictions.csv)" = 6 ]
expect "in the order of the names" [ "$(tail -n +2 r/predictions.csv | cut -d , -f 1 | tr '\n' ' ')" = \
    'picture1 picture2 picture3 picture4 picture5 ' ]
expect_sums r/predictions.csv
expect_same r/submission.csv first
run predict --run r --data other --out other.csv
expect_exit 0
expect_same other.csv r/predictions.csv
run predict --run r --data k --out same.csv
expect_exit 0
expect_same same.csv first

it "speaks JSON, and nothing when quiet"
run predict --run r --json
expect_exit 0
expect_empty "$ERR"
expect_jsonl "$OUT"
expect_out '"event": "submission"'
run predict --run r --quiet
expect_exit 0
expect_empty "$OUT"
expect_empty "$ERR"

it "averages the models of several runs, of any size and network"
"$STOKER" train --data k --out r-other --model cifar_resnet20 --img-size 32 --epochs 1 --quiet || exit 1
run predict --run r-other --out other-run.csv
expect_exit 0
cp r-other/submission.csv first-other
run predict --run r --run r-folds --run r-other --out three.csv
expect_exit 0
expect_out 'three.csv \(6 rows, from 4 models\)'
expect_submission three.csv k/sample_submission.csv
expect "each model has the same weight" awk -F , '
    function off(a, b) { return a > b ? a - b : b - a }
    FNR == 1 { file++; next }
    file < 4 { for (i = 2; i <= 4; i++) { sum[FNR, i] += $i * (file == 2 ? 2 : 1) }; next }
    { for (i = 2; i <= 4; i++) { if (off($i, sum[FNR, i] / 4) > 1e-6) { exit 1 } } }
    ' first first-folds other-run.csv three.csv
run predict --run=r --run r-folds
expect_exit 0
expect_out '^submission: submission.csv \(6 rows, from 3 models\)'
expect_same r/submission.csv first
expect_same r-folds/submission.csv first-folds
run predict --run r --run ./r/ --out once.csv
expect_exit 0
expect_out 'warning: ./r/ is the same run as r: its models count once'
expect_out 'once.csv \(6 rows, from 1 model\)'
expect_same once.csv first
printf 'run: [r, r-folds, r-other]\nout: listed.csv\n' >runs.yaml
run predict --config runs.yaml
if grep -q 'no YAML' "$ERR"; then
    skip "this build has no YAML"
else
    expect_exit 0
    expect_same listed.csv three.csv
    run predict --config runs.yaml --run r --out only.csv
    expect_exit 0
    expect_same only.csv first
fi

it "weighs models by their validation accuracy when asked to"
run predict --run r --run r-other --vote equal --out equal.csv
expect_exit 0
run predict --run r --run r-other --vote score --out score.csv
expect_exit 0
expect_submission score.csv k/sample_submission.csv
acc_r=$(json r/summary.json best_acc1)
acc_other=$(json r-other/summary.json best_acc1)
expect "the weights are what the scores say" awk -F , -v a="$acc_r" -v b="$acc_other" '
    function off(x, y) { return x > y ? x - y : y - x }
    function above(x) { return x > 100 / 3 ? x - 100 / 3 : 0 }
    BEGIN {
        wa = above(a); wb = above(b); most = wa > wb ? wa : wb
        if (most == 0) { wa = wb = 1 }
        wa = wa < most / 100 ? most / 100 : wa
        wb = wb < most / 100 ? most / 100 : wb
    }
    FNR == 1 { file++; next }
    file < 3 { for (i = 2; i <= 4; i++) { sum[FNR, i] += $i * (file == 1 ? wa : wb) }; next }
    { for (i = 2; i <= 4; i++) { if (off($i, sum[FNR, i] / (wa + wb)) > 1e-4) { exit 1 } } }
    ' first first-other score.csv
run predict --run r --vote score --out alone.csv
expect_exit 0
expect_same alone.csv first
run predict --run r --vote loudest
expect_exit 2
expect_err 'equal, score'

it "looks at several views of each picture, always the same ones"
for views in 1 2 5 8; do
    run predict --run r --tta "$views" --out "views$views.csv"
    expect_exit 0
    expect_submission "views$views.csv" k/sample_submission.csv
    run predict --run r --tta "$views" --out again.csv
    expect_same again.csv "views$views.csv"
    [ "$views" = 1 ] || expect_not "they say something else" cmp "views$views.csv" views1.csv
done
for views in 0 9 many; do
    run predict --run r --tta "$views"
    expect_exit 2
    expect_err "--tta.*'$views'.*auto or .*from 1 to 8"
done

it "adds the mirror image by itself where it is cheap, as --tta 2 does"
expect_file r/args.json '"tta": 2'
expect_same views2.csv first
run predict --run r --tta auto --out again.csv
expect_same again.csv first
run train --data k --out r-two --img-size 16 --epochs 3 --tta 2
expect_exit 0
expect_same r-two/submission.csv first
# A view of 6 pictures for each of two models is no twentieth of two short epochs.
expect_file r-folds/args.json '"tta": 1'
run predict --run r-folds --tta 1 --out again.csv
expect_same again.csv first-folds

it "sees one view of pictures that training does not mirror"
run train --data k --out r-still --img-size 16 --epochs 3 --no-flip
expect_exit 0
expect_no_out 'views?( |$)'
expect_file r-still/args.json '"tta": 1'
run predict --run r-still --tta 1 --out again.csv
expect_same again.csv r-still/submission.csv
run predict --run r-still --tta 2 --out again.csv
expect_not "the mirror image says something else" cmp again.csv r-still/submission.csv

it "predicts in as many views as the run did"
for views in 1 5; do
    run train --data k --out "r-views$views" --img-size 16 --epochs 3 --tta "$views"
    expect_exit 0
    cp "r-views$views/submission.csv" trained
    run predict --run "r-views$views"
    expect_exit 0
    expect_same "r-views$views/submission.csv" trained
    expect_same trained "views$views.csv"
done
run predict --run r-views1 --run r-views5 --out both.csv
expect_exit 0
expect "each run with its own" awk -F , '
    function off(a, b) { return a > b ? a - b : b - a }
    FNR == 1 { file++; next }
    file < 3 { for (i = 2; i <= 4; i++) { sum[FNR, i] += $i }; next }
    { for (i = 2; i <= 4; i++) { if (off($i, sum[FNR, i] / 2) > 1e-6) { exit 1 } } }
    ' views1.csv views5.csv both.csv
cp -r r r-old && sed -i '/"tta"/d' r-old/args.json # of a version that knew no views
run predict --run r-old --out again.csv
expect_exit 0
expect_same again.csv views1.csv

it "uses the folds that there are"
cp -r r-folds some && rm -r some/weights/fold0
run predict --run some
expect_exit 0
expect_out 'some has the models of 1 of 2 folds'
expect_out 'from 1 of 2 models'
expect_submission some/submission.csv k/sample_submission.csv
run predict --run some --json
expect_out '"status": "partial", "rows": 6, "models": 1, "models_wanted": 2'
rm -r some/weights/fold1
run predict --run r --run some --out with-none.csv
expect_exit 0
expect_out 'some has no model that can be used'
expect_out 'from 1 of 3 models'
expect_same with-none.csv first
run predict --run some
expect_exit 0
expect_out 'no trained model.*priors'

it "goes on without a model that is damaged, and says so"
for kind in short noise; do
    rm -rf damaged && cp -r r-folds damaged
    file=damaged/weights/fold1/best.safetensors
    case $kind in
    short) head -c 2000 r-folds/weights/fold1/best.safetensors >"$file" ;;
    noise) tail -c +9 r-folds/weights/fold1/best.safetensors | sed '1s/"F32"/"F99"/' >tail9 &&
        { head -c 8 r-folds/weights/fold1/best.safetensors && cat tail9; } >"$file" ;;
    esac
    run predict --run damaged
    expect_exit 0
    expect_out 'left out: .*fold1/best.safetensors'
    expect_out 'from 1 of 2 models'
    rm -rf whole && cp -r r-folds whole && rm -r whole/weights/fold1
    "$STOKER" predict --run whole --quiet
    expect_same damaged/submission.csv whole/submission.csv
    cp "$file" damaged/weights/fold0/best.safetensors
    run predict --run damaged
    [ "$CODE" = 3 ] || [ "$CODE" = 5 ] || fail "$kind: the exit code is $CODE"
    expect_same damaged/submission.csv whole/submission.csv
done

it "refuses runs that know other classes, naming both"
"$STOKER" sample k4 --classes 4 --per-class 4 --quiet || exit 1
"$STOKER" train --data k4 --out r4 --img-size 16 --epochs 1 --quiet || exit 1
run predict --run r --run r4 --out never.csv
expect_exit 3
expect_err '^.*r and r4 do not know the same classes \(3 and 4; only r4 has '
run predict --run r4 --run r --out never.csv
expect_exit 3
expect_err 'r4 and r do not know the same classes \(4 and 3; only r4 has '
expect_no_file never.csv

it "needs a run folder"
run predict
expect_exit 2
expect_err '--run'
run predict --run nowhere
expect_exit 2
expect_err 'nowhere'
run predict --run k
expect_exit 2
expect_err 'k is not a run folder'
expect_no_file k/submission.csv
cp -r r torn && head -c 40 r/args.json >torn/args.json
run predict --run torn
expect_exit 2
expect_err '--run torn: args.json is damaged: not valid JSON'

it "predicts from class priors when a run has no weights, and says so"
cp -r r bare && rm -r bare/weights bare/predictions.csv
run predict --run bare
expect_exit 0
expect_out 'no trained model.*priors'
expect_submission bare/submission.csv k/sample_submission.csv
run predict --run bare --data other
expect_exit 3
expect_err 'no trained model'
expect_no_file bare/predictions.csv

it "refuses corrupt weights and leaves the old submission"
size=$(wc -c <r/weights/best.safetensors)
for kind in short noise empty header kind; do
    rm -rf spoilt && cp -r r spoilt
    file=spoilt/weights/best.safetensors
    case $kind in
    short) head -c $((size / 2)) r/weights/best.safetensors >"$file" ;;
    noise) head -c 5000 /dev/urandom >"$file" ;;
    empty) : >"$file" ;;
    header) printf '\377\377\377\377\377\377\377\377{}' >"$file" ;;
    kind) tail -c +9 r/weights/best.safetensors | sed '1s/"F32"/"F99"/' >tail9 &&
        { head -c 8 r/weights/best.safetensors && cat tail9; } >"$file" ;;
    esac
    run predict --run spoilt
    [ "$CODE" = 3 ] || [ "$CODE" = 5 ] || fail "$kind: the exit code is $CODE"
    expect_err 'weights/best.safetensors'
    expect_same spoilt/submission.csv first
    expect_tidy spoilt
done

it "says that the data are gone, and takes them from elsewhere"
mv k moved
run predict --run r
expect_exit 3
expect_err "$WORK/k"
expect_same r/submission.csv first
run predict --run r --data moved --out moved.csv
expect_exit 0
expect_same moved.csv first
mv moved k

it "needs only the test pictures once it is trained"
cp -r k/train spare && rm -r k/train
run predict --run r
expect_exit 0
expect_same r/submission.csv first
mv spare k/train

it "gives a test picture that cannot be read its row all the same"
id=$(sed -n 3p k/sample_submission.csv | cut -d , -f 1)
cp "k/test/$id.jpg" whole.jpg && head -c 100 whole.jpg >"k/test/$id.jpg"
run predict --run r --out bad.csv
expect_exit 0
expect_out "bad image.*$id"
expect_submission bad.csv k/sample_submission.csv
expect "the other rows are as before" [ "$(grep -v "^$id" bad.csv)" = "$(grep -v "^$id" first)" ]
run train --data k --out r-bad --img-size 16 --epochs 1
expect_exit 0
expect_file r-bad/bad_images.csv "$id.jpg,test"
expect_summary r-bad/summary.json bad_images 1
expect_submission r-bad/submission.csv k/sample_submission.csv
rm "k/test/$id.jpg"
run predict --run r --out missing.csv
expect_exit 0
expect_submission missing.csv k/sample_submission.csv
cp whole.jpg "k/test/$id.jpg"

it "says that no test picture can be read, and that all rows are class priors"
cp -r k blind
for file in blind/test/*.jpg; do
    echo "no picture" >"$file"
done
run predict --run r --data blind --out blind.csv --json
expect_exit 0
expect_out '"warning", "text": "none of the 6 test images could be read: class priors are written"'
expect_out '"status": "prior", "rows": 6, "models": 0'
expect_submission blind.csv k/sample_submission.csv
expect "all rows are the same" [ "$(tail -n +2 blind.csv | cut -d , -f 2- | sort -u | wc -l)" = 1 ]
run predict --run r --run r-other --data blind --out blind.csv --budget 1m
expect_exit 0
expect_out 'none of the 6 test images could be read'
expect_out 'blind.csv \(6 rows, class priors\)'
run train --data blind --out r-blind --folds 2 --img-size 16 --epochs 1
expect_exit 0
expect "it is told once" [ "$(grep -c 'warning: none of the 6 test images could be read: the submission has the class priors' "$OUT")" = 1 ]
expect_summary r-blind/summary.json status prior
expect_summary r-blind/summary.json stop_reason epochs
expect_summary r-blind/summary.json folds_done 2
expect_submission r-blind/submission.csv k/sample_submission.csv
run train --resume r-blind
expect_exit 0
expect_out 'none of the 6 test images could be read'
expect_summary r-blind/summary.json status prior
cp k/test/*.jpg blind/test
run predict --run r-blind --json
expect_exit 0
expect_out '"status": "complete", "rows": 6, "models": 2'

mkdir many && cp -r k/train many/0
double many 9 # some 12000 pictures, which take a while with eight views of each

it "stops soon at Ctrl-C and leaves the old submission"
start predict --run r --data many --tta 8 --out many.csv
wait_for 30 listens || fail "it does not catch the signal"
sleep 0.3
expect "it is still at work" kill -0 "$PID"
kill -INT "$PID"
begun=$SECONDS
ended 60
expect_exit 130
expect_err 'stopped'
expect_took 4 $((SECONDS - begun))
expect_no_file many.csv
expect_tidy .
finish
