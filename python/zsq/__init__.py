# SPDX-License-Identifier: Apache-2.0
"""zsq: zero-shot quantization of image classifiers. A trained network in, a quantized one out, without data.

    import zsq

    report = zsq.quantize("resnet18.onnx", scheme="W8A8", output="out")
    print(report.verdict, report.agreement, report.path)

Everything is done by the engine, through the C interface of libzsq and, where that has no function, by the program
zsq: the same settings give the same bytes from here, from the shell and from C. docs/python.md describes all of it.
"""
from __future__ import annotations

from ._errors import ZsqError
from ._evaluation import Evaluation
from ._progress import Progress
from ._results import Check, Comparison, Export, Images, Inspection, Report, Result
from ._verbs import check, compare, evaluate, export, generate, inspect, quantize

__all__ = ["Check", "Comparison", "Evaluation", "Export", "Images", "Inspection", "Progress", "Report", "Result",
           "ZsqError", "check", "compare", "evaluate", "export", "generate", "inspect", "quantize"]


def __getattr__(name: str) -> str:
    """`zsq.__version__` asks the library, which is loaded when it is first needed."""
    if name == "__version__":
        from . import _library

        return _library.version()
    raise AttributeError(f"module 'zsq' has no attribute '{name}'")
