#!/usr/bin/env bash
# install_deps.sh [--notebook] [PACKAGE...]: installs what is missing: Debian packages (the PACKAGEs named, too),
# libtorch in .deps/torch, and in .deps/python a Python environment for tests and the quick start; with --notebook in
# .deps/notebook what executes notebooks (150 MB).
# Each part of .deps is built beside its place and then renamed, so an interrupted run leaves the old
# state or the new one.
# PYTHON=<interpreter> chooses the Python (3.11 to 3.14).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
notebook=
if [[ ${1:-} == --notebook ]]; then
  notebook=1
  shift
fi
pip_options=(--quiet --no-compile --root-user-action=ignore)

torch_packages=(torch==2.11.0)
torch_runtime=('nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*')
debian_packages=(
  g++ cmake ninja-build ccache mold pkg-config
  libopencv-dev libjpeg-dev libpng-dev libwebp-dev libboost-program-options-dev libyaml-cpp-dev nlohmann-json3-dev libprotozero-dev
  flatbuffers-compiler libflatbuffers-dev
  libzip-dev libssl-dev libgtest-dev libopenmpi-dev openmpi-bin
  python3 python3-venv python3-pip
  "$@"
)

say() { echo "install_deps: $*" >&2; }
fail() { say "$*"; exit 1; }

install_debian_packages() {
  if ! command -v dpkg-query > /dev/null; then
    say "not a Debian system; please see to it that these are there: ${debian_packages[*]}"
    return
  fi
  local missing=() package
  for package in "${debian_packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' ||
      missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  local as_root=()
  if [[ $EUID -ne 0 ]]; then
    command -v sudo > /dev/null ||
      fail "needs root or sudo to install: ${missing[*]}. Ask an administrator to install these."
    as_root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || fail "apt-get update failed: is the network reachable?"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null ||
    fail "apt-get could not install: ${missing[*]}"
}

check_python() {
  command -v "$python" > /dev/null || fail "$python not found; set PYTHON=<interpreter>"
  "$python" - << 'PY' || fail "needs CPython 3.11 to 3.14 on x86_64 Linux; set PYTHON=<interpreter>"
import platform, sys
fits = (3, 11) <= sys.version_info[:2] <= (3, 14) and platform.machine() == "x86_64"
if not fits:
    print(f"found Python {platform.python_version()} on {platform.machine()}", file=sys.stderr)
sys.exit(not fits)
PY
  "$python" -m pip --version > /dev/null 2>&1 || fail "$python has no pip; install python3-pip"
}

# install_part NAME WANTED COMMAND...: runs COMMAND FOLDER unless .deps/NAME was made from WANTED.
install_part() {
  local name=$1 wanted=$2 place=.deps/$1
  shift 2
  if [[ -f $place/.installed && $(< "$place/.installed") == "$wanted" ]]; then
    say "$place is up to date"
    return
  fi
  say "installing $place"
  rm -rf "$place.new" "$place.old"
  "$@" "$place.new" || { rm -rf "$place.new"; fail "could not install $place (reason above)"; }
  echo "$wanted" > "$place.new/.installed"
  [[ ! -e $place ]] || mv "$place" "$place.old"
  mv "$place.new" "$place"
  rm -rf "$place.old"
}

install_torch() {
  "$python" -m pip install "${pip_options[@]}" "${torch_options[@]}" --target "$1" \
    "${torch_packages[@]}"
}

# Scripts in bin/ carry the path they were installed under; only the interpreter survives the rename.
install_python() {
  "$python" -m venv --without-pip "$1" &&
    "$python" -m pip --python "$1/bin/python" install "${pip_options[@]}" --no-deps \
      --only-binary :all: --requirement scripts/requirements.txt &&
    find "$1/bin" -type f -delete
}

install_notebook() {
  "$python" -m pip install "${pip_options[@]}" --no-deps --only-binary :all: --target "$1" \
    --requirement scripts/requirements_notebook.txt
}

install_debian_packages
check_python
mkdir -p .deps
exec 9> .deps/.lock
flock 9

# Where there is an NVIDIA driver, libtorch's GPU half needs all the packages that the wheel asks for.
if ldconfig -p 2> /dev/null | grep -q 'libcuda\.so\.1 '; then
  torch_options=()
else
  torch_options=(--no-deps)
  torch_packages+=("${torch_runtime[@]}")
fi
abi=$("$python" -c 'import sys; print(sys.implementation.cache_tag)')
install_part torch "${torch_options[*]} ${torch_packages[*]}" install_torch
install_part python "$abi $(sha256sum < scripts/requirements.txt)" install_python
[[ -z $notebook ]] || install_part notebook "$abi $(sha256sum < scripts/requirements_notebook.txt)" install_notebook
say "done"
