# SPDX-License-Identifier: Apache-2.0
"""PyTorch's four ways out, as users take them."""
import contextlib
import io
import logging
import warnings

from with_torch import torch

SUFFIXES = {"legacy": ".legacy.onnx", "dynamo": ".dynamo.onnx", "trace": ".traced.pt", "pt2": ".pt2"}
NAMES = {"input_names": ["input"], "output_names": ["logits"]}


def legacy(net, x, path):
    torch.onnx.export(net, (x,), str(path), dynamo=False, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False, opset_version=17,
                      dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}}, **NAMES)


def dynamo(net, x, path):
    torch.onnx.export(net, (x,), str(path), dynamo=True, optimize=False, external_data=False,
                      dynamic_shapes=({0: torch.export.Dim("N")},), **NAMES)


def trace(net, x, path):
    torch.jit.trace(net, x, check_trace=False).save(str(path))


def pt2(net, x, path):
    program = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("N")},))
    torch.export.save(program, str(path))


EXPORTERS = {"legacy": legacy, "dynamo": dynamo, "trace": trace, "pt2": pt2}


def export(kind, net, x, path):
    """None, or why the exporter itself refuses."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), torch.no_grad(), contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            EXPORTERS[kind](net, x, path)
        return None
    except Exception as error:  # of many classes; what it says is the answer
        path.unlink(missing_ok=True)
        return (str(error).strip().splitlines() or [type(error).__name__])[0][:90]
    finally:
        logging.disable(logging.NOTSET)
