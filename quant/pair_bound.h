// SPDX-License-Identifier: Apache-2.0
// Weights whose products cannot saturate. On x86 processors without VNNI, runtimes multiply
// unsigned codes of activations by signed codes of weights with vpmaddubsw, which adds the products
// of two neighbours in 16 bits and cuts the sum off at 32767. Neighbours are the codes 2j and 2j +
// 1 of an output channel in the order (kernel row, kernel column, input channel within the group),
// channel fastest; an odd number of channels lets a pair cross kernel positions, and the last code
// of an odd row is alone. For activations up to a, two neighbours of one sign must satisfy
//   a (|c1| + |c2|) <= 32767,   for a = 255:  |c1| + |c2| <= 128.
// The bound is part of the weight's quantizer: where nearest rounding would break it, both codes
// give way equally (the nearest point of the set that is allowed, rounded within it).
// Measured with onnxruntime 1.31.1 and OpenVINO 2026.4.1 (docs/formats.md).
#pragma once
#include "cuda_kernels/weight_range.h"
#include "quant/student.h"

namespace zsq::quant {

// What |c1| + |c2| may be where activations have codes up to `largest_activation`.
constexpr std::int64_t pair_bound(std::int64_t largest_activation) {
  return 32767 / largest_activation;
}

// The bound of a layer whose input has this quantizer, null: none; 0 where products do not
// saturate, in depthwise convolutions and for codes of a few bits.
std::int64_t pair_bound_of_layer(const models::Node& layer, const at::Tensor& weight,
                                 const ActivationQuantizer* input);

// What a grid has for each row, [C], or for all, [], in a shape that broadcasts to a weight [C,
// ...] of so many dimensions.
at::Tensor along_rows(const at::Tensor& t, std::int64_t dims);

// A weight f32 [out, in / groups, kh, kw] or [out, in] as [out, 2, pairs]: first and second
// neighbours. The second one of the last pair of an odd row is 0.
at::Tensor to_pairs(const at::Tensor& weight);
// The inverse, for a weight of the shape of `like`.
at::Tensor from_pairs(const at::Tensor& pairs, const at::Tensor& like);

// By what factor the scale of each row must be at least multiplied for no pair to be beyond the
// bound, >= 1. pairs f32 [R, 2, P], scale f32 [R] -> f32 [R].
at::Tensor pair_factor(const at::Tensor& pairs, const at::Tensor& scale, std::int64_t bound);

// The weight, with those replaced that nearest rounding on the grid would carry beyond
// spec.pair_bound: by the codes that they get instead, times the scale. Gradients pass.
at::Tensor keep_pairs(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                      const QuantizerSpec& spec);

// What each code may be, q - zero_point, so that any choice within keeps the bound: what neither
// neighbour of a pair needs is shared between them. f32, [] or [C, 1, ...] without a bound, else of
// the weight's shape.
struct CodeLimits {
  at::Tensor lowest, highest;
};
CodeLimits code_limits(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                       const QuantizerSpec& spec);

// Whether a pair of these codes, q - zero_point, int, [out, ...], is beyond the bound.
bool breaks_pair_bound(const at::Tensor& codes, std::int64_t bound);

}  // namespace zsq::quant
