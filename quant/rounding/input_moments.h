// SPDX-License-Identifier: Apache-2.0
// What a layer reads, as its weights meet it: for each group the K = in / groups * kh * kw values
// of a patch, in the order of the weight's last dimensions; zeros of the padding take part.
#pragma once
#include <ATen/core/Generator.h>

#include "quant/rounding/depthwise_moments.h"

namespace zsq::quant {

// Over patches x of the float network and those x^ of the student at the same places, both without
// their means. f64 [G, K, K] and [G, K].
struct InputMoments {
  at::Tensor quantized;  // E x^ x^^T
  at::Tensor mixed;      // E x x^^T
  at::Tensor variance;   // E x^2
};

// The same with x and x^ of each input channel scaled by one factor (at most 8), so that x has the
// variance f64 [C] that is known of it: made images serve for correlations alone.
InputMoments with_variance(const InputMoments& moments, const at::Tensor& variance);

// Batch after batch, in bounded memory. Of each image at most `positions` patches, drawn again for
// each batch.
class InputMomentsSum {
 public:
  // `weight` [out, in / groups, kh, kw] of a Conv2d or [out, in] of a Linear.
  InputMomentsSum(models::Node layer, const at::Tensor& weight, std::int64_t positions,
                  std::uint64_t seed);
  // x, x_hat f32: the layer's inputs for the same images.
  void add(const at::Tensor& x, const at::Tensor& x_hat);
  // Of at least one patch.
  InputMoments moments() const;

 private:
  struct Places {
    at::Tensor drawn;  // i64, in rows of `columns`
    std::int64_t columns;
  };
  Places draw_places(const models::Conv2d& conv, const at::Tensor& x);
  void add_patches(const at::Tensor& x, const at::Tensor& x_hat);
  void add_depthwise(const models::Conv2d& conv, const at::Tensor& x, const at::Tensor& x_hat);
  void begin(std::int64_t groups, std::int64_t taps, at::Device device);

  models::Node layer_;
  std::vector<std::int64_t> weight_shape_;
  std::int64_t positions_;
  at::Generator draws_;
  // Patches are taken relative to the means of the first batch: where a mean is large beside the
  // deviation, f32 products would lose the latter.
  at::Tensor origin_, float_origin_;
  PatchSums sums_;
  std::int64_t patches_ = 0;
};

}  // namespace zsq::quant
