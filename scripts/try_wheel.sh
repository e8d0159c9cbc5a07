#!/usr/bin/env bash
# try_wheel.sh [--bare] [WHEEL]: installs the wheel (default: that of build/wheels) in an empty environment, with nothing of
# this tree in reach, quantizes a network from the shell, from Python and by the C interface, and says how long each step takes:
# the download apart, and installation with the first W8A8 file together.
# --bare: in a Debian that holds nothing but its base system and Python, made by debootstrap in a temporary folder; needs
# root. ALL_OF_TORCH=1: with the CUDA packages that PyTorch's wheel asks for, gigabytes which nothing loads on a CPU.
set -euo pipefail
bare=
if [[ ${1:-} == --bare ]]; then
  bare=1
  shift
fi
cd "$(dirname "$0")/.."
wheel=$(realpath "${1:-$(ls build/wheels/zsq-*.whl)}")
network=${NETWORK:-$PWD/build/networks/efficientnet_lite0.onnx}
[[ -f $network ]] || { echo "try_wheel: $network is missing: ctest --preset release -R make_networks" >&2; exit 2; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

if [[ $bare ]]; then
  command -v debootstrap > /dev/null || { echo "try_wheel: --bare needs debootstrap: apt-get install debootstrap" >&2; exit 2; }
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$release" "$place/root" > /dev/null
  mkdir -p "$place/root/try/scripts"
  cp "$0" "$place/root/try/scripts/"
  cp "$wheel" "$network" "$place/root/try/"
  cp -L /etc/ssl/certs/ca-certificates.crt "$place/root/etc/ssl/certs/"
  # In mount and process namespaces of its own, so that nothing of this machine is seen.
  unshare --mount --pid --fork --mount-proc="$place/root/proc" chroot "$place/root" env -i PATH=/usr/bin:/bin HOME=/root \
    NETWORK="/try/$(basename "$network")" ALL_OF_TORCH="${ALL_OF_TORCH:-}" \
    bash /try/scripts/try_wheel.sh "/try/$(basename "$wheel")"
  exit
fi
cd "$place"

# timed WHAT COMMAND...: seconds that pass, and those of processors, which others of this machine do not add to.
since_download='0 0'
timed() {
  local TIMEFORMAT='%R %U %S' seconds
  { time "${@:2}" 2>&3 >&4; } 3>&2 4>&1 2> seconds
  echo "try_wheel: $1 took $(shown < seconds)"
  since_download=$(echo "$since_download" | cat - seconds | awk '{passed += $1; used += $2 + $3} END {print passed, used}')
}
shown() { awk '{printf "%.1f s (%.1f s of processors)", $1, $2 + $3}'; }
python3 -m venv venv
export PATH=$place/venv/bin:/usr/bin:/bin XDG_CACHE_HOME=$place/cache
unset PYTHONPATH LD_LIBRARY_PATH ZSQ_LIBRARY ZSQ_PROGRAM
pip() { python -m pip --disable-pip-version-check --quiet "$@"; }
what=('torch==2.11.*')
options=()
if [[ ! ${ALL_OF_TORCH:-} ]]; then
  what+=('nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*')
  options=(--no-deps)
fi
timed "the download of $(printf '%s, ' "${what[@]%%=*}" | sed 's/, $//')" pip download "${options[@]}" --dest downloaded "${what[@]}"
du --human-readable --apparent-size --summarize downloaded "$wheel"
since_download='0 0'
timed "the installation" pip install --no-index --find-links downloaded "${options[@]}" "$wheel" "${what[@]}"
timed "W8A8 from the shell" zsq quantize "$network" --preset efficientnet_lite0 --scheme W8A8 --recipe instant \
  --quiet -o shell
echo "try_wheel: from pip install to the first W8A8 file $(echo "$since_download" | shown), download aside"
zsq --version
python -m zsq --version > /dev/null
timed "W8A8 from Python" python - "$network" << 'PY'
import importlib.metadata
import sys
import zsq
report = zsq.quantize(sys.argv[1], scheme="W8A8", recipe="instant", preset="efficientnet_lite0", output="python",
                      progress=False)
assert zsq.__version__ == importlib.metadata.version("zsq") == report["tool_version"]
print(zsq.__version__, report.verdict)
PY
timed "W8A8 by the C interface" python - "$network" << 'PY'
import ctypes
import pathlib
import sys
import zsq
library = ctypes.CDLL(str(pathlib.Path(zsq.__file__).parent / "lib/libzsq.so.0"))
job, error = ctypes.c_void_p(), ctypes.c_char_p()
def call(name, *arguments):
    if getattr(library, name)(*arguments, ctypes.byref(error)):
        sys.exit(error.value.decode())
call("zsq_job_new", b"instant", ctypes.byref(job))
call("zsq_job_set", job, b"scheme", b"W8A8")
call("zsq_job_set", job, b"data.preset", b"efficientnet_lite0")
call("zsq_quantize", job, sys.argv[1].encode(), b"c", None)
PY
sha256sum shell/model.onnx python/model.onnx c/model.onnx
cmp shell/model.onnx python/model.onnx
cmp shell/model.onnx c/model.onnx
echo "try_wheel: the same model.onnx from the shell, from Python and by the C interface"
