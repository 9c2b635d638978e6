#!/usr/bin/env bash
# Formats every C file by .clang-format. With --check it changes nothing and fails if a file is not
# formatted.
set -eu

cd "$(dirname "$0")/.."
if [ "${1:-}" = --check ]; then
    set -- --dry-run -Werror
else
    set -- -i
fi
find src cli include tests examples bench -name '*.[ch]' -print0 2>/dev/null |
    xargs -0 --no-run-if-empty clang-format "$@"
