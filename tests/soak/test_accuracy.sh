# The promise of the demo: after a minute at least 90 % of the sample's test pictures are right. SOAK_ROUNDS is
# the number of seeds (3), SOAK_BUDGET the budget of each (60s).
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
RUN_TIMEOUT=300

for seed in $(seq "${SOAK_ROUNDS:-3}"); do
    it "seed $seed"
    rm -rf d r
    run sample d --layout kaggle --seed "$seed"
    expect_exit 0
    run train --data d --budget "${SOAK_BUDGET:-60s}" --seed "$seed" --out r
    expect_exit 0
    expect_submission r/submission.csv d/sample_submission.csv
    agreed=$(join -t , <(tail -n +2 d/solution.csv | sort) <(tail -n +2 r/submission.csv | sort) |
        awk -F , '$2 == $3 { n++ } END { printf "%.1f", 100 * n / NR }')
    echo "     $agreed % agree, validation said $(json r/summary.json best_acc1)"
    expect "$agreed % agree, fewer than 90" awk -v a="$agreed" 'BEGIN { exit !(a >= 90) }'
done

it "repeats itself on the whole sample"
for run_dir in one two; do
    run train --data d --epochs 3 --out "$run_dir" --seed 1
    expect_exit 0
done
expect_same one/submission.csv two/submission.csv
expect_same one/weights/best.safetensors two/weights/best.safetensors
finish
