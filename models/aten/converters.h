// SPDX-License-Identifier: Apache-2.0
// The functions of registry(), by concern; each reads one operator of ATen.
#pragma once
#include "models/aten/program.h"

namespace zsq::models::aten {

// convert_layers.cpp
Value convert_conv2d(const Operation&);
Value convert_convolution(const Operation&);  // with the flag `transposed`
Value convert_batch_norm(const Operation&);
Value convert_native_batch_norm(const Operation&);  // a tuple, of which the rest is None
Value convert_layer_norm(const Operation&);
Value convert_native_layer_norm(const Operation&);  // a tuple, of which the rest is None
Value convert_linear(const Operation&);
Value convert_addmm(const Operation&);
Value convert_matmul(const Operation&);

// convert_elementwise.cpp
Value convert_relu(const Operation&);
Value convert_relu6(const Operation&);
Value convert_clamp(const Operation&);
Value convert_hardtanh(const Operation&);
Value convert_leaky_relu(const Operation&);
Value convert_sigmoid(const Operation&);
Value convert_silu(const Operation&);
Value convert_hardsigmoid(const Operation&);
Value convert_hardswish(const Operation&);
Value convert_gelu(const Operation&);
Value convert_softmax(const Operation&);
Value convert_add(const Operation&);
Value convert_sub(const Operation&);
Value convert_rsub(const Operation&);
Value convert_mul(const Operation&);
Value convert_div(const Operation&);
Value convert_dropout(const Operation&);
Value convert_same(const Operation&);  // contiguous, clone, detach, ...
Value convert_to(const Operation&);

// convert_pooling.cpp
Value convert_max_pool2d(const Operation&);
Value convert_max_pool2d_with_indices(const Operation&);  // a tuple with None for the indices
Value convert_avg_pool2d(const Operation&);
Value convert_adaptive_avg_pool2d(const Operation&);
Value convert_mean(const Operation&);
Value convert_upsample_nearest2d(const Operation&);

// convert_shape.cpp
Value convert_view(const Operation&);
Value convert_flatten(const Operation&);
Value convert_squeeze(const Operation&);
Value convert_unsqueeze(const Operation&);
Value convert_permute(const Operation&);
Value convert_transpose(const Operation&);
Value convert_t(const Operation&);
Value convert_channel_shuffle(const Operation&);
Value convert_pad(const Operation&);

// convert_parts.cpp
Value convert_cat(const Operation&);
Value convert_chunk(const Operation&);
Value convert_split(const Operation&);
Value convert_slice(const Operation&);
Value convert_select(const Operation&);

}  // namespace zsq::models::aten
