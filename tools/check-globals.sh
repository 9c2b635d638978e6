#!/usr/bin/env bash
# Checks the table of global state in ARCHITECTURE.md against the object files of library and command. A
# row of the table names a file and its variables. The variables of an object file that can change are
# those in .data, .bss, .tdata and .tbss.
#
# `tools/check-globals.sh BUILD` reads the objects in the build folder, which must be up to date and
# built by gcc without a sanitizer. It prints each violation as `file:line: sentence` and fails if there
# is one. `--self-test` tries the check on small programs with and without faults.
# shellcheck disable=SC2016  # backticks and dollars of others
set -eu
# shellcheck source=tools/self-test.sh
. "$(dirname "$0")/self-test.sh"

# variables FOLDER ROOT: prints the variables of the objects below FOLDER that can change, as FILE NAME.
# FOLDER mirrors ROOT, the folder of the sources; objects without a source are left over from an earlier
# state of the tree and do not count. The compiler appends .NUMBER to a static variable of a function,
# and the names of its own variables begin with a dot.
variables() {
    (cd "$1" && find . -name '*.c.o' -print0 | xargs -0 nm -A -f sysv) | awk -F '|' -v root="$2" '
        $4 ~ /OBJECT|TLS/ && $7 ~ /^\.t?(data|bss)|COM/ && $7 !~ /\.rel\.ro/ {
            file = name = $1
            sub(/^\.\//, "", file)
            sub(/\.o:.*/, "", file)
            sub(/.*\.o:/, "", name)
            sub(/(\.[0-9]+)? *$/, "", name)
            if (name !~ /^(__|\.)/) print root "/" file, name
        }' | while read -r file name; do
        [ ! -e "$file" ] || echo "$file $name"
    done
}

# rows: prints the rows of the table, as LINE FILE NAME...
rows() {
    awk -F '|' '/^## / { on = /^## Global state/ } on && /^\| `/ {
        gsub(/[`,]/, "", $2)
        gsub(/[`,]/, "", $3)
        line = FNR " " $2 " " $3
        gsub(/ +/, " ", line)
        print line
    }' ARCHITECTURE.md
}

# check_tree OBJECTS SOURCES...: compares the table with the objects. The arguments are pairs: a folder of
# objects and the folder of their sources.
check_tree() {
    local found table actual line file names name
    table=$(rows)
    actual=$(while [ $# -gt 0 ]; do
        variables "$1" "$2"
        shift 2
    done | LC_ALL=C sort -u)
    found=$(
        while read -r file name; do
            [ -z "$file" ] || grep -qE "^[0-9]+ $file (.* )?$name( |\$)" <<<"$table" ||
                echo "$file:1: the table of global state in ARCHITECTURE.md lacks the variable $name"
        done <<<"$actual"
        while read -r line file names; do
            for name in $names; do
                grep -qxF "$file $name" <<<"$actual" ||
                    echo "ARCHITECTURE.md:$line: $file has no variable $name that can change"
            done
        done <<<"$table"
    )
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        return 1
    fi
}

self_test() {
    enter_scratch
    mkdir src
    printf '## Other\n\n| `src/z.c` | `no` | |\n\n## Global state\n\n| where | variables | what |\n| --- | --- | --- |\n' >ARCHITECTURE.md
    printf '| `src/a.c` | `count`, `seen` | counts |\n| `src/b.c` | `mine` | |\n\n## More\n\n| `src/c.c` | `no` | |\n' >>ARCHITECTURE.md
    echo 'static int count; int a(void) { static int seen = 1; return count++ + seen++; }' >src/a.c
    echo '_Thread_local int mine; static const char *const names[] = {"a", "b"};
          const char *b(int i) { return names[i]; } const int fixed = 3;' >src/b.c
    expect_objects '' check_tree objects src
    echo 'int c(void) { static int more; return more++; }' >src/c.c
    expect_objects 'src/c.c:1: the table of global state in ARCHITECTURE.md lacks the variable more' check_tree objects src
    echo 'static const char *names[] = {"a"}; const char **c(void) { return names; }' >src/c.c
    expect_objects 'src/c.c:1: the table of global state in ARCHITECTURE.md lacks the variable names' check_tree objects src
    rm src/c.c
    expect_objects '' check_tree objects src
    echo 'static int count; int a(void) { return count++; }' >src/a.c
    expect_objects 'ARCHITECTURE.md:9: src/a.c has no variable seen that can change' check_tree objects src
    return "$self_test_bad"
}

case ${1:-} in
--self-test) self_test ;;
?*)
    cd "$(dirname "$0")/.."
    root=$1/CMakeFiles
    [ -d "$root/stoker_objects.dir/src" ] || { echo "$root: there are no objects; build first" >&2 && exit 2; }
    check_tree "$root/stoker_objects.dir/src" src "$root/stoker.dir/cli" cli
    ;;
*)
    echo "usage: tools/check-globals.sh BUILD | --self-test" >&2
    exit 2
    ;;
esac
