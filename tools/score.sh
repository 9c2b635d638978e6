#!/usr/bin/env bash
# How many labels of a submission agree with the solution: tools/score.sh SUBMISSION SOLUTION
#
# The solution has the columns id,label. A submission with a column of the label's name is compared
# by it; otherwise each further column is a class and the largest number is the label. For files
# without quotes, such as those of `stoker sample`. Prints "93.8 % (300 of 320)".
set -eu

if [ $# != 2 ]; then
    echo "usage: tools/score.sh SUBMISSION SOLUTION" >&2
    exit 2
fi
for file in "$1" "$2"; do
    if [ ! -r "$file" ]; then
        echo "score: cannot read $file" >&2
        exit 1
    fi
done
awk -F , '
    { sub(/\r$/, "") }
    NR == FNR && FNR == 1 { label = $2; next }
    NR == FNR { truth[$1] = $2; total++; next }
    FNR == 1 {
        for (i = 2; i <= NF; i++) {
            class[i] = $i
            if ($i == label) column = i
        }
        next
    }
    {
        if (column) {
            guess = $column
        } else {
            best = 2
            for (i = 3; i <= NF; i++) if ($i + 0 > $best + 0) best = i
            guess = class[best]
        }
        if ($1 in truth && truth[$1] == guess) right++
    }
    END {
        if (total == 0) { print "nothing to compare"; exit 1 }
        printf "%.1f %% (%d of %d)\n", 100 * right / total, right, total
    }' "$2" "$1"
