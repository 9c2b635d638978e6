#!/usr/bin/env bash
# Measures what it costs to sample the machine once a second:
# bench/sampler_cost.sh BUILD_DIR [SECONDS [PID]]. Samples the first GPU, too, if nvidia-smi shows one, and
# the processes below PID. sampler_cost.c describes the output.
set -eu

build=$(cd "$1" && pwd)
bus=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader 2>/dev/null | head -n 1) || bus=
cmake --build "$build" --target sampler_cost >&2
"$build/sampler_cost" "${2:-20}" "$bus" ${3:+"$3"}
