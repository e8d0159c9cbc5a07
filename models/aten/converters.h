// SPDX-License-Identifier: Apache-2.0
// The functions of registry(), by concern; each reads one operator of ATen.
#pragma once
#include "models/aten/program.h"

namespace zsq::models::aten {

// convert_layers.cpp
Value convert_conv2d(const Operation&);
Value convert_convolution(const Operation&);       // with the flag `transposed`
Value convert_convolution_mode(const Operation&);  // "same" or "valid" in place of pads
Value convert_batch_norm(const Operation&);
Value convert_native_batch_norm(const Operation&);  // a tuple, of which the rest is None
Value convert_conv1d(const Operation&);
Value convert_conv_transpose2d(const Operation&);
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
Value convert_remainder(const Operation&);
Value convert_dropout(const Operation&);
Value convert_native_dropout(const Operation&);  // a tuple, of which the rest is None
Value convert_same(const Operation&);            // contiguous, clone, detach, ...
Value convert_to(const Operation&);

// convert_pooling.cpp
Value convert_max_pool2d(const Operation&);
Value convert_max_pool2d_with_indices(const Operation&);  // a tuple with None for the indices
Value convert_avg_pool2d(const Operation&);
Value convert_adaptive_avg_pool2d(const Operation&);
Value convert_adaptive_max_pool2d(const Operation&);  // a tuple with None for the indices
Value convert_avg_pool3d(const Operation&);
Value convert_max_pool1d(const Operation&);
Value convert_avg_pool1d(const Operation&);
Value convert_adaptive_avg_pool1d(const Operation&);

// convert_resize.cpp
Value convert_upsample_nearest2d(const Operation&);
Value convert_upsample_nearest_exact2d(const Operation&);
Value convert_upsample_bilinear2d(const Operation&);
Value convert_upsample_bicubic2d(const Operation&);
Value convert_upsample_bilinear2d_aa(const Operation&);
Value convert_upsample_bicubic2d_aa(const Operation&);

// convert_functions.cpp
Value convert_function(const Operation&);  // any that ONNX has without a setting
Value convert_rsqrt(const Operation&);
Value convert_square(const Operation&);
Value convert_expm1(const Operation&);
Value convert_log1p(const Operation&);
Value convert_pow(const Operation&);
Value convert_elu(const Operation&);
Value convert_celu(const Operation&);
Value convert_softplus(const Operation&);
Value convert_log_sigmoid(const Operation&);
Value convert_log_sigmoid_forward(const Operation&);
Value convert_prelu(const Operation&);
Value convert_rrelu(const Operation&);
Value convert_exp2(const Operation&);
Value convert_log2(const Operation&);
Value convert_glu(const Operation&);
Value convert_log_softmax(const Operation&);

// convert_logic.cpp
Value convert_compare(const Operation&);  // of two tensors or numbers, and, or
Value convert_not(const Operation&);
Value convert_where(const Operation&);
Value convert_masked_fill(const Operation&);
Value convert_lerp(const Operation&);
Value convert_threshold(const Operation&);
Value convert_hardshrink(const Operation&);
Value convert_softshrink(const Operation&);

// convert_reduce.cpp
Value convert_mean(const Operation&);
Value convert_sum(const Operation&);
Value convert_amax(const Operation&);
Value convert_amin(const Operation&);
Value convert_prod(const Operation&);
Value convert_logsumexp(const Operation&);
Value convert_max(const Operation&);
Value convert_min(const Operation&);
Value convert_maximum(const Operation&);
Value convert_minimum(const Operation&);
Value convert_variance(const Operation&);
Value convert_deviation(const Operation&);
Value convert_variance_mean(const Operation&);
Value convert_deviation_mean(const Operation&);
Value convert_norm(const Operation&);
Value convert_cosine_similarity(const Operation&);
Value convert_weight_norm(const Operation&);

// convert_normalization.cpp
Value convert_layer_norm(const Operation&);
Value convert_native_layer_norm(const Operation&);
Value convert_rms_norm(const Operation&);
Value convert_group_norm(const Operation&);
Value convert_native_group_norm(const Operation&);
Value convert_instance_norm(const Operation&);

// convert_attention.cpp
Value convert_bmm(const Operation&);
Value convert_baddbmm(const Operation&);
Value convert_addcmul(const Operation&);
Value convert_addcdiv(const Operation&);
Value convert_attention(const Operation&);

Value convert_einsum(const Operation&);

// convert_rearranged.cpp
Value convert_expand(const Operation&);
Value convert_expand_as(const Operation&);
Value convert_repeat(const Operation&);
Value convert_tile(const Operation&);
Value convert_repeat_interleave(const Operation&);
Value convert_im2col(const Operation&);
Value convert_flip(const Operation&);
Value convert_index(const Operation&);
Value convert_view_as(const Operation&);
Value convert_unflatten(const Operation&);
Value convert_movedim(const Operation&);
Value convert_pixel_shuffle(const Operation&);
Value convert_pixel_unshuffle(const Operation&);
Value convert_stack(const Operation&);
Value convert_unbind(const Operation&);
Value convert_narrow(const Operation&);
Value convert_index_select(const Operation&);
Value convert_roll(const Operation&);
Value convert_full(const Operation&);
Value convert_full_like(const Operation&);
Value convert_zeros(const Operation&);
Value convert_ones(const Operation&);
Value convert_zeros_like(const Operation&);
Value convert_ones_like(const Operation&);
Value convert_arange(const Operation&);

// convert_shape.cpp
Value convert_view(const Operation&);
Value convert_flatten(const Operation&);
Value convert_squeeze(const Operation&);
Value convert_unsqueeze(const Operation&);
Value convert_permute(const Operation&);
Value convert_transpose(const Operation&);
Value convert_t(const Operation&);
Value convert_mt(const Operation&);  // the last two dimensions
Value convert_swapaxes(const Operation&);
Value convert_channel_shuffle(const Operation&);
Value convert_pad(const Operation&);
Value convert_reflection_pad(const Operation&);
Value convert_replication_pad(const Operation&);
Value convert_circular_pad(const Operation&);

// convert_parts.cpp
Value convert_cat(const Operation&);
Value convert_hstack(const Operation&);
Value convert_chunk(const Operation&);
Value convert_tensor_split(const Operation&);
Value convert_split(const Operation&);
Value convert_slice(const Operation&);
Value convert_select(const Operation&);

}  // namespace zsq::models::aten
