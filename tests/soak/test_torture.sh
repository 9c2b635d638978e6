# Torture: for a short training, a prediction, a staging and a supervised run, and a training and a staging
# from S3, the first call of a kind fails, then the second, and so on until there is none left; then the same
# with all calls after it failing too. Each time the command ends by itself with a right exit code and a
# sentence, has freed all its memory, and what it leaves is whole: the new files or the old ones. torture.sh
# tells what the kinds are, and a table at the end how many calls there were.
#
# Where calls are many, one of STRIDE is struck, and another offset is taken each day (SOAK_OFFSET).
# SOAK_STRIKES: the most that are struck of each kind (400); 0: all of them.
# Measures no time.
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
