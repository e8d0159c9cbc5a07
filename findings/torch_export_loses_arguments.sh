#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: PyTorch 2.11.0: torch.onnx.export, both exporters, read by onnxruntime 1.31.1
# Packages: torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 numpy==2.4.6
# Packages: typing-extensions==4.16.0 sympy==1.14.0 mpmath==1.3.0 networkx==3.6.1 jinja2==3.1.6
# Packages: MarkupSafe==3.0.4 fsspec==2026.9.0 filelock==4.2.11 onnxscript==0.7.2 onnx-ir==1.1.0
# Packages: onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 packaging==26.3
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19
# Guess: an argument that ONNX has no attribute for is written with more nodes or refused, as both exporters do
# | with dozens of others.
# Seen: avg_pool2d's divisor_override is lost in both: AveragePool divides by the size of the kernel.
# | interpolate(antialias=True, scale_factor=...) is written by the new exporter with the rounded size, so that
# | other pixels are averaged. The old one writes softplus without its threshold and // as division that
# | truncates, off by one for negative values. Nothing is said, and the files are valid.
# Do: multiply by kernel size over divisor yourself, give interpolate sizes, and compare each export with
# | onnxruntime.
# Output:
# > avg_pool2d(x, 3, divisor_override=2), dynamo=True: 0.78
# > avg_pool2d(x, 3, divisor_override=2), dynamo=False: 0.78
# > avg_pool2d(x, 3), dynamo=True: equal
# > avg_pool2d(x, 3), dynamo=False: equal
# > interpolate(x, scale_factor=0.45, antialias), dynamo=True: 0.77
# > interpolate(x, size=4, antialias), dynamo=True: equal
# > softplus(x, threshold=1), dynamo=True: equal
# > softplus(x, threshold=1), dynamo=False: 0.09
# > x // 0.7, dynamo=True: equal
# > x // 0.7, dynamo=False: 0.25
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Largest difference between the module and its file, relative to the module's largest value."""
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
import onnxruntime


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


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


F = torch.nn.functional
x = torch.randn(1, 2, 10, 10)
for name, function, exporters in [
        ("avg_pool2d(x, 3, divisor_override=2)", lambda x: F.avg_pool2d(x, 3, divisor_override=2), (True, False)),
        ("avg_pool2d(x, 3)", lambda x: F.avg_pool2d(x, 3), (True, False)),
        ("interpolate(x, scale_factor=0.45, antialias)",
         lambda x: F.interpolate(x, scale_factor=0.45, mode="bilinear", antialias=True), (True,)),
        ("interpolate(x, size=4, antialias)", lambda x: F.interpolate(x, size=4, mode="bilinear", antialias=True), (True,)),
        ("softplus(x, threshold=1)", lambda x: F.softplus(x, threshold=1), (True, False)),
        ("x // 0.7", lambda x: x // 0.7, (True, False))]:
    truth = function(x).numpy()
    for dynamo in exporters:
        model = exported(Function(function), x, dynamo)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        answer = session.run(None, {model.graph.input[0].name: x.numpy()})[0]
        difference = abs(answer - truth).max() / abs(truth).max()
        print(f"{name}, dynamo={dynamo}: {'equal' if difference < 1e-5 else f'{difference:.2f}'}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }
