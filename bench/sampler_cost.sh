#!/usr/bin/env bash
# What looking at the machine once a second costs: bench/sampler_cost.sh BUILD_DIR [SECONDS [PID]]. Looks at
# the first GPU too, where nvidia-smi shows one, and at the tree of a process. sampler_cost.c says what is
# printed.
set -eu

build=$(cd "$1" && pwd)
bus=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader 2>/dev/null | head -n 1) || bus=
cmake --build "$build" --target sampler_cost >&2
"$build/sampler_cost" "${2:-20}" "$bus" ${3:+"$3"}
