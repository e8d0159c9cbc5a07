#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: PyTorch 2.11.0: torch.onnx.export(dynamo=True, training=..., do_constant_folding=False)
# Packages: torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 numpy==2.4.6
# Packages: typing-extensions==4.16.0 sympy==1.14.0 mpmath==1.3.0 networkx==3.6.1 jinja2==3.1.6
# Packages: MarkupSafe==3.0.4 fsspec==2026.9.0 filelock==4.2.11 onnxscript==0.7.2 onnx-ir==1.1.0
# Packages: onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 packaging==26.3
# Guess: training=TrainingMode.PRESERVE with do_constant_folding=False keeps BatchNormalization in the file, as
# | it has for years, or the exporter that no longer knows these options says so.
# Seen: with dynamo=True, the default, both are accepted and ignored without a warning: BatchNorm is folded into
# | the convolution even with TrainingMode.TRAINING, and its statistics are gone. What keeps it is
# | optimize=False, or the old exporter, which needs both options.
# Do: optimize=False, or dynamo=False with the two options; then look for BatchNormalization in the file.
# Output:
# > dynamo=True: Conv Relu
# > dynamo=True, training=PRESERVE, do_constant_folding=False: Conv Relu
# > dynamo=True, training=TRAINING, do_constant_folding=False: Conv Relu
# > dynamo=True, optimize=False: Conv BatchNormalization Relu
# > dynamo=False: Conv Relu
# > dynamo=False, training=PRESERVE, do_constant_folding=False: Identity Identity Conv BatchNormalization Relu
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Which nodes a Conv-BatchNorm-ReLU in eval() becomes."""
import contextlib
import ctypes
import io
import logging
import os
import pathlib
import re
import subprocess
import sys
import warnings

import numpy
import onnx


WORK = pathlib.Path(sys.argv[0]).resolve().parent


def import_torch():
    """PyTorch from its wheel alone: empty libraries stand in for those of CUDA that its loader asks for."""
    sys.setdlopenflags(os.RTLD_LAZY)
    source = WORK / "empty.c"
    source.write_text("int nvshmem_init, nvshmemi_device_only_state, nvshmemi_get_mem_handle;\n")
    while True:
        try:
            import torch
            return torch
        except (ImportError, OSError) as error:
            missing = re.search(r"(lib\S+\.so[.\d]*): cannot open", str(error))
            if not missing:
                raise
            library = WORK / missing[1]
            subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", f"-Wl,-soname,{missing[1]}", source, "-o",
                            library], check=True)
            ctypes.CDLL(str(library))
            for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
                del sys.modules[name]


torch = import_torch()
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
torch.manual_seed(0)


def exported(network, x, dynamo, **options):
    options |= {"external_data": False} if dynamo else {}
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(network, (x,), WORK / "network.onnx", dynamo=dynamo, **options)
    return onnx.load(WORK / "network.onnx")


network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).eval()
MODE = torch.onnx.TrainingMode
for dynamo, options in [(True, {}), (True, {"training": MODE.PRESERVE, "do_constant_folding": False}),
                        (True, {"training": MODE.TRAINING, "do_constant_folding": False}), (True, {"optimize": False}),
                        (False, {}), (False, {"training": MODE.PRESERVE, "do_constant_folding": False})]:
    nodes = [node.op_type for node in exported(network, torch.randn(1, 3, 8, 8), dynamo, **options).graph.node]
    given = ", ".join(f"{key}={getattr(value, 'name', value)}" for key, value in {"dynamo": dynamo, **options}.items())
    print(f"{given}: {' '.join(nodes)}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }
