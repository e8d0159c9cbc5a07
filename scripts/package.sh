#!/usr/bin/env bash
# package.sh [PRESET]: builds a preset without CUDA (default: cpu-release) and makes of it, in build/packages,
# Debian packages of zsq and libzsq-dev for the Debian that this runs on, and one .tar.gz of both.
# libtorch's CPU half is inside. scripts/try_package.sh tries them on a machine that has nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-cpu-release}
CMAKE_OPTIONS="${CMAKE_OPTIONS:-} -DZSQ_BUNDLE_LIBTORCH=ON" scripts/build.sh "$preset" zsq zsq_c manual_page
rm -rf build/packages
cpack --config "build/$preset/CPackConfig.cmake" -B build/packages
rm -rf build/packages/_CPack_Packages
ls -l build/packages
