#!/usr/bin/env bash
# Measures how fast data arrives from far away: bench/remote.sh BUILD_DIR [OPTION of remote_vs_torch.py...]
#
# The tests' object server serves the pictures and waits 30 ms before every answer. The pictures are JPEGs
# made from the photographs in STOKER_DATA/photos (default: ../shared/data/photos), or drawn ones if there
# are none. Prints one JSON object on standard output and a table on standard error. PYTHON names the
# interpreter; if it has torch, torchvision and Pillow, PyTorch's DataLoader is measured, too.
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
