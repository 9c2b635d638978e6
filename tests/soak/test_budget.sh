# Time budgets, with the cases that only use their time up: tests/cli/test_budget.sh in full.
# shellcheck shell=bash
STK_TEST_FULL=1 exec bash "$(dirname "$0")/../cli/test_budget.sh"
