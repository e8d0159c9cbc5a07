#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: PyTorch 2.11.0: torch.backends.cudnn.conv.fp32_precision and torch.export
# Packages: torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 numpy==2.4.6
# Packages: typing-extensions==4.16.0 sympy==1.14.0 mpmath==1.3.0 networkx==3.6.1 jinja2==3.1.6
# Packages: MarkupSafe==3.0.4 fsspec==2026.9.0 filelock==4.2.11
# Guess: whoever sets precision by the switches that the documentation recommends, fp32_precision, and never by
# | the older allow_tf32, mixes nothing; on a machine without a GPU they change nothing at all.
# Seen: convolutions (or RNNs) of cuDNN set to "ieee", torch.export.export() ends with a RuntimeError of "a mix of
# | the legacy and new APIs", on a CPU, too: it asks the older switch, which covers both kinds and is still True.
# | The switches for all operators and for matrix products are free of that. They are the process's: a library
# | that sets one breaks the export of the program that loaded it.
# Do: set torch.backends.cudnn.allow_tf32, too (at::Context::setAllowTF32CuDNN in C++), before the new switch.
# Output:
# > nothing: exported
# > cudnn.conv.fp32_precision = "ieee": RuntimeError
# > cudnn.rnn.fp32_precision = "ieee": RuntimeError
# > cudnn.conv.fp32_precision = "tf32": exported
# > cuda.matmul.fp32_precision = "ieee": exported
# > fp32_precision = "ieee": exported
# > cudnn.allow_tf32 = False; cudnn.conv.fp32_precision = "ieee": exported
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Whether torch.export.export() works after each assignment, each in a process of its own."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys

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
network, x = torch.nn.Conv2d(3, 4, 3).eval(), torch.zeros(1, 3, 8, 8)
for switches in ["", 'cudnn.conv.fp32_precision = "ieee"', 'cudnn.rnn.fp32_precision = "ieee"',
                 'cudnn.conv.fp32_precision = "tf32"', 'cuda.matmul.fp32_precision = "ieee"', 'fp32_precision = "ieee"',
                 'cudnn.allow_tf32 = False; cudnn.conv.fp32_precision = "ieee"']:
    child = os.fork()
    if child == 0:
        for switch in filter(None, switches.split("; ")):
            exec("torch.backends." + switch)
        try:
            torch.export.export(network, (x,))
            result = "exported"
        except RuntimeError as error:
            result = type(error).__name__ if "a mix of the legacy and new APIs" in str(error) else str(error)
        print(f"{switches or 'nothing'}: {result}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }
