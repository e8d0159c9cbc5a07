# SPDX-License-Identifier: Apache-2.0
"""What LiteRT's interpreter says of the layers of a .tflite file that zsq writes."""
import numpy as np

# Which dimension of the weight is the output channel.
CHANNEL_DIMENSION = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}


def multiplies_by_one_number(interpreter, op):
    """A mean or a HardSigmoid, written as a depthwise convolution."""
    return op["op_name"] == "DEPTHWISE_CONV_2D" and len(np.unique(interpreter.get_tensor(op["inputs"][1]))) == 1


def in_int8(interpreter):
    """For each convolution and linear layer, whether its input, weight and output are int8. Of an interpreter
    without delegates, which hide the operators that they take over."""
    types = {tensor["index"]: tensor["dtype"] for tensor in interpreter.get_tensor_details()}
    return [{types[i] for i in (*op["inputs"][:2], *op["outputs"])} == {np.int8}
            for op in interpreter._get_ops_details()
            if op["op_name"] in CHANNEL_DIMENSION and not multiplies_by_one_number(interpreter, op)]
