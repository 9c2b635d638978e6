# report.html in a run folder, and `stoker report`.
# shellcheck shell=bash source=tests/cli/lib.sh disable=SC2317  # a function for wait_for
. "$(dirname "$0")/lib.sh"

"$STOKER" sample pics --classes 3 --per-class 16 --quiet || exit 1
small=(--data pics --img-size 16 --quiet)

# expect_page FILE ID...: a page that asks nobody for anything and has elements of these ids once.
expect_page() {
    local page=$1 id
    shift
    expect_file "$page" '^</html>$'
    expect_not "$page names a place outside" grep -Eq 'https?:|<script|@import|url\(' "$page"
    for id in "$@"; do
        [ "$(grep -c " id=\"$id\"" "$page")" = 1 ] || fail "$page has no element $id, or several"
    done
}

it "is written by a run, which names it"
run train --data pics --img-size 16 --epochs 3 --out one --budget 5m
expect_exit 0
expect_out '^  report      one/report.html$'
expect_page one/report.html verdict summary curves budget confusion worst notes epochs options \
    plot-loss plot-accuracy plot-lr plot-speed plot-budget plot-confusion
expect_file one/report.html 'every planned epoch was trained'
expect_file one/report.html '<td>batch</td><td>[0-9]+</td><td>auto</td>'
if grep -q ' taken for ' one/report.html; then
    expect_file one/report.html 'src="data:image/jpeg;base64,/9j/'
fi

it "has folds, and a metric of its own"
run train "${small[@]}" --epochs 2 --folds 2 --metric macro_f1 --out folds
expect_exit 0
expect_page folds/report.html curves plot-loss plot-confusion
expect_file folds/report.html 'fold 2</li>'
expect_file folds/report.html 'Best macro_f1'

it "is made again from the files"
cp -r one again
rm again/report.html
run report again
expect_exit 0
expect_out '^page: again/report.html$'
expect_page again/report.html verdict summary curves budget confusion worst notes epochs options
expect_file again/report.html 'every planned epoch was trained'
run report again --no-pictures --out elsewhere.html --quiet
expect_exit 0
expect_empty "$OUT"
expect_page elsewhere.html confusion
expect_not "it has pictures" grep -q 'data:image' elsewhere.html

it "is made from what is left of the files"
rm again/results.csv again/args.yaml again/validation.csv
head -c 1000 one/events.jsonl >again/events.jsonl
echo 'no json' >again/args.json
echo 'a,b' >again/validation.csv
run report again
expect_exit 0
expect_err 'warning: the confusion matrix was left out: again/validation.csv'
expect_err 'warning: .*again/args.json was left out'
expect_page again/report.html verdict summary
expect_not "there is a matrix" grep -q plot-confusion again/report.html

it "tells of a run that was killed"
start train "${small[@]}" --epochs 100000 --out killed
has_epochs() { grep -q '^0,2,' killed/results.csv 2>/dev/null || is_gone; }
wait_for 60 has_epochs || fail "no epoch was trained"
kill -9 "$PID" 2>/dev/null
ended 60
expect_page killed/report.html verdict plot-loss
run report killed
expect_exit 0
expect_page killed/report.html verdict plot-loss
expect_file killed/report.html 'no end was written'

it "compares runs"
run report one folds killed/
expect_exit 0
expect_out '^run +state +best acc +metric +epochs'
expect_out '^one +complete +[0-9.]+ % .*cpu fp32'
expect_out '^killed +no end '
expect_out '^epochs +3 +2 +100000$'
expect_out '^folds +1 +2 +1$'
expect_no_out '^(out|seed) '
expect_out '^page: compare.html$'
expect_page compare.html runs options plot-accuracy plot-accuracy-time plot-loss plot-train-loss plot-lr plot-speed
mkdir other && cp -r one other/one
run report one other/one folds/ --out same.html
expect_exit 0
expect_out '^other/one +complete '
expect_out '^folds +complete '
run report one folds --out both.html --quiet
expect_exit 0
expect_empty "$OUT"
expect_page both.html runs

it "gives one object"
run report one folds --json
expect_exit 0
expect_json "$OUT"
expect_out '"run": "one", "status": "complete", .*"run": "folds"'
expect_out '"options": \{.*"epochs": \[3, 2\]'
expect_out '"page": "compare.html"'
run report killed --json
expect_exit 0
expect_json "$OUT"
expect_out '"run": "killed", "status": null'

it "takes names of any kind"
cp -r one '<b>"odd" & '$'\303\244''.html'
run report '<b>"odd" & '$'\303\244''.html' one
expect_exit 0
expect_page compare.html runs
expect_not "the name is markup" grep -q '<b>' compare.html

it "refuses what is no run, in a sentence"
run report
expect_exit 2
expect_err 'say which run: stoker report RUN'
run report nowhere
expect_exit 2
expect_err 'nowhere: there is no such folder'
mkdir empty
run report empty
expect_exit 2
expect_err 'empty is not a run folder: it has no args.json'
run report one pics
expect_exit 2
expect_err 'pics is not a run folder'
echo 'not an event' >empty/events.jsonl
run report empty
expect_exit 3
expect_err 'nothing of the run in empty can be read'
run report one --out nowhere/page.html
expect_exit 2
expect_err '^stoker: --out nowhere/page.html: there is no folder nowhere/; make it first$'

finish
