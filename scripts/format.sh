#!/usr/bin/env bash
# format.sh [--fix]: checks, or fixes, the layout of every C++ and CUDA file with clang-format 14 (its
# rules are in .clang-format; other versions format a little differently).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format-14 > /dev/null || { echo "format: install clang-format-14" >&2; exit 2; }
mode=(--dry-run --Werror)
[[ ${1:-} != --fix ]] || mode=(-i)
git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format-14 "${mode[@]}"
