# SPDX-License-Identifier: Apache-2.0
"""What a model may be, a path, an ONNX model in memory or a PyTorch module, as a file that the engine reads."""
from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import tempfile
import warnings
from typing import Any, Iterator, Optional, TypeGuard, Union, cast

from ._errors import UNSUPPORTED_MODEL, ZsqError

#: A file, the folder of a run, an onnx.ModelProto, or a torch.nn.Module.
Model = Union[str, "os.PathLike[str]", Any]


def is_module(model: Model) -> TypeGuard[Any]:
    """A torch.nn.Module; torch is not imported to find that out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def is_proto(model: Model) -> TypeGuard[Any]:
    """An onnx.ModelProto, whichever module of onnx defines it."""
    return type(model).__name__ == "ModelProto" and hasattr(model, "SerializeToString")


def in_memory(model: Model) -> bool:
    return is_module(model) or is_proto(model)


def name_of(model: Model) -> str:
    """For the folder of a run: the stem of the file, the graph of a ModelProto, or the class of a module."""
    if is_module(model):
        return type(model).__name__
    if is_proto(model):
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in model.graph.name).strip("._")
        return name or "model"
    return pathlib.Path(os.fspath(model)).stem


@contextlib.contextmanager
def as_file(model: Model, example: Any = None, keep: Optional[pathlib.Path] = None) -> Iterator[str]:
    """The path of `model`; one in memory is written into the folder `keep`, or is there as long as the context."""
    if not in_memory(model):
        if not isinstance(model, (str, os.PathLike)):
            raise TypeError(f"a model is a path, an onnx.ModelProto or a torch.nn.Module, not {type(model).__name__}")
        if example is not None:
            raise TypeError("example is an input of a torch.nn.Module; a file says itself what its input is")
        yield os.fspath(model)
        return
    with contextlib.ExitStack() as stack:
        folder = keep or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zsq_")))
        folder.mkdir(parents=True, exist_ok=True)
        if is_module(model):
            yield str(_export(model, example, folder))
            return
        path, proto = folder / "original.onnx", cast(Any, model)
        path.write_bytes(proto.SerializeToString())
        yield str(path)


def _export(module: Any, example: Any, folder: pathlib.Path) -> pathlib.Path:
    """original.onnx, or original.pt2 if PyTorch's exporter to ONNX fails; the module has its modes back afterwards."""
    import torch

    if not isinstance(example, torch.Tensor) or example.dim() != 4:
        given = "no example" if example is None else f"{type(example).__name__} {tuple(getattr(example, 'shape', ()))}"
        raise TypeError(f"a torch.nn.Module needs example=, a tensor [N, C, H, W] as it takes; this is {given}")
    modes = [(part, part.training) for part in module.modules()]
    failures = []
    try:
        for write in (_to_onnx, _to_pt2):
            try:
                with torch.no_grad(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return write(torch, module.eval(), example, folder)
            except Exception as error:  # pylint: disable=broad-except  # of PyTorch: many types
                failures.append(f"{type(error).__name__}: {error}")
    finally:
        for part, training in modes:
            part.training = training
    raise ZsqError("PyTorch can export this module neither to ONNX (" + failures[0] + ") nor by torch.export (" +
                   failures[1] + ")", UNSUPPORTED_MODEL)


def _to_onnx(torch: Any, module: Any, example: Any, folder: pathlib.Path) -> pathlib.Path:
    """The line of `zsq inspect --doctor`: PRESERVE keeps BatchNorm, which the exporter otherwise folds."""
    path = folder / "original.onnx"
    torch.onnx.export(module, (example,), str(path), dynamo=False, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False, opset_version=17, input_names=["input"], output_names=["logits"],
                      dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}})
    return path


def _to_pt2(torch: Any, module: Any, example: Any, folder: pathlib.Path) -> pathlib.Path:
    """The same of torch.export, for which a size of 1 would be fixed."""
    path = folder / "original.pt2"
    two = example if example.shape[0] > 1 else torch.cat([example, example])
    shapes = ({0: torch.export.Dim("N")},)
    torch.export.save(torch.export.export(module, (two,), dynamic_shapes=shapes), str(path))
    return path
