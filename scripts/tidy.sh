#!/usr/bin/env bash
# tidy.sh [--changed | --all | FILE...]: looks for mistakes that compile, with clang-tidy 16 (its checks are in
# .clang-tidy). Without arguments: the folders that do without libtorch; a source with libtorch takes six seconds.
# --changed: also what differs from where the branch left origin/main, or from the commit before the last.
# --all: every source but the tests, a quarter of an hour on two cores. JOBS=<n> limits how many run at once.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-tidy-16 > /dev/null ||
  { echo "tidy: not found; run scripts/install_deps.sh clang-tidy-16" >&2; exit 2; }
quick=(core formats recipes cli sdk) # do without libtorch

changed_sources() {
  local base
  base=$(git merge-base HEAD origin/main 2> /dev/null || true)
  [[ -n $base && $base != $(git rev-parse HEAD) ]] || base=HEAD~1
  git diff --name-only --diff-filter=d "$base" -- '*.cpp' ':!tests' "${quick[@]/#/:!}" 2> /dev/null || true
}

case ${1:-} in
  --all) mapfile -t files < <(find [a-z]* -name '*.cpp' -not -path 'build*' -not -path 'out/*' -not -path 'tests/*') ;;
  --changed) mapfile -t files < <(find "${quick[@]}" -name '*.cpp'; changed_sources) ;;
  '') mapfile -t files < <(find "${quick[@]}" -name '*.cpp') ;;
  *) files=("$@") ;;
esac

# clang reads no header that GCC has precompiled; without, a missing include shows as well.
cmake --preset cpu-release -B build/tidy -DZSQ_PRECOMPILED_HEADERS=OFF -DCMAKE_UNITY_BUILD=OFF > /dev/null
cmake --build build/tidy --target zsq_generated_sources > /dev/null
echo "tidy: ${#files[@]} files"
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "${JOBS:-$(nproc)}" clang-tidy-16 -p build/tidy --quiet --extra-arg=-fno-openmp 2> >(grep -v 'warnings generated\.$' >&2)
