#!/usr/bin/env bash
# Checks the direction of dependencies (ARCHITECTURE.md has the table of rooms):
#
#   - a file in src/ROOM (or cli) includes headers of its own room and of rooms above it in the list,
#     except that `job` and `supervise` include nothing of each other,
#   - include/stoker includes nothing but stoker/* and system headers,
#   - names of .c, .h and .cu files are unique within a room,
#   - every folder under src is a known room and has a README.md.
#
# Prints each violation as `file:line: sentence` and fails if there is one. `--self-test` tries the check
# on small trees with and without faults; `--root DIR` checks another tree.
set -eu
# shellcheck source=tools/self-test.sh
. "$(dirname "$0")/self-test.sh"

rooms='base base/threads base/files base/text base/numbers'
rooms="$rooms options events storage/http storage storage/s3 storage/cache storage/tar storage/zip storage/reading"
rooms="$rooms storage/shards storage/archives storage/store metrics dataset"
rooms="$rooms image/augment image image/resample image/decode image/encode image/crop stage loader engine"
rooms="$rooms backend/cpu/kernels backend/cpu/gemm backend/cpu/convolution backend/cpu"
rooms="$rooms backend/cuda/driver backend/cuda/program backend/cuda/emit backend/cuda/variants backend/cuda/convolution"
rooms="$rooms backend/cuda/decode backend/cuda/player backend/cuda/tuning backend/cuda/lowering backend/cuda backend"
rooms="$rooms models weights train/calibrate train predict budget monitor"
rooms="$rooms report/text report/plots report/state report/observers report/status report/page report"
rooms="$rooms run probe probe/doctor"
rooms="$rooms supervise/files supervise/process supervise/settings supervise/output supervise/decide supervise"
rooms="$rooms job/recipe job/saved job/steering job/training job cli"

# Rooms that may not include each other, whatever their order.
strangers=' job/supervise supervise/job '

# check_includes: checks the includes of every file, in one pass over the tree.
check_includes() {
    local files
    files=$(find include/stoker src cli -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) \
        2>/dev/null | LC_ALL=C sort)
    [ -n "$files" ] || return 0
    # shellcheck disable=SC2016  # the dollars are awk's
    tr '\n' '\0' <<<"$files" | xargs -0 awk -v rooms="$rooms" -v strangers="$strangers" '
        BEGIN { count = split(rooms, names, " "); for (i = 1; i <= count; i++) place[names[i]] = i }
        # The room of a path such as backend/cpu/conv.c: its longest beginning that is a room.
        function room_of(path) {
            while (sub(/\/[^\/]*$/, "", path)) if (path in place) return path
            return ""
        }
        function top_of(room) { sub(/\/.*/, "", room); return room }
        FNR == 1 {
            public = FILENAME ~ /^include\//
            own = FILENAME
            sub(/^src\//, "", own)
            own = room_of(own)
        }
        /^[ \t]*#[ \t]*include[ \t]*["<]/ {
            quoted = $0 ~ /include[ \t]*"/
            target = $0
            sub(/^[^"<]*["<]/, "", target)
            sub(/[">].*$/, "", target)
            if (target ~ /^stoker\//) next
            room = room_of(target)
            where = FILENAME ":" FNR ": "
            if (public && (quoted || room != "")) {
                print where "an installed header may include only <stoker/...> and system headers, not " target
            } else if (!public && own != "" && room != "" && place[room] > place[own]) {
                print where own " may not include " target ": " room " lies below it"
            } else if (index(strangers, " " top_of(own) "/" top_of(room) " ")) {
                print where own " may not include " target ": the two rooms do not know each other"
            } else if (quoted && room == "" && target ~ /\//) {
                print where target " is in no room"
            }
        }'
}

check_names() {
    find src cli -type f \( -name '*.[ch]' -o -name '*.cu' \) 2>/dev/null | LC_ALL=C sort |
        awk -F / '{ room = $1 == "src" ? $2 : $1
                    if (room == "backend" && NF > 3) room = room "/" $3
                    name = room " " $NF
                    if (name in seen) print $0 ":1: the name is taken by " seen[name] "; names are unique in a room"
                    else seen[name] = $0 }'
}

check_folders() {
    local folder room
    for folder in src/*/ src/backend/*/; do
        [ -d "$folder" ] || continue
        room=${folder#src/}
        room=${room%/}
        case " $rooms " in
        *" $room "*) ;;
        *) echo "$folder:1: $room is no room; add it to the table and to tools/check-direction.sh" ;;
        esac
        [ -s "${folder}README.md" ] || echo "${folder}README.md:1: every room has a README.md"
    done
}

check_tree() {
    local found
    found=$(check_includes && check_names && check_folders)
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        return 1
    fi
}

self_test() {
    local room
    enter_scratch
    mkdir -p include/stoker src/{base,image,backend/cpu,models,job} cli
    for room in base image backend backend/cpu models job; do
        echo "# $room" >"src/$room/README.md"
    done
    printf '#include <stdio.h>\n#include <stoker/b.h>\n' >include/stoker/a.h
    printf '#include "base/mem.h"\n' >src/base/mem.c
    printf '#include "image/jpeg.h"\n#include "base/mem.h"\n#include <jpeglib.h>\n' >src/image/jpeg.c
    printf '#include "backend/cpu/conv.h"\n' >src/backend/list.c
    touch src/backend/cpu/conv.h
    mkdir src/models/parts
    touch src/models/parts/mem.c
    printf '#include "job/job.h"\n#include "verbs.h"\n' >cli/main.c
    expect '' check_tree
    with_fault src/base/mem.c '#include "image/jpeg.h"' 'src/base/mem.c:2: base may not include image/jpeg.h'
    with_fault src/image/jpeg.c '  #  include <job/job.h>' 'src/image/jpeg.c:4: image may not include'
    with_fault src/backend/cpu/conv.c '#include "models/resnet.h"' 'backend/cpu may not include models/resnet.h'
    with_fault src/backend/cpu/conv.c '#include "backend/list.h"' 'backend/cpu may not include backend/list.h'
    with_fault src/job/job.c '#include "cli/verbs.h"' 'job may not include cli/verbs.h'
    with_fault src/job/job.c '#include "supervise/x.h"' 'job may not include supervise/x.h: the two rooms'
    with_fault src/job/job.c '#include "nowhere/x.h"' 'nowhere/x.h is in no room'
    with_fault include/stoker/a.h '#include "base/mem.h"' 'include/stoker/a.h:3: an installed header'
    with_fault include/stoker/a.h '#include <base/mem.h>' 'include/stoker/a.h:3: an installed header'
    with_fault src/base/parts/mem.c '' 'src/base/parts/mem.c:1: the name is taken by src/base/mem.c'
    with_fault src/backend/cpu/parts/conv.h '' 'the name is taken by'
    with_fault src/attic/README.md 'old' 'attic is no room'
    mv src/base/README.md saved-readme
    expect 'src/base/README.md:1: every room has a README.md' check_tree
    mv saved-readme src/base/README.md
    expect '' check_tree
    return "$self_test_bad"
}

check_or_self_test "$@"
