# SPDX-License-Identifier: Apache-2.0
"""One step of a random network each: operators of ONNX with attributes, shapes and constants drawn at random.

A step is a function of the network that is being drawn; it adds nodes behind `net.x` (shape `net.shape`, the batch
first) and returns the new name, or None where it does not fit. What onnxruntime refuses is drawn again, so that a step
need not know every rule.
"""
from drawn_functions import (clip, gate, gelu, nothing, of_several, of_two, prelu, relu6_in_parts, selu_hard_sigmoid,
    silu_in_parts, unary, with_alpha, with_constant)
from drawn_layers import (batch_norm, conv, deconv, gemm, global_pool, group_norm, instance_norm, layer_norm,
    layer_norm_in_parts, matmul_constant, matmul_two, pool, reduction, response_norm, softmax)
from drawn_resizes import resize, upsample
from drawn_shapes import (channels_last_part, chosen, concat, cut, einsum, expand, flatten, gather, pad, rearranged,
    reshape, sequence, shape_arithmetic, split, squeeze, tile, tokens, transpose)

STEPS = {
    unary: 3, with_alpha: 1, selu_hard_sigmoid: 1, gelu: 1, silu_in_parts: 1, clip: 1, relu6_in_parts: 1, nothing: .5,
    prelu: 1, with_constant: 5, of_two: 3, of_several: 1, gate: 3, conv: 4, deconv: 1.5, pool: 4, global_pool: .5,
    batch_norm: 2, instance_norm: 1, group_norm: 1, layer_norm: 1, layer_norm_in_parts: 1, response_norm: 1,
    matmul_constant: 3, matmul_two: 1, gemm: 2, reduction: 3, softmax: 1, flatten: .5, reshape: 2, squeeze: 1,
    transpose: 1, channels_last_part: 3, tokens: 2, concat: 2, cut: 2, split: 2, gather: 1, pad: 2, expand: 1, tile: 1,
    rearranged: 1.5, resize: 3, upsample: 2, shape_arithmetic: 1, sequence: .3, chosen: 1.5, einsum: 1,
}
