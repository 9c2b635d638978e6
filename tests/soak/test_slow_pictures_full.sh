# Pictures that take long to decode, with the cases that only use their time up: tests/cli/test_slow_pictures.sh in full.
# shellcheck shell=bash
STK_TEST_FULL=1 exec bash "$(dirname "$0")/../cli/test_slow_pictures.sh"
