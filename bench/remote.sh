#!/usr/bin/env bash
# How fast data comes that is far away: bench/remote.sh BUILD_DIR [options of remote_vs_torch.py].
# JPEGs made from real photographs where there are any (../shared/data/photos, or
# STOKER_DATA/photos), drawn ones otherwise, behind the tests' object server with 30 ms before every
# answer. Prints one JSON object, and a table for people on standard error. PYTHON names the
# interpreter; where it has torch, torchvision and Pillow, PyTorch's DataLoader is measured too.
set -eu

build=$(cd "${1:-build}" && pwd)
[ $# -eq 0 ] || shift
cd "$(dirname "$0")/.."
photos=${STOKER_DATA:-../shared/data}/photos
python=${PYTHON:-python3}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/stoker-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
if [ ! -x "$build/tests/object_server" ]; then
    echo "remote.sh: not measured, $build/tests/object_server is not there: build with -DSTK_TESTS=ON" >&2
    exit 0
fi
if ! command -v "$python" >/dev/null 2>&1; then
    echo "remote.sh: not measured, there is no $python" >&2
    exit 0
fi
data=$scratch/pictures
if [ ! -d "$photos" ] || ! "$python" bench/make_jpegs.py "$photos" "$data" --count 3200 >&2; then
    rm -rf "$data"
    "$build/stoker" sample "$scratch/sample" --per-class 400 --quiet
    data=$scratch/sample
fi
"$python" bench/remote_vs_torch.py --data "$data" --stoker "$build/stoker" \
    --server "$build/tests/object_server" --json "$@"
