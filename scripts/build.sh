#!/usr/bin/env bash
# build.sh [PRESET [TARGET...]]: configures a preset of CMakePresets.json (default: release) in
# build/<preset> and builds the targets (default: everything); build/bin then points to its programs.
# JOBS=<n> limits the compilers; CMAKE_OPTIONS=<-D...> goes to CMake, which keeps it in build/<preset>.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
# A file that includes libtorch's headers takes up to 1.5 GiB to compile.
memory_jobs=$(awk '/MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)
jobs=${JOBS:-$(nproc)}
[[ $jobs -le $memory_jobs ]] || jobs=$((memory_jobs > 0 ? memory_jobs : 1))

cmake --preset "$preset" ${CMAKE_OPTIONS:-} > /dev/null
cmake --build --preset "$preset" --parallel "$jobs" ${2:+--target "${@:2}"}
ln -sfnT "$preset/bin" build/bin
