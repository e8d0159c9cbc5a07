// SPDX-License-Identifier: Apache-2.0
// All operators of ATen that are known on tensors; those on numbers are in scalars.cpp.
#include <iterator>
#include <utility>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

constexpr const char* kConvolution =
    "input weight bias stride padding dilation transposed output_padding groups benchmark "
    "deterministic cudnn_enabled allow_tf32";
constexpr const char* kNormalization =
    "input weight bias running_mean running_var training momentum eps cudnn_enabled";
constexpr const char* kMaxPool = "self kernel_size stride padding dilation ceil_mode";

constexpr std::pair<const char*, Rule> kRules[] = {
    {"_adaptive_avg_pool2d", {convert_adaptive_avg_pool2d, "self output_size"}},
    {"_convolution", {convert_convolution, kConvolution}},
    {"_native_batch_norm_legit", {convert_native_batch_norm, kNormalization}},
    {"_native_batch_norm_legit_no_training",
     {convert_native_batch_norm, "input weight bias running_mean running_var momentum eps"}},
    {"_softmax", {convert_softmax, "self dim half_to_float"}},
    {"_to_copy", {convert_to, "self dtype layout device pin_memory non_blocking memory_format"}},
    {"_unsafe_view", {convert_view, "self size", true}},
    {"adaptive_avg_pool2d", {convert_adaptive_avg_pool2d, "self output_size"}},
    {"add", {convert_add, "self other alpha"}},
    {"addmm", {convert_addmm, "self mat1 mat2 beta alpha"}},
    {"alias", {convert_same, "self", true}},
    {"alpha_dropout", {convert_dropout, "input p train"}},
    {"avg_pool2d",
     {convert_avg_pool2d,
      "self kernel_size stride padding ceil_mode count_include_pad divisor_override"}},
    {"batch_norm", {convert_batch_norm, kNormalization}},
    {"cat", {convert_cat, "tensors dim"}},
    {"channel_shuffle", {convert_channel_shuffle, "self groups"}},
    {"chunk", {convert_chunk, "self chunks dim", true}},
    {"clamp", {convert_clamp, "self min max"}},
    {"clamp_max", {convert_clamp, "self max"}},
    {"clamp_min", {convert_clamp, "self min"}},
    {"clone", {convert_same, "self memory_format"}},
    {"concat", {convert_cat, "tensors dim"}},
    {"constant_pad_nd", {convert_pad, "self pad value"}},
    {"contiguous", {convert_same, "self memory_format", true}},
    {"conv2d", {convert_conv2d, "input weight bias stride padding dilation groups"}},
    {"convolution", {convert_convolution, kConvolution}},
    {"detach", {convert_same, "self", true}},
    {"div", {convert_div, "self other rounding_mode"}},
    {"dropout", {convert_dropout, "input p train"}},
    {"feature_dropout", {convert_dropout, "input p train"}},
    {"flatten", {convert_flatten, "self start_dim end_dim", true}},
    {"gelu", {convert_gelu, "self approximate"}},
    {"hardsigmoid", {convert_hardsigmoid, "self"}},
    {"hardswish", {convert_hardswish, "self"}},
    {"hardtanh", {convert_hardtanh, "self min_val max_val"}},
    {"layer_norm", {convert_layer_norm, "input normalized_shape weight bias eps cudnn_enable"}},
    {"leaky_relu", {convert_leaky_relu, "self negative_slope"}},
    {"lift_fresh_copy", {convert_same, "self"}},
    {"linear", {convert_linear, "input weight bias"}},
    {"matmul", {convert_matmul, "self other"}},
    {"max_pool2d", {convert_max_pool2d, kMaxPool}},
    {"max_pool2d_with_indices", {convert_max_pool2d_with_indices, kMaxPool}},
    {"mean", {convert_mean, "self dim keepdim dtype"}},
    {"mm", {convert_matmul, "self other"}},
    {"mul", {convert_mul, "self other"}},
    {"native_batch_norm", {convert_native_batch_norm, kNormalization}},
    {"native_layer_norm", {convert_native_layer_norm, "input normalized_shape weight bias eps"}},
    {"pad", {convert_pad, "self pad mode value"}},
    {"permute", {convert_permute, "self dims", true}},
    {"relu", {convert_relu, "self"}},
    {"relu6", {convert_relu6, "self"}},
    {"reshape", {convert_view, "self shape", true}},
    {"rsub", {convert_rsub, "self other alpha"}},
    {"select", {convert_select, "self dim index", true}},
    {"sigmoid", {convert_sigmoid, "self"}},
    {"silu", {convert_silu, "self"}},
    {"slice", {convert_slice, "self dim start end step", true}},
    {"softmax", {convert_softmax, "self dim dtype"}},
    {"split", {convert_split, "self split_size dim", true}},
    {"split_with_sizes", {convert_split, "self split_sizes dim", true}},
    {"squeeze", {convert_squeeze, "self dim", true}},
    {"sub", {convert_sub, "self other alpha"}},
    {"t", {convert_t, "self", true}},
    {"to", {convert_to, "self dtype non_blocking copy memory_format", true}},
    {"transpose", {convert_transpose, "self dim0 dim1", true}},
    {"unsqueeze", {convert_unsqueeze, "self dim", true}},
    {"upsample_nearest2d", {convert_upsample_nearest2d, "input output_size scales_h scales_w"}},
    {"view", {convert_view, "self size", true}},
};

}  // namespace

const std::map<std::string, Rule>& registry() {
  static const std::map<std::string, Rule> rules(std::begin(kRules), std::end(kRules));
  return rules;
}

}  // namespace zsq::models::aten
