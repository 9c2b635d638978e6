# The promise of the first use: `stoker train --data FOLDER --budget 40s`, without another flag, delivers a valid
# submission that is clearly better than chance, for each competition of tests/competitions. SOAK_COMPETITIONS names the
# ones to try (all), BUDGET is the budget in seconds (40), SOAK_SEED the seed of the folders (1). Prints a table.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
RUN_TIMEOUT=300
here=$ROOT/tests/competitions
. "$here/python.sh"

it "has what makes the folders"
if ! competitions_python numpy Pillow py7zr; then
    skip "$CANNOT"
    finish
fi

rows=''
for name in ${SOAK_COMPETITIONS:-$("$PYTHON" "$here/make.py" --list)}; do
    it "$name"
    rm -rf d d.answers.csv r
    run_any nice -n 5 "$PYTHON" "$here/make.py" "$name" d --seed "${SOAK_SEED:-1}"
    expect_exit 0
    timed train --data d --budget "${BUDGET:-40}s" --out r --quiet
    expect_exit 0
    ended=$CODE
    said=$(grep -m 1 -E '^stoker: ' "$ERR" | cut -c 1-150)
    run_any "$PYTHON" "$here/check.py" "$name" d r/submission.csv
    expect_exit 0
    verdict=$(sed "s/^$name //" "$OUT" | cut -c 1-110)
    [ "$ended" = 0 ] || verdict="exit code $ended: $said"
    rows+=$(printf '| %-43s | %5.0f s | %s' "$name" "$TOOK" "$verdict")$'\n'
done
lib_close
printf '%s' "$rows"
finish
