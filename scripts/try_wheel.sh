#!/usr/bin/env bash
# try_wheel.sh [WHEEL]: installs the wheel (default: that of build/wheels) in an empty environment, with nothing of
# this tree in reach, quantizes a network from Python and from the shell, and says how long each step takes.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$(realpath "${1:-$(ls build/wheels/zsq-*.whl)}")
network=$PWD/build/networks/efficientnet_lite0.onnx
[[ -f $network ]] || { echo "try_wheel: $network is missing: ctest --preset release -R make_networks" >&2; exit 2; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

timed() {
  local begin=$SECONDS
  "${@:2}"
  echo "try_wheel: $1 took $((SECONDS - begin)) s"
}
python3 -m venv venv
export PATH=$place/venv/bin:/usr/bin:/bin
unset PYTHONPATH LD_LIBRARY_PATH ZSQ_LIBRARY ZSQ_PROGRAM
pip() { python -m pip --disable-pip-version-check --quiet "$@"; }
# PyTorch without the CUDA libraries that it does not load on a CPU, gigabytes.
timed "PyTorch" pip install --no-deps torch==2.11.0 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*'
timed "the wheel" pip install --no-deps "$wheel"
zsq --version
timed "W8A8 from the shell" zsq quantize "$network" --preset efficientnet_lite0 --scheme W8A8 --recipe instant \
  --quiet -o shell
timed "W8A8 from Python" python - "$network" << 'PY'
import sys
import zsq
report = zsq.quantize(sys.argv[1], scheme="W8A8", recipe="instant", preset="efficientnet_lite0", output="python",
                      progress=False)
print(zsq.__version__, report.verdict)
PY
cmp shell/model.onnx python/model.onnx
echo "try_wheel: the same model.onnx from both"
