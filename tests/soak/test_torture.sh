# Torture of a short training, a prediction, a staging, a supervised run, a training from S3 and a staging from
# S3. For each kind of call (torture.sh lists them) the first call fails, then the second, and so on up to
# the last; then the same with all later calls failing, too. Each time the command must end by itself with
# the right exit code and a sentence, free all its memory, and leave complete files, new or old. A table at
# the end shows how many calls there were.
#
# SOAK_STRIKES is the largest number of calls of a kind that are made to fail (400); 0 means all. If there are
# more, every STRIDE-th call fails, from another first one each day (SOAK_OFFSET). The test measures no time.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/torture.sh
. "$ROOT/tests/cli/torture.sh"

MOST=${SOAK_STRIKES:-400}
OFFSET=${SOAK_OFFSET:-$(($(date +%s) / 86400))}

# all WHAT KIND [on]: every call, or as many of them as there is time for.
all() {
    local stride=1
    it "$1: $2${3:+ and on}"
    strike "$1" "$2" 0
    if [ "$MOST" -gt 0 ] && [ "$CALLS" -gt "$MOST" ]; then
        stride=$(((CALLS + MOST - 1) / MOST))
    fi
    torture "$1" "$2" $((1 + OFFSET % stride)) "$stride" "${3:-}"
}

it "something can be tortured"
torture_prepare || finish
for what in train predict stage run; do
    for kind in $KINDS; do
        all "$what" "$kind"
    done
    for kind in own write thread; do
        all "$what" "$kind" on
    done
done
if torture_far; then
    for what in far near; do
        for kind in $S3_KINDS; do
            all "$what" "$kind"
        done
    done
    for kind in own libraries thread pipe; do
        all far "$kind"
    done
fi
finish
