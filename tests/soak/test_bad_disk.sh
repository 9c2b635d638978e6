# SIGKILL at every call that writes a checkpoint and in the middle of each write, or a disk that is full from
# that call on: no file is half-written, and a resumed run ends as if nothing had happened. States are
# saved after epochs, in a second round also within epochs. The second round and the full disk try only
# every tenth of the writes of tensors. SOAK_WRITES=N tries every Nth write (1). A third round is about the file
# of fingerprints, which is written at any moment; what is counted there is its first writing.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/trials.sh
. "$ROOT/tests/cli/trials.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 12 --quiet || exit 1
wide_sample k

it "a run can be made to die"
can_fake bad_disk || finish

tried=0 kept=0
for EVERY in 300 0; do
    it "states every $EVERY s: a run without a fault"
    calls_of "$SAVED"
    step=${SOAK_WRITES:-1}
    [ "$EVERY" = 300 ] || step=$((10 * step))
    while read -r call what path; do
        it "states every $EVERY s, call $call: $what ${path##*/}"
        tried=$((tried + 1))
        killed_at "$call" kill
        [ "$what" != write ] || killed_at "$call" tear
        [ "$what" != write ] || [ $((call % 10)) = 0 ] || continue
        bad_disk "$SAVED" "$call" full r
        [ "$CODE" = 5 ] || [ "$CODE" = 0 ] || fail "full: the exit code is $CODE"
        if [ "$CODE" = 0 ]; then # nothing that needs room came after it
            kept=$((kept + 1))
        else
            expect_err 'No space left'
        fi
        expect_sound r k/sample_submission.csv "$LABELS"
        [ ! -e r/state/train.safetensors ] || [ "$(json r/summary.json status)" = complete ] || goes_on r
    done < <(awk -v step="$step" '$1 % step == 0 || $2 != "write"' calls.all)
done
SAVED=/state/.pictures:/state/pictures EVERY=300
it "fingerprints: a run without a fault"
calls_of "$SAVED"
while read -r call what path; do
    it "fingerprints, call $call: $what"
    tried=$((tried + 1))
    killed_at "$call" kill
    [ "$what" != write ] || killed_at "$call" tear
done < <(awk '{ print } $2 == "rename" { exit }' calls.all)
echo "| $tried calls, $kept of them after the last that needs room"
finish
