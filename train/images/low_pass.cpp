// SPDX-License-Identifier: Apache-2.0
#include "train/images/low_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/fft_rfftfreq.h>

namespace zsq::train {

at::Tensor low_pass(const at::Tensor& images, double cutoff) {
  const auto height = images.size(2), width = images.size(3);
  const auto options = images.options();
  const auto u = at::fft_fftfreq(height, 1.0, options).mul(height).unsqueeze(1);
  const auto v = at::fft_rfftfreq(width, 1.0, options).mul(width);
  const auto gain = u.square().add(v.square()).div(-2 * cutoff * cutoff).exp();
  const auto filtered =
      at::fft_irfft2(at::fft_rfft2(images.contiguous()).mul(gain), {{height, width}});
  return filtered.contiguous(images.suggest_memory_format());
}

Batch low_pass(const Batch& batch, double cutoff, const models::Model& teacher,
               const std::vector<models::NodeId>& features, Precision precision) {
  const at::NoGradGuard no_grad;
  auto result = batch;
  result.images = low_pass(batch.images, cutoff);
  models::Taps taps{features, {}};
  result.logits =
      models::execute(teacher.graph, teacher.parameters, result.images, &taps, precision)
          .to(batch.logits.scalar_type());
  result.features = std::move(taps.values);
  return result;
}

}  // namespace zsq::train
