#!/usr/bin/env bash
# Checks that a type name means one thing in the whole tree: no two files under src, cli and include
# define a struct, an enum, a union or a typedef of the same name. Private types count, too: somebody who
# finds `frame` in a debugger or in a search must not have to ask which `frame` it is.
#
# A name may be declared many times (`typedef struct NAME NAME;`). stk_device, stk_exec and stk_state, which
# engine/backend.h only declares, may be defined once in every backend.
#
# Prints each violation as `file:line: sentence` and fails if there is one. `--self-test` tries the check
# on small trees with and without faults; `--root DIR` checks another tree.
set -eu
# shellcheck source=tools/self-test.sh
. "$(dirname "$0")/self-test.sh"

per_backend='stk_device stk_exec stk_state'

check_tree() {
    local files found
    files=$(find include src cli -type f -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
    [ -n "$files" ] || return 0
    # shellcheck disable=SC2016  # the dollars are awk's
    found=$(tr '\n' '\0' <<<"$files" | xargs -0 awk -v per_backend="$per_backend" '
        BEGIN { count = split(per_backend, names, " "); for (i = 1; i <= count; i++) opaque[names[i]] = 1 }
        # The line without comments and string literals. in_comment: a comment goes on in the next line.
        function code_of(line,    at, end) {
            if (in_comment) {
                if (!(end = index(line, "*/"))) return ""
                line = substr(line, end + 2)
                in_comment = 0
            }
            gsub(/\\./, "", line)
            gsub(/"[^"]*"/, "", line)
            while (at = index(line, "/*")) {
                end = index(substr(line, at + 2), "*/")
                if (!end) { in_comment = 1; return substr(line, 1, at - 1) }
                line = substr(line, 1, at - 1) " " substr(line, at + 3 + end)
            }
            sub(/\/\/.*/, "", line)
            return line
        }
        function define(name, line,    key) {
            key = name
            if (name in opaque && match(FILENAME, /^src\/backend\/[a-z0-9_]+\//))
                key = substr(FILENAME, 1, RLENGTH) name
            if (!(key in where)) where[key] = FILENAME ":" line
            else if (index(where[key], FILENAME ":") != 1 && !told[key, FILENAME]++)
                print FILENAME ":" line ": " name " is defined in " where[key] \
                      ", too; type names are unique in the tree"
        }
        # Notes the name that a whole typedef defines; none if the typedef only declares.
        function define_typedef(text, line,    words) {
            gsub(/__attribute__ *\(\([^)]*\)\)/, "", text)
            if (text ~ /}/) {
                sub(/^.*}/, "", text)
            } else if (match(text, /\( *\*+ *[A-Za-z_][A-Za-z0-9_]* *\)/)) {
                text = substr(text, RSTART, RLENGTH)
            } else if (index(text, "(")) {
                sub(/ *\(.*/, "", text)
            } else {
                split(text, words, /[ \t;]+/)
                if (words[2] ~ /^(struct|enum|union)$/ && words[3] == words[4]) return
            }
            sub(/\[[^]]*\]/, "", text)
            gsub(/[^A-Za-z0-9_]+/, " ", text)
            sub(/ +$/, "", text)
            sub(/^.* /, "", text)
            if (text != "") define(text, line)
        }
        FNR == 1 { in_comment = 0; typedef = ""; depth = 0 }
        {
            code = code_of($0)
            if (match(code, /(^|[^A-Za-z0-9_])(struct|enum|union)[ \t]+[A-Za-z_][A-Za-z0-9_]*[ \t]*{/)) {
                name = substr(code, RSTART, RLENGTH)
                sub(/[ \t]*{$/, "", name)
                sub(/^.*[ \t]/, "", name)
                define(name, FNR)
            }
            if (typedef == "" && code ~ /^[ \t]*typedef[ \t]/) { begun = FNR; depth = 0 }
            else if (typedef == "") next
            typedef = typedef code " "
            depth += gsub(/{/, "{", code) - gsub(/}/, "}", code)
            if (depth == 0 && code ~ /;/) { define_typedef(typedef, begun); typedef = "" }
        }')
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        return 1
    fi
}

self_test() {
    enter_scratch
    mkdir -p include/stoker src/{base,engine,backend/cpu,backend/cuda} cli
    printf 'typedef struct stk_job stk_job;\ntypedef enum stk_kind {\n    A\n} stk_kind;\n' >include/stoker/a.h
    printf 'typedef struct stk_job stk_job;\ntypedef void (*stk_call)(void *user,\n    int n);\n' >src/base/a.h
    printf 'struct stk_job {\n    struct pair *next;\n    struct { int x; } pair;\n};\n' >src/base/a.c
    printf 'typedef struct pair {\n    int a;\n} pair;\nstatic struct pair *make(void);\n' >src/base/b.c
    printf 'typedef int sum(const pair *p);\n/* struct pair { in a\n   struct pair { comment */\n' >src/base/c.c
    printf 'struct stk_device {\n    int a;\n};\n' | tee src/backend/cpu/a.c >src/backend/cuda/a.c
    expect '' check_tree
    with_fault cli/d.c 'struct pair { int b; };' 'src/base/b.c:1: pair is defined in cli/d.c:1, too'
    with_fault src/base/d.c 'typedef union pair { int b; } pair;' 'src/base/d.c:1: pair is defined in src/base/b.c:1'
    with_fault src/base/d.c $'typedef struct {\n    int b;\n} pair;' 'src/base/d.c:1: pair is defined'
    with_fault src/base/d.c 'typedef unsigned pair;' 'src/base/d.c:1: pair is defined'
    with_fault src/base/d.c 'typedef void (*stk_call)(void);' 'src/base/d.c:1: stk_call is defined in src/base/a.h:2'
    with_fault src/base/d.c $'typedef int sum(const pair *a,\n    int b);' 'src/base/d.c:1: sum is defined'
    with_fault src/base/d.c $'\nenum stk_kind { B };' 'src/base/d.c:2: stk_kind is defined in include/stoker/a.h:2'
    with_fault src/backend/cpu/d.c 'struct stk_device { int b; };' 'stk_device is defined in src/backend/cpu/a.c:1'
    expect '' check_tree
    return "$self_test_bad"
}

check_or_self_test "$@"
