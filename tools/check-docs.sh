#!/usr/bin/env bash
# Checks what documents state about the tree:
#
#   - the table of rooms in ARCHITECTURE.md has the rooms of tools/check-direction.sh in their order,
#   - the README.md of a room, or of a folder in it, names every .c, .h and .cu file,
#   - source files, scripts and documents named in backticks exist, and so do the targets of relative links,
#   - README.md or docs/ names every verb of the command,
#   - ARCHITECTURE.md names every kind of thread (`what` of a stk_thread_config),
#   - the table of stages in CONTRIBUTING.md has the stages of .ci/run in their order.
#
# Prints each violation as `file:line: sentence` and fails if there is one. `--self-test` tries the check
# on small trees with and without faults; `--root DIR` checks another tree.
# shellcheck disable=SC2016,SC2086,SC2116  # backticks and dollars of others; lists are words
set -eu
# shellcheck source=tools/self-test.sh
. "$(dirname "$0")/self-test.sh"

# compare_lists FILE LINE WHAT EXPECTED ACTUAL: two lists must have the same words in the same order.
compare_lists() {
    local word
    for word in $4; do
        [[ " $5 " == *" $word "* ]] || echo "$1:$2: the table lacks the $3 $word"
    done
    for word in $5; do
        [[ " $4 " == *" $word "* ]] || echo "$1:$2: the table has the $3 $word, which there is not"
    done
    if [ "$(printf '%s\n' $4 | sort)" = "$(printf '%s\n' $5 | sort)" ] && [ "$4" != "$5" ]; then
        echo "$1:$2: the table has another order than: $4"
    fi
}

line_of() {
    grep -n -m 1 -e "$1" "$2" | cut -d : -f 1
}

check_rooms() {
    local rooms rows line
    rooms=$(sed -n "s/^rooms=[\"']\(\$rooms \)\{0,1\}\(.*\)[\"']\$/\2/p" tools/check-direction.sh | tr '\n' ' ')
    line=$(line_of '^| folder |' ARCHITECTURE.md)
    rows=$(awk '/^\| folder \|/ { on = 1 } on && !/^\|/ { exit } on && /^\| `/' ARCHITECTURE.md |
        sed 's/^| `\(src\/\)\{0,1\}\([^`]*\)`.*/\2/' | tr '\n' ' ')
    compare_lists ARCHITECTURE.md "${line:-1}" room "$(echo $rooms)" "$(echo $rows)"
}

