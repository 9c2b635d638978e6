# docs/options.md is the page that the command writes now.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

it "docs/options.md is what the option tables say (make docs writes it anew)"
run help --markdown
expect_exit 0
expect_same "$OUT" "$ROOT/docs/options.md"

it "docs/performance.md is what bench/results says (make performance writes it anew)"
if command -v python3 >/dev/null 2>&1; then
    run_any "$ROOT/tools/performance-page.py" --check
    expect_exit 0
else
    skip "python3 is not installed"
fi

it "links in the papers lead somewhere, and nothing was left to be filled in"
for page in "$ROOT"/*.md "$ROOT"/docs/*.md "$ROOT"/src/*/README.md "$ROOT"/examples/README.md; do
    expect_not "$page has a placeholder" grep -qE '@[A-Z]{3,}@' "$page"
    while read -r link; do
        expect "$page links to $link, which is not there" test -e "$(dirname "$page")/$link"
    done < <(grep -oE '\]\([^)#]+' "$page" | cut -c 3- | grep -v '://')
done

finish
