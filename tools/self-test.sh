# What the self-tests of tools/check-*.sh share. A check sources this file, makes small trees with and
# without faults in an empty folder, and says what it expects to find in each.
# shellcheck shell=bash disable=SC2034  # the checks return self_test_bad

self_test_bad=0

# enter_scratch: changes to an empty folder, which is removed when the script ends.
enter_scratch() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/stoker-self-test-XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    cd "$scratch" || exit
}

# expect SENTENCE|'' COMMAND...: the command prints this sentence among others, or nothing at all.
expect() {
    local sentence=$1 found
    shift
    found=$("$@" 2>&1 || true)
    if [ -z "$sentence" ] && [ -n "$found" ]; then
        echo "self-test: a good tree was refused: $found"
        self_test_bad=1
    elif [ -n "$sentence" ] && ! grep -Fq -- "$sentence" <<<"$found"; then
        echo "self-test: expected '$sentence', got '$found'"
        self_test_bad=1
    fi
}

# with_fault FILE TEXT SENTENCE: appends the text to the file, which may be new, expects that check_tree
# prints the sentence, and puts everything back.
with_fault() {
    mkdir -p "$(dirname "$1")"
    [ ! -e "$1" ] || cp "$1" saved
    printf '%s\n' "$2" >>"$1"
    expect "$3" check_tree
    rm "$1"
    if [ -e saved ]; then
        mv saved "$1"
    else
        rmdir -p --ignore-fail-on-non-empty "$(dirname "$1")"
    fi
}

# expect_objects SENTENCE|'' COMMAND...: compiles src/*.c to objects/*.c.o, then as expect.
expect_objects() {
    local file
    mkdir -p objects
    for file in src/*.c; do
        "${CC:-cc}" -fPIC -O1 -c "$file" -o "objects/$(basename "$file").o"
    done
    expect "$@"
}

# check_or_self_test [--self-test | --root DIR]: the whole of a script that has self_test and check_tree.
# Without arguments it checks the tree that the script is in.
check_or_self_test() {
    case ${1:-} in
    --self-test) self_test ;;
    --root) cd "$2" && check_tree ;;
    '') cd "$(dirname "$0")/.." && check_tree ;;
    *)
        echo "usage: $0 [--self-test | --root DIR]" >&2
        exit 2
        ;;
    esac
}
