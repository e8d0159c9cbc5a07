# SPDX-License-Identifier: Apache-2.0
"""PyTorch: an installed one, or that of .deps, which lacks the CUDA packages."""
import importlib.util
import pathlib
import sys

if importlib.util.find_spec("torch") is None:
    NETWORKS = pathlib.Path(__file__).resolve().parents[1] / "networks"
    sys.path.append(str(NETWORKS))
    import torch_without_cuda

    torch_without_cuda.prepare(NETWORKS.parents[1] / "build/torch_without_cuda")

import torch  # noqa: E402 the name that others take from here

__all__ = ["torch"]
