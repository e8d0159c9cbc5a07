// SPDX-License-Identifier: Apache-2.0
// The functions of registry(), by concern; each reads one operator of the ONNX specification.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// convert_layers.cpp
void convert_conv(Call&);
void convert_batch_normalization(Call&);
void convert_gemm(Call&);
void convert_matmul(Call&);

// convert_normalization.cpp
void convert_layer_normalization(Call&);
void convert_rms_normalization(Call&);
void convert_instance_normalization(Call&);
void convert_group_normalization(Call&);
void convert_lp_normalization(Call&);

// convert_elementwise.cpp
void convert_add(Call&);
void convert_sub(Call&);
void convert_mul(Call&);
void convert_div(Call&);
void convert_pow(Call&);
void convert_sum(Call&);
void convert_mean(Call&);
void convert_clip(Call&);
void convert_min(Call&);
void convert_max(Call&);
void convert_prelu(Call&);
void convert_identity(Call&);  // Dropout too
void convert_cast(Call&);

// convert_functions.cpp
std::vector<std::string> function_names();  // of the operators that these two read
void convert_function(Call&);
at::Tensor fold_function(const Call&);
void convert_swish(Call&);

// convert_reduce.cpp
void convert_reduce(Call&);  // each Reduce operator but the next
void convert_reduce_log_sum_exp(Call&);
void convert_global_max_pool(Call&);
void convert_softmax(Call&);
void convert_log_softmax(Call&);
at::Tensor fold_reduce(const Call&);

// convert_rearranged.cpp
void convert_depth_to_space(Call&);
void convert_space_to_depth(Call&);

// convert_transposed.cpp, convert_response.cpp, convert_resize.cpp, convert_pad.cpp
void convert_conv_transpose(Call&);
void convert_lrn(Call&);
void convert_resize(Call&);  // Upsample too
void convert_pad(Call&);

// convert_pooling.cpp
void convert_max_pool(Call&);
void convert_average_pool(Call&);
void convert_global_average_pool(Call&);

// convert_shape.cpp
// The one way to a new shape: nothing, Flatten or Reshape. `dims` are those after the batch.
void reshape_to(Call& call, NodeId x, const std::vector<std::int64_t>& dims);
void convert_shape(Call&);
void convert_flatten(Call&);
void convert_reshape(Call&);
void convert_squeeze(Call&);
void convert_unsqueeze(Call&);
void convert_transpose(Call&);
void convert_concat(Call&);

// convert_repeats.cpp
void convert_gather(Call&);
void convert_gather_nd(Call&);  // along one dimension
void convert_expand(Call&);
void convert_tile(Call&);

// convert_logic.cpp
void convert_compare(Call&);  // Greater, GreaterOrEqual, Less, LessOrEqual
void convert_logical(Call&);  // And, Or
void convert_not(Call&);
void convert_where(Call&);
bool cast_condition(Call&);  // false: input 0 is not 1 or 0

// convert_einsum.cpp
void convert_einsum(Call&);

// convert_slices.cpp
void convert_slice(Call&);
at::Tensor fold_slice(const Call&);
void convert_split(Call&);
void convert_split_to_sequence(Call&);
void convert_sequence_at(Call&);

// convert_quantized.cpp
void convert_quantize_linear(Call&);
void convert_dequantize_linear(Call&);
bool narrow_quantized(Call&, double lo, double hi);  // false: input 0 is not in integers

// fold_arithmetic.cpp
at::Tensor fold_add(const Call&);
at::Tensor fold_sub(const Call&);
at::Tensor fold_mul(const Call&);
at::Tensor fold_div(const Call&);
at::Tensor fold_min(const Call&);
at::Tensor fold_max(const Call&);
at::Tensor fold_clip(const Call&);
at::Tensor fold_sum(const Call&);
at::Tensor fold_mean(const Call&);
at::Tensor fold_neg(const Call&);
at::Tensor fold_abs(const Call&);
at::Tensor fold_range(const Call&);
at::Tensor fold_equal(const Call&);
at::Tensor fold_where(const Call&);
at::Tensor fold_quantize_linear(const Call&);
at::Tensor fold_dequantize_linear(const Call&);

// fold_logic.cpp
at::Tensor fold_compare(const Call&);  // Greater, GreaterOrEqual, Less, LessOrEqual
at::Tensor fold_logical(const Call&);  // And, Or, Xor
at::Tensor fold_not(const Call&);
at::Tensor fold_mod(const Call&);
at::Tensor fold_pow(const Call&);
at::Tensor fold_cumulative_sum(const Call&);
at::Tensor fold_size(const Call&);
at::Tensor fold_tile(const Call&);
at::Tensor fold_matmul(const Call&);

// fold_tensors.cpp
at::Tensor fold_softmax(const Call&);  // LogSoftmax too
at::Tensor fold_reduce_log_sum_exp(const Call&);
at::Tensor fold_pad(const Call&);
at::Tensor fold_flatten(const Call&);
at::Tensor fold_batch_normalization(const Call&);

// fold_layout.cpp
at::Tensor fold_constant(const Call&);
at::Tensor fold_constant_of_shape(const Call&);
at::Tensor fold_identity(const Call&);
at::Tensor fold_cast(const Call&);
at::Tensor fold_gather(const Call&);
at::Tensor fold_unsqueeze(const Call&);
at::Tensor fold_squeeze(const Call&);
at::Tensor fold_concat(const Call&);
at::Tensor fold_reshape(const Call&);
at::Tensor fold_transpose(const Call&);
at::Tensor fold_expand(const Call&);
void convert_cast_like(Call&);  // its second input gives a type only

}  // namespace zsq::models::onnx
