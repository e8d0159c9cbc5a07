// SPDX-License-Identifier: Apache-2.0
// Rules that find ranges. Each is a pure function or a small accumulator; the registry of
// activation rules is range_observer() in ranges.cpp.
#pragma once
#include <functional>
#include <memory>

#include "cuda_kernels/weight_range.h"
#include "quant/calibration/histogram.h"
#include "quant/student.h"

namespace zsq::quant {

// Weight grid by rule: min_max, or mse: per channel the pair (lo, hi) = r * (min, max), r in
// {1, 0.99, ..., 0.3}, with the smallest squared error of fake-quantization (Banner et al.
// 1810.05723 motivates clipping; search as in LAPQ/BRECQ initialisation).
cuda_kernels::Grid weight_grid(const at::Tensor& weight, const QuantizerSpec& spec,
                               bool per_channel, WeightRange rule);

// The range with the smallest mean of |fake-quantized value - value|^power: (lo, hi) = r * (min,
// max), then either end alone, r in {1, 0.99, ..., 0.01}. Not finite where a value was not.
std::pair<double, double> least_error_range(const Histogram& histogram, const QuantizerSpec& spec,
                                            double power);

// Takes batches of one activation, answers the range.
class RangeObserver {
 public:
  virtual ~RangeObserver() = default;
  virtual void observe(const at::Tensor& x) = 0;
  virtual std::pair<double, double> range() const = 0;  // lo <= 0 <= hi is not required
};
// ema (biased accumulator, debiased on read), min_max, percentile (histogram), mse
// (least_error_range, power 2). A range that is not finite tells of such a value among those seen.
std::unique_ptr<RangeObserver> range_observer(const ActivationOptions& options,
                                              const QuantizerSpec& spec);

// Takes the ranges of all activation quantizers. `next_batch` gives [N, C, H, W] images until
// options.calibration_images are seen. bn_statistics uses no image: least_error_range() of the
// distributions of quant/data_free/moments.h, with the fourth power of the error, at 8 bits the
// fifth, for the network's input the second. Quantizers upstream are active while later ones are
// observed only for the weights; activations are observed unquantized. Networks' input:
// options.image_lo/hi where known.
void calibrate(Student& student, const std::function<at::Tensor()>& next_batch);
// The same on these images, all of them or, where those are fewer, options.calibration_images.
void calibrate(Student& student, const at::Tensor& images, std::int64_t batch_size);

}  // namespace zsq::quant
