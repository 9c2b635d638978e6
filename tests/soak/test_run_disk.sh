#!/usr/bin/env bash
# `stoker run` with a run folder on a disk that is full, or does not answer, from the Nth call on, for N = 1,
# 2, 3 and so on, until a run makes fewer calls. Either Stoker starts nothing and its exit code is 5, or the
# expected file is delivered and the exit code is 0.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

PREDICTS='printf "id,label\n1,a\n" >submission.csv'

# tried CALL WHAT: one run; its calls are counted in the file calls.
tried() {
    rm -rf run submission.csv calls
    run_any env LD_PRELOAD="$FAKES/bad_disk.so" BAD_DISK_PATHS=run/ BAD_DISK_AT="$1" BAD_DISK_DOES="$2" \
        BAD_DISK_LOG="$WORK/calls" "$STOKER" run --out run --budget "${SOAK_BUDGET:-4s}" --predict "$PREDICTS" \
        --expect submission.csv -- sh -c 'echo started; sleep 0.5'
    if grep -q started "$OUT"; then
        [ "$CODE" = 0 ] || fail "$2 at call $1: the exit code is $CODE"
        expect_file submission.csv '^1,a$'
        [ ! -e run/summary.json ] || expect_file run/summary.json '^  "exit_code": 0,$'
        [ "$(wc -l <calls)" -lt "$1" ] || grep -Eq 'run folder|output has gaps' "$ERR" ||
            fail "$2 at call $1: nothing is said"
    else
        [ "$CODE" = 5 ] || fail "$2 at call $1: nothing was started, and the exit code is $CODE"
    fi
}

for what in full dead; do
    it "a disk that is $what from any call on"
    can_fake bad_disk || continue
    call=${SOAK_CALL:-1}
    tried "$call" "$what"
    while [ "$(wc -l <calls)" -ge "$call" ]; do
        call=$((call + 1))
        tried "$call" "$what"
    done
    echo "$what: $((call - 1)) calls"
done
finish
