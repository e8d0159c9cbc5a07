# SPDX-License-Identifier: Apache-2.0
"""QONNX, the reader of QCDQ files, makes its Quant nodes of every chain, and computes the same.

usage: qonnx_of_qcdq.py model.onnx images.npz
Prints the widths of the Quant nodes in the order of the graph, and the largest difference of the logits to
onnxruntime's by the largest logit. Exits 77 without the package.
"""
import os
import sys

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy as np

from compare_with_onnxruntime import session as open_session

try:
    from qonnx.core.modelwrapper import ModelWrapper
    from qonnx.core import onnx_exec
    from qonnx.transformation.infer_shapes import InferShapes
    from qonnx.transformation.qcdq_to_qonnx import QCDQToQuant
except ImportError as error:
    print(error)
    sys.exit(77)


def of_known_version(make_model):
    """QONNX runs each node as a model of its own, of an IR version newer than onnxruntime knows."""
    def make(*arguments, **options):
        model = make_model(*arguments, **options)
        model.ir_version = 10
        return model
    return make


onnx_exec.qonnx_make_model = of_known_version(onnx_exec.qonnx_make_model)


def main(model_path, images_path):
    images = np.load(images_path)["images"][:1]
    expected = open_session(model_path).run(None, {"input": images})[0]
    model = ModelWrapper(model_path)
    model.set_tensor_shape("input", list(images.shape))
    model = model.transform(InferShapes()).transform(QCDQToQuant())
    left = [node.name for node in model.graph.node if node.op_type in ("QuantizeLinear", "DequantizeLinear")]
    if left:
        sys.exit(f"not converted: {left}")
    widths = [int(model.get_initializer(node.input[3])) for node in model.graph.node if node.op_type == "Quant"]
    logits = onnx_exec.execute_onnx(model, {"input": images})["logits"]
    print(*widths)
    print(np.abs(logits - expected).max() / np.abs(expected).max())


if __name__ == "__main__":
    main(*sys.argv[1:])
