#!/usr/bin/env bash
# test.sh [PRESET]: installs what is missing, builds, runs every test. Tests that need a GPU say so and skip
# where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/install_deps.sh
scripts/build.sh "$preset"

begin=$SECONDS
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# One test per core, each with one thread (CMakePresets.json): threads of several tests that wait for
# each other on one core take ten times as long.
status=0
ctest --preset "$preset" --parallel "${JOBS:-$(nproc)}" | tee "$log" || status=$?
count=$(sed -n 's/.*tests failed out of \([0-9]*\).*/\1/p' "$log")
echo "test: ${count:-0} tests in $((SECONDS - begin)) s"
[[ ${count:-0} -gt 0 ]] || { echo "test: no test was found" >&2; exit 1; }
exit $status
