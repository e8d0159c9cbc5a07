#!/usr/bin/env bash
# fuzz.sh [SECONDS [TARGET...]]: runs each target of tests/fuzz/ under libFuzzer for SECONDS (default 60) and prints
# a table; of a finding also the error and the input in base64. Default: the targets that need no libtorch; "all": every
# one. MORE_SEEDS=<folder> takes every file of TARGET in <folder>/TARGET as a seed, too. Corpora stay in
# build/fuzz/corpus and grow from run to run; an input that is a finding is left in build/fuzz/findings. Exits with 1 if
# there was one. Skips, and says so, without clang's libFuzzer.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift $(($# > 0))
small=(npy npz onnx pt2 pth safetensors torchscript recipe table coco image)
targets=("${@:-${small[@]}}")
[[ ${targets[0]} != all ]] || targets=("${small[@]}" cifar model)

probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  clang++ -x c++ -fsanitize=fuzzer,address - -o "$probe" 2> /dev/null; then
  echo "fuzz: skipped: clang++ with libFuzzer was not found (Debian: clang, libclang-rt-14-dev)"
  exit 0
fi

scripts/build.sh fuzz "${targets[@]/#/fuzz_}"
python=.deps/python/bin/python
[[ -x $python ]] || python=python3
[[ build/fuzz/seeds/made -nt tests/fuzz/make_seeds.py ]] || "$python" tests/fuzz/make_seeds.py build/fuzz/seeds

number() { sed -n "s/^stat::$2: *//p" "$1" | tail -n 1; }
row() { printf '%-12s %12s %8s %8s %8s %9s  %s\n' "$@"; }
status=0
rows=()
for target in "${targets[@]}"; do
  out=build/fuzz/$target.log
  mkdir -p "build/fuzz/corpus/$target" build/fuzz/findings
  inputs=("build/fuzz/corpus/$target")
  for folder in "build/fuzz/seeds/$target" "tests/fuzz/regressions/$target" "${MORE_SEEDS:+$MORE_SEEDS/$target}"; do
    [[ ! -d $folder ]] || inputs+=("$folder")
  done
  dictionary=tests/fuzz/$target.dict
  finding=none
  # A limit on memory far above what these inputs need: what passes it takes more than its size allows.
  OMP_NUM_THREADS=1 OPENCV_LOG_LEVEL=SILENT "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=1536 -malloc_limit_mb=768 -max_len=65536 -print_final_stats=1 -close_fd_mask=1 \
    -artifact_prefix="build/fuzz/findings/$target-" ${dictionary:+-dict="$dictionary"} "${inputs[@]}" \
    > "$out" 2>&1 || {
    finding=$(sed -n 's/.*Test unit written to //p' "$out" | tail -n 1)
    status=1
    # Enough to try the input again where this folder is not at hand.
    grep -aE 'ERROR|runtime error|what\(\)|^Base64' "$out" | cut -c 1-100000 || true
  }
  covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$out" | tail -n 1)
  corpus=$(find "build/fuzz/corpus/$target" -type f | wc -l)
  rows+=("$(row "$target" "$(number "$out" number_of_executed_units)" "$(number "$out" average_exec_per_sec)" \
    "$covered" "$corpus" "$(number "$out" peak_rss_mb)" "${finding:-see $out}")")
done
row target executions exec/s edges corpus "peak MiB" finding
printf '%s\n' "${rows[@]}"
exit $status