# in_backticks FILE: prints the words in backticks that look like names of files, as LINE NAME.
in_backticks() {
    awk '/^    / || /^```/ { next }
        { rest = $0
          while (match(rest, /`[^` ]+`/)) {
              word = substr(rest, RSTART + 1, RLENGTH - 2)
              rest = substr(rest, RSTART + RLENGTH)
              if (word ~ /\.(c|h|cu|cuh|sh|py|md|cmake|\[ch\]|\*)$/) print FNR, word
          } }' "$1"
}

# check_files: every file must be named by the README of its folder or of a folder above it, by its own name
# or by a pattern such as part_*.c. A name stands for both the .c and the .h file.
check_files() {
    local folder readme file stem names pattern found
    while read -r folder; do
        names=''
        readme=$folder
        while [ "$readme" != src ]; do
            if [ -e "$readme/README.md" ]; then
                names+=" $(in_backticks "$readme/README.md" | sed 's/^[0-9]* //; s|.*/||; s/\.\(c\|h\|cu\|\[ch\]\|\*\)$//' | tr '\n' ' ')"
            fi
            readme=$(dirname "$readme")
        done
        for file in "$folder"/*.c "$folder"/*.h "$folder"/*.cu; do
            [ -e "$file" ] || continue
            stem=${file##*/}
            stem=${stem%.*}
            found=0
            for pattern in $names; do
                # shellcheck disable=SC2053  # a pattern
                if [[ $stem == $pattern ]]; then
                    found=1
                    break
                fi
            done
            [ "$found" = 1 ] || echo "$file:1: no README.md of its room names it"
        done
    done < <(find src -mindepth 1 -type d | LC_ALL=C sort)
}

documents() {
    find . -name '*.md' -not -path './build*' -not -path './.git/*' | sed 's|^\./||' | LC_ALL=C sort
}

# check_names: files named in backticks, and targets of links, must exist. A name without a folder may lie
# anywhere in the tree; a name with a folder may leave out the beginning of its path. A name with
# capitals in its last part is a placeholder, such as test_NAME.c. Headers that the code includes with <>
# belong to the system.
check_names() {
    local document line word all system base
    all=$(find . \( -name .git -o -name 'build*' \) -prune -o -type f -print | sed 's|^\.||')
    system=" $(grep -rhoE '^ *# *include <[^>]+>' src cli tests include 2>/dev/null | sed 's/.*<//; s/>//' | sort -u | tr '\n' ' ') "
    for document in $(documents); do
        while read -r line word; do
            base=${word##*/}
            case $base in
            *'*'* | *'['* | *'{'* | *'~'*) continue ;;
            README.md | ARCHITECTURE.md | CONTRIBUTING.md | SECURITY.md) continue ;;
            *[A-Z]* | .* | _*) continue ;; # placeholders, and endings such as .c
            *.py | *.sh | *.md) [[ $word == */* ]] || continue ;; # without a folder: a file of the user
            esac
            [[ $word == /* || $system == *" $word "* || $system == *"/$word "* ]] && continue
            [ -e "$word" ] || [ -e "$(dirname "$document")/$word" ] ||
                grep -qE "/${word//./\\.}\$" <<<"$all" ||
                echo "$document:$line: there is no $word"
        done < <(in_backticks "$document")
        while read -r line word; do
            [ -e "$(dirname "$document")/$word" ] || echo "$document:$line: the link to $word leads nowhere"
        done < <(grep -noE '\]\([^)#: ]+(#[^)]*)?\)' "$document" | sed 's/^\([0-9]*\):\](\([^)#]*\).*/\1 \2/')
    done
}

check_verbs() {
    local verb line
    while IFS=: read -r line verb; do
        grep -qE "stoker $verb\b|\`$verb\`" README.md docs/*.md ||
            echo "cli/main.c:$line: neither README.md nor docs/ names the verb $verb"
    done < <(awk '/cli_verbs\[\]/ { on = 1 } on { line = $0; while (match(line, /&cli_[a-z]+/)) {
                  print FNR ":" substr(line, RSTART + 5, RLENGTH - 5); line = substr(line, RSTART + RLENGTH) } }
              on && /;/ { exit }' cli/main.c)
}

check_threads() {
    local place what table
    table=$(awk '/^## .*[Tt]hreads/ { on = 1; next } /^## / { on = 0 } on && /^\|/' ARCHITECTURE.md)
    while IFS='|' read -r place what; do
        grep -qF -- "$what" <<<"$table" ||
            echo "$place: the table of threads in ARCHITECTURE.md lacks \"$what\""
    done < <(find src cli -name '*.c' | LC_ALL=C sort | xargs awk '
        FNR == 1 { on = 0 }
        /stk_thread_config [a-z_]+ = \{/ { on = 1 }
        on && match($0, /\.what = "[^"]*"/) { print FILENAME ":" FNR "|" substr($0, RSTART + 9, RLENGTH - 10) }
        on && /\};/ { on = 0 }')
}

check_stages() {
    local stages rows line
    stages=$(sed -n 's/^stage \([a-z-]*\) .*/\1/p' .ci/run | tr '\n' ' ')
    line=$(line_of '^| stage |' CONTRIBUTING.md)
    rows=$(awk -F '|' '/^\| stage \|/ { on = 1; next } on && !/^\|/ { exit } on && /^\| `/ { print $2 }' CONTRIBUTING.md |
        tr -d '`,' | tr '\n' ' ')
    compare_lists CONTRIBUTING.md "${line:-1}" stage "$(echo $stages)" "$(echo $rows)"
}

check_tree() {
    local found
    found=$(check_rooms && check_files && check_names && check_verbs && check_threads && check_stages)
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        return 1
    fi
}

# with_change FILE SED SENTENCE: changes the file, expects the sentence, and restores the file.
with_change() {
    cp "$1" saved
    sed -i "$2" "$1"
    expect "$3" check_tree
    mv saved "$1"
}

self_test() {
    enter_scratch
    mkdir -p src/base/files src/image cli tools docs .ci
    touch src/base/mem.c src/base/mem.h src/base/files/lock.c src/image/part_a.c docs/image.md
    printf "rooms='base'\nrooms=\"\$rooms base/files image cli\"\n" >tools/check-direction.sh
    {
        printf '| folder | what |\n| --- | --- |\n| `src/base` | |\n| `src/base/files` | |\n| `src/image` | |\n| `cli` | |\n\n'
        printf '## Threads\n\n| threads | do |\n| --- | --- |\n| `reads` | |\n'
    } >ARCHITECTURE.md
    {
        printf '`mem.c`, `files/lock.c` and <stdio.h>\n' >src/base/README.md
        printf '`part_*.c`, `base/mem.h`, see [more](../../docs/image.md#top)\n' >src/image/README.md
        printf 'stoker train\n' >README.md
        printf '| stage | what |\n| --- | --- |\n| `tests-self-test`, `tests` | |\n| `lint` | |\n' >CONTRIBUTING.md
    }
    printf 'stage tests-self-test a\nstage tests b\nstage lint c\n' >.ci/run
    printf 'const x *const cli_verbs[] = {&cli_train, NULL};\n    stk_thread_config config = {.what = "reads"};\n' >cli/main.c
    expect '' check_tree
    with_change ARCHITECTURE.md '/base.files/d' 'ARCHITECTURE.md:1: the table lacks the room base/files'
    with_change ARCHITECTURE.md 's|src/image|src/attic|' 'the table has the room attic, which there is not'
    with_change ARCHITECTURE.md '3{h;d};4{G}' 'the table has another order'
    with_change ARCHITECTURE.md 's/reads/writes/' 'cli/main.c:2: the table of threads in ARCHITECTURE.md lacks "reads"'
    with_change src/base/README.md 's/mem/mam/' 'src/base/mem.c:1: no README.md of its room names it'
    with_change src/base/README.md 's/mem/mam/' 'src/base/README.md:1: there is no mam.c'
    with_change src/image/README.md 's/part_\*/pert_*/' 'src/image/part_a.c:1: no README.md'
    with_change src/image/README.md 's/image.md/nothing.md/' 'src/image/README.md:1: the link to ../../docs/nothing.md leads nowhere'
    with_change cli/main.c 's/&cli_train/&cli_train, \&cli_fly/' 'neither README.md nor docs/ names the verb fly'
    with_change .ci/run 's/lint/tidy/' 'CONTRIBUTING.md:1: the table lacks the stage tidy'
    expect '' check_tree
    return "$self_test_bad"
}

check_or_self_test "$@"
