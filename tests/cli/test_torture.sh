# A sample of tests/soak/test_torture.sh: one call of a training, a prediction, a staging and a supervised run
# fails, and the files that are left are complete. torture.sh says exactly what must hold.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/torture.sh
. "$ROOT/tests/cli/torture.sh"

it "something can be tortured"
torture_prepare || finish
strike predict own 1
expect "the first request for memory fails" [ -n "$STRUCK" ]
expect_exit 4
strike predict own 1000000
expect "there are fewer requests than that" [ -z "$STRUCK" ]
expect_exit 0
expect "its blocks are counted" [ "$CALLS" -gt 100 ]

# sample WHAT KIND[:on] N...: strikes these calls, and with `on` all later ones, each given in thousandths
# of all that there are.
counted='' # whose calls are in COUNTS
sample() {
    local part kind=${2%:on} on=''
    [ "$kind" = "$2" ] || on=on
    it "$1: $kind${on:+ and on}"
    if [ "$1" != "$counted" ]; then
        strike "$1" all 0
        counted=$1
    fi
    calls=${COUNTS[$kind]:-0}
    for part in "${@:3}"; do
        strike "$1" "$kind" $((1 + (calls - 1) * part / 1000)) $on
        [ -n "$STRUCK" ] || [ "$calls" = 0 ] || [ "$part" -gt 900 ] || fail "$WHAT: it was not struck"
    done
}

sample train own 30 250 610 970
sample train own:on 300 950
sample train libraries 100 500
sample train open 110 990
sample train write 20 500 985
sample train fsync 100 940
sample train rename 200 900
sample train read 50 970
sample train thread 0 500 900
sample predict own 90 300 600 900
sample predict open 330 900
sample predict write 0
sample predict fsync 0 1000
sample predict rename 0
sample predict read 10 15 300 700
sample predict thread 0 300 600 1000
sample stage own 100 500 950
sample stage libraries 5 15 20 500
sample stage open 200 900
sample stage write 0 400 900
sample stage fsync 200 700
sample stage rename 0 500 1000
sample stage read 300
sample stage thread 0 1000
sample run own 45 50 100 400 790 800 830 870 985
sample run own:on 350 640 850
sample run write 0 500 900
sample run rename 500
sample run read 500
sample run thread 0 500
sample run pipe 0 500
finish
