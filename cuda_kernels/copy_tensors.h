// SPDX-License-Identifier: Apache-2.0
// Copies of many tensors at once: on a GPU a few launches, whatever their number.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace zsq::cuda_kernels {

// targets[i] becomes sources[i]: of the same shape, type and device, both dense and in one memory
// order. All lie on one device.
void copy_tensors_(const std::vector<at::Tensor>& targets, const std::vector<at::Tensor>& sources);

// The same where `flag` (bool [], on that device) is set; else nothing is read or written. A GPU is
// not waited for.
void copy_tensors_where_(const at::Tensor& flag, const std::vector<at::Tensor>& targets,
                         const std::vector<at::Tensor>& sources);

}  // namespace zsq::cuda_kernels
