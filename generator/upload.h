// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::generator {

// A tensor on a device; itself if it lies there. From page-locked memory the copy is queued,
// and libtorch keeps that memory until it is done; from other memory the host would wait for all
// that is queued before it.
inline at::Tensor upload(const at::Tensor& drawn, c10::Device device) {
  if (device.is_cpu() || !drawn.is_cpu()) return drawn.to(device);
  return drawn.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace zsq::generator
