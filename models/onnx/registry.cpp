// SPDX-License-Identifier: Apache-2.0
// All operators of ONNX that are known.
#include "models/onnx/converters.h"

namespace zsq::models::onnx {

const std::map<std::string, Rule>& registry() {
  static const std::map<std::string, Rule> rules{
      {"Add", {convert_add, fold_add}},
      {"AveragePool", {convert_average_pool}},
      {"BatchNormalization", {convert_batch_normalization}},
      {"Cast", {convert_cast, fold_cast}},
      {"CastLike", {convert_cast_like}},
      {"Ceil", {nullptr, fold_ceil}},
      {"Clip", {convert_clip, fold_clip}},
      {"Concat", {convert_concat, fold_concat}},
      {"Constant", {nullptr, fold_constant}},
      {"ConstantOfShape", {nullptr, fold_constant_of_shape}},
      {"Conv", {convert_conv}},
      {"DequantizeLinear", {convert_dequantize_linear, fold_dequantize_linear}},
      {"Div", {convert_div, fold_div}},
      {"Dropout", {convert_identity, fold_identity}},
      {"Equal", {nullptr, fold_equal}},
      {"Erf", {convert_erf}},
      {"Expand", {nullptr, fold_expand}},
      {"Flatten", {convert_flatten}},
      {"Floor", {nullptr, fold_floor}},
      {"Gather", {convert_gather, fold_gather}},
      {"Gelu", {convert_gelu}},
      {"Gemm", {convert_gemm}},
      {"GlobalAveragePool", {convert_global_average_pool}},
      {"HardSigmoid", {convert_hard_sigmoid}},
      {"HardSwish", {convert_hard_swish}},
      {"Identity", {convert_identity, fold_identity}},
      {"LayerNormalization", {convert_layer_normalization}},
      {"LeakyRelu", {convert_leaky_relu}},
      {"MatMul", {convert_matmul}},
      {"Max", {convert_max, fold_max}},
      {"MaxPool", {convert_max_pool}},
      {"Min", {convert_min, fold_min}},
      {"Mul", {convert_mul, fold_mul}},
      {"Neg", {nullptr, fold_neg}},
      {"Pad", {convert_pad}},
      {"QuantizeLinear", {convert_quantize_linear, fold_quantize_linear}},
      {"ReduceMean", {convert_reduce_mean}},
      {"Range", {nullptr, fold_range}},
      {"Relu", {convert_relu}},
      {"Reshape", {convert_reshape, fold_reshape}},
      {"Resize", {convert_resize}},
      {"SequenceAt", {convert_sequence_at}},
      {"Shape", {convert_shape}},
      {"Sigmoid", {convert_sigmoid}},
      {"Slice", {convert_slice, fold_slice}},
      {"Softmax", {convert_softmax}},
      {"Split", {convert_split}},
      {"SplitToSequence", {convert_split_to_sequence}},
      {"Squeeze", {convert_squeeze, fold_squeeze}},
      {"Sub", {convert_sub, fold_sub}},
      {"Transpose", {convert_transpose, fold_transpose}},
      {"Unsqueeze", {convert_unsqueeze, fold_unsqueeze}},
      {"Upsample", {convert_resize}},
      {"Where", {nullptr, fold_where}},
  };
  return rules;
}

}  // namespace zsq::models::onnx
