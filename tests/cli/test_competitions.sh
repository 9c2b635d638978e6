# The makers and graders of tests/competitions on a few tiny folders. tests/soak/test_competitions.sh trains on all.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
here=$ROOT/tests/competitions
# shellcheck source=tests/competitions/python.sh
. "$here/python.sh"

it "finds what the makers need"
if ! competitions_python numpy Pillow; then
    skip "$CANNOT"
    finish
fi

it "lists the 26 competitions and at least ten variants"
run_any "$PYTHON" "$here/make.py" --list
expect_exit 0
expect "there are not 26 competitions" [ "$(grep -vc '^x-' "$OUT")" = 26 ]
expect "there are fewer than ten variants" [ "$(grep -c '^x-' "$OUT")" -ge 10 ]

it "grades true, trivial and broken submissions as the competitions do"
run_any "$PYTHON" "$here/self_test.py" inaturalist-2019-fgvc6 \
    humpback-whale-identification x-street-signs
expect_exit 0
expect_out '^[0-9]+ right, 0 wrong$'

it "refuses what it cannot do"
run_any "$PYTHON" "$here/make.py" no-such-competition c
expect_exit 2
expect_err 'no competition'
run_any "$PYTHON" "$here/check.py" x-street-signs absent absent.csv
expect_exit 2
expect_out '^x-street-signs invalid: the file cannot be read'
finish
