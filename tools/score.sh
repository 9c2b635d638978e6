#!/usr/bin/env bash
# Counts how many labels of a submission agree with the solution: tools/score.sh SUBMISSION SOLUTION
#
# Prints "93.8 % (300 of 320)". The solution has two columns, the id and the label. If the submission has a
# column with the name of the label column, that column is compared. Otherwise every column after the
# id is a class, and the class with the largest number is the label. Cells with quotes, which `stoker
# sample` does not write, are not understood.
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
