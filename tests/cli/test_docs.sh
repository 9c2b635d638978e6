# test_docs.sh - the pages that are made from the code are those that it makes now.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

it "docs/options.md is what the option tables say (make docs writes it anew)"
run help --markdown
expect_exit 0
expect_same "$OUT" "$ROOT/docs/options.md"

finish
