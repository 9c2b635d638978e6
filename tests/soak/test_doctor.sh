# `stoker doctor` predicts what changes would bring. Each change is made and measured, and the prediction must
# be right within 20 %. The machine should do nothing else. If other programs disturb a measurement, it is
# repeated; if the machine stays busy, the case is skipped. SOAK_SECONDS is the time of one examination (60).
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # functions for expect
. "$(dirname "$0")/../cli/lib.sh"

seconds=${SOAK_SECONDS:-60}
RUN_TIMEOUT=$((seconds * 2 + 60))
: >"$LIB_FOLDER/table"
photos=${STOKER_DATA:-$ROOT/../shared/data}/photos
if [ ! -d "$photos" ]; then
    it "doctor" && skip "there are no photos; set STOKER_DATA" && finish
fi

# figure KEY [FILE]: the value of a key of a diagnosis, outside of its changes.
figure() {
    sed -E 's/"what_if": \[[^]]*\]//' "${2:-$OUT}" | sed -n -E 's/.*"'"$1"'": ("[^"]*"|[^,}]*).*/\1/p'
}

# predicted WORDS: images/s with this change, by the diagnosis in `base`.
predicted() {
    grep -Eo '\{"what": "'"$1"'[^}]*' base | sed -n -E 's/.*"images_per_second": ([^,}]*).*/\1/p'
}

# clocks: ticks that the machine was busy, that passed, and that what this shell has run took.
clocks() {
    awk 'NR == 1 { busy = $2 + $3 + $4 + $7 + $8 + $9; print busy, busy + $5 + $6; exit }' /proc/stat
    awk '{ sub(/.*\) /, ""); print $14 + $15 }' "/proc/$$/stat"
}

# is_quiet BEFORE: whether others used less than a twelfth of the machine since those clocks.
is_quiet() {
    local before=$1 after
    after=$(clocks)
    # shellcheck disable=SC2086  # words
    set -- $before $after
    OTHERS=$(awk -v b=$(($4 - $1)) -v t=$(($5 - $2)) -v own=$(($6 - $3)) 'BEGIN { print (b - own) / t }')
    awk -v o="$OTHERS" 'BEGIN { exit !(o < 0.08) }'
}

# examine ARGUMENTS...: until it had the cores for itself; false, the case skipped, where it never has.
examine() {
    local try before
    for try in 1 2 3; do
        before=$(clocks)
        run doctor "$@" --seconds "$seconds" --json
        expect_exit 0
        [ "$CODE" = 0 ] || return 1
        if is_quiet "$before"; then
            return 0
        fi
        echo "  try $try: others use $OTHERS of the machine"
    done
    skip "others use $OTHERS of the machine"
    return 1
}

# expect_near WHAT PREDICTED MEASURED
expect_near() {
    printf '  %-24s predicted %8.1f images/s, measured %8.1f: %+.0f %%\n' "$1" "$2" "$3" \
        "$(awk -v p="$2" -v m="$3" 'BEGIN { print 100 * (p / m - 1) }')" | tee -a "$LIB_FOLDER/table"
    expect "$1: $2 predicted, $3 measured" awk -v p="$2" -v m="$3" \
        'BEGIN { d = p / m; exit !(p > 0 && d > 0.8 && d < 1.2) }'
}

# trials NAME MODEL PX: one training, then each change of it. A larger batch and smaller pictures are
# options; staging makes another data set.
trials() {
    local name=$1 data=$photos side
    set -- --model "$2" --img-size "$3"
    it "$name: all together"
    examine --data "$data" --workers 1 --batch 16 "$@" || return
    cp "$OUT" base
    expect_near "$name, together" "$(figure predicted)" "$(figure together)"

    it "$name: two workers"
    if [ "$(nproc)" = 2 ]; then
        examine --data "$data" --workers 2 --batch 16 "$@" &&
            expect_near "$name, workers" "$(predicted '2 workers')" "$(figure together)"
    else
        skip "there are $(nproc) cores, not 2"
    fi

    it "$name: a larger batch"
    examine --data "$data" --workers 1 --batch 32 "$@" &&
        expect_near "$name, batch" "$(predicted 'batch 32')" "$(figure together)"

    it "$name: staged smaller"
    side=$(sed -n -E 's/.*--max-side ([0-9]+).*/\1/p' base)
    if [ -n "$side" ]; then
        rm -rf near
        run stage "$data" near --max-side "$side" --quiet
        expect_exit 0
        examine --data near --workers 1 --batch 16 "$@" &&
            expect_near "$name, staged" "$(predicted 'staged at')" "$(figure together)"
    else
        skip "staging would not make the pictures smaller"
    fi

    it "$name: smaller pictures"
    side=$(sed -n -E 's/.*--img-size ([0-9]+).*/\1/p' base)
    examine --data "$data" --workers 1 --batch 16 --model "$2" --img-size "$side" &&
        expect_near "$name, img-size" "$(predicted 'training at')" "$(figure together)"
}

# One that the step holds back, and one in which decoding takes as long.
trials step cifar_resnet20 96
trials both convnet_s 32
lib_close
cat "$LIB_FOLDER/table"
finish
