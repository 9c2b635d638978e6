#!/usr/bin/env bash
# Checks that no two files of the library need each other, directly or through others, so that a reader
# can understand a file after the files that it calls. tools/check-direction.sh checks rooms, by their
# includes. This script checks files, by the symbols that their objects define and use.
#
# `tools/check-circles.sh BUILD` reads the objects of the library in the build folder, which must be up
# to date. It prints each circle as `file:1: sentence` with the calls that make it, and fails if there is
# one. `--self-test` tries the check on small programs with and without a circle.
set -eu
# shellcheck source=tools/self-test.sh
. "$(dirname "$0")/self-test.sh"

# check_objects ROOT: checks all objects below that folder, which mirrors src. Objects without a source are
# left over from an earlier state of the tree and do not count.
check_objects() {
    local found object objects
    objects=$(cd "$1" && find . -name '*.o' | LC_ALL=C sort)
    objects=$(while read -r object; do
        [ ! -e "src/${object%.o}" ] || printf '%s\n' "$object"
    done <<<"$objects")
    # shellcheck disable=SC2016  # the dollars are awk's
    found=$(cd "$1" && tr '\n' '\0' <<<"$objects" | xargs -0 nm -A -P | awk '
        {
            file = $1
            sub(/^\.\//, "", file)
            sub(/\.o:$/, "", file)
            if (!(file in number)) { number[file] = ++files; name[files] = file }
            if ($3 == "U") { users++; user[users] = number[file]; used[users] = $2 }
            else if ($3 ~ /^[TDRBCV]$/) home[$2] = number[file]
        }
        # Sets reached[b] for every file b that a needs, directly or through files that are left.
        function mark_from(a,    stack, top, at, i) {
            split("", reached)
            stack[top = 1] = a
            while (top > 0) {
                at = stack[top--]
                for (i = 1; i <= calls[at]; i++) {
                    if (!(callee[at, i] in reached) && left[callee[at, i]]) {
                        reached[callee[at, i]] = 1
                        stack[++top] = callee[at, i]
                    }
                }
            }
        }
        END {
            for (i = 1; i <= users; i++) {
                a = user[i]
                if (!(used[i] in home) || (b = home[used[i]]) == a) continue
                if (!((a, b) in why)) callee[a, ++calls[a]] = b
                why[a, b] = why[a, b] " " used[i]
            }
            # A file that needs no other, or only such files, is in no circle.
            for (a = 1; a <= files; a++) left[a] = 1
            do {
                changed = 0
                for (a = 1; a <= files; a++) {
                    if (!left[a]) continue
                    needs = 0
                    for (i = 1; i <= calls[a]; i++) needs += left[callee[a, i]]
                    if (!needs) { left[a] = 0; changed = 1 }
                }
            } while (changed)
            for (a = 1; a <= files; a++) {
                if (!left[a]) continue
                mark_from(a)
                for (b = 1; b <= files; b++) if (b in reached) reaches[a, b] = 1
            }
            for (a = 1; a <= files; a++) {
                if (!((a, a) in reaches) || done[a]) continue
                text = ""
                calls_text = ""
                for (b = a; b <= files; b++) {
                    if (!((a, b) in reaches) || !((b, a) in reaches)) continue
                    done[b] = 1
                    text = text " " name[b]
                    for (i = 1; i <= calls[b]; i++) {
                        c = callee[b, i]
                        if (((a, c) in reaches) && ((c, a) in reaches)) {
                            calls_text = calls_text "\n    " name[b] " needs " name[c] ":" why[b, c]
                        }
                    }
                }
                print "src/" name[a] ":1: these files need each other:" text calls_text
            }
        }')
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        return 1
    fi
}

self_test() {
    enter_scratch
    mkdir src
    echo 'int b(void); int c(void); int a(void) { return b() + c(); }' >src/a.c
    echo 'int c(void); static int own(void) { return c(); } int b(void) { return own(); }' >src/b.c
    echo 'int c(void) { return 1; } int table = 3;' >src/c.c
    echo 'int a(void); int d(void) { return a(); }' >src/d.c
    expect_objects '' check_objects objects
    echo 'int a(void); int c(void) { return a(); } int table = 3;' >src/c.c
    expect_objects 'src/a.c:1: these files need each other: a.c b.c c.c' check_objects objects
    expect_objects '    c.c needs a.c: a' check_objects objects
    echo 'extern int table; int b(void) { return table; }' >src/b.c
    echo 'int b(void); int c(void) { return b(); } int table = 3;' >src/c.c
    expect_objects '    b.c needs c.c: table' check_objects objects
    rm src/b.c
    expect_objects '' check_objects objects
    return "$self_test_bad"
}

case ${1:-} in
--self-test) self_test ;;
?*)
    cd "$(dirname "$0")/.."
    root=$1/CMakeFiles/stoker_objects.dir/src
    [ -d "$root" ] || { echo "$root: there are no objects; build first" >&2 && exit 2; }
    check_objects "$root"
    ;;
*)
    echo "usage: tools/check-circles.sh BUILD | --self-test" >&2
    exit 2
    ;;
esac
