#!/usr/bin/env bash
# format.sh [--fix]: checks, or fixes, the layout of every C++ and CUDA file with clang-format 14 (its
# rules are in .clang-format; other versions format a little differently).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format-14 > /dev/null ||
  { echo "format: not found; run scripts/install_deps.sh clang-format-14" >&2; exit 2; }
mode=(--dry-run --Werror)
[[ ${1:-} != --fix ]] || mode=(-i)
find [a-z]* -type f -not -path 'build*' -not -path 'out/*' \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 clang-format-14 "${mode[@]}"
