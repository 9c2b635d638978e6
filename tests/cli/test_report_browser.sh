# report.html in a browser: no errors, no requests to other hosts, every plot and picture shown, at the
# width of a phone and of a desktop.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

BROWSER=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    [ -n "$BROWSER" ] || BROWSER=$(command -v "$name")
done

# look OPTIONS... PAGE...: what the browser says of pages is in $OUT.
look() {
    run_any python3 "$ROOT/tests/cli/open_page.py" --browser "$BROWSER" "$@"
}

it "finds a browser"
if [ -z "$BROWSER" ]; then
    skip "there is no Chromium and no Chrome"
elif ! command -v python3 >/dev/null; then
    skip "there is no python3"
    BROWSER=
fi
[ -n "$BROWSER" ] || finish

it "tells what is wrong with a page"
cat >wrong.html <<'END'
<!doctype html><html><head><title>wrong</title><script src="http://127.0.0.1:9/x.js"></script></head>
<body><div style="width:2000px">wide</div><svg class="plot" id="flat" width="9" height="0"></svg>
<table><tr><th style="width:9px;overflow-wrap:anywhere">tall words</th></tr></table>
<img src="data:image/jpeg;base64,AAAA" alt="broken"><script>console.error("an error"); nobody()</script>
</body></html>
END
look --plots 2 --thumbs 2 wrong.html
expect_exit 1
for width in 390 1440; do
    expect_out "$width px: request to http://127.0.0.1:9/x.js"
    expect_out "$width px: console: an error"
    expect_out "$width px: exception: .*nobody"
    expect_out "$width px: plot flat has size \[9, 0\]"
    expect_out "$width px: picture broken is not shown"
    expect_out "$width px: the heading 'tall words' is [0-9.]+ px high"
    expect_out "$width px: 1 plots, expected 2"
    expect_out "$width px: 1 pictures, expected 2"
    expect_out "$width px: the page is 20[0-9]+ px wide"
done

# Names that are markup, that have no place to break a line, and that are no text.
"$STOKER" sample pics --classes 3 --per-class 16 --quiet || exit 1
cp -r pics odd
long=$(printf 'x%.0s' {1..120})
names=('<img src=http:--127.0.0.1:9-x onerror="nobody()">' "$long" $'b\377&amp;<script>nobody()<!--')
for split in train val; do
    classes=("odd/$split"/*)
    for i in 0 1 2; do
        mv "${classes[i]}" "odd/$split/${names[i]}"
    done
done

# seen PAGE PLOTS PICTURES: so the browser saw a page of the last look, at both widths; patterns.
seen() {
    expect_out "^$1: 390 px: $2 plots, $3 pictures; 1440 px: $2 plots, $3 pictures$"
}
some='([5-9]|[1-9][0-9])'

it "shows runs: a plain one, with folds, with odd names, resumed; and what stoker report makes of them"
run train --data pics --img-size 16 --epochs 2 --budget 60s --out plain --quiet
expect_exit 0
run train --data pics --img-size 16 --epochs 1 --folds 2 --out folds --quiet
expect_exit 0
run train --data odd --img-size 16 --epochs 1 --out "<b>odd" --quiet
expect_exit 0
run train --data pics --img-size 16 --epochs 1 --out again --quiet
run train --resume again --epochs 2 --quiet
expect_exit 0
run report plain --out made.html --quiet
expect_exit 0
run report plain folds "<b>odd" --out compared.html --quiet
expect_exit 0
mv pics elsewhere
run report folds --out gone.html --quiet
expect_exit 0
look plain/report.html folds/report.html "<b>odd/report.html" again/report.html made.html compared.html gone.html
expect_exit 0
wrong=$(awk -F , 'NR > 1 && $2 != $3 { n++ } END { print (n > 12) ? 12 : n + 0 }' plain/validation.csv)
seen plain/report.html "$some" "$wrong"
seen made.html "$some" "$wrong"
seen folds/report.html "$some" '[1-9][0-9]?'
seen '<b>odd/report.html' "$some" '[0-9]+'
seen again/report.html "$some" '[0-9]+'
seen compared.html '[1-9][0-9]?' '[0-9]+'
seen gone.html "$some" 0

finish
