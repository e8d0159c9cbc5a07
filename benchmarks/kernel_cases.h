// SPDX-License-Identifier: Apache-2.0
// Every kernel, on tensors of a size, as calls that can be timed.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace zsq::benchmarks {

struct KernelCase {
  std::string name, variant, pass, precision;  // as in KernelTime
  std::int64_t tensor_bytes = 0;
  int tensors_moved = 0;  // of that size, which a single pass has to read and write at least
  std::function<void()> run;
};

// The weights of a network, as large as those that are trained.
struct NetworkShapes {
  std::string name;
  std::vector<std::vector<std::int64_t>> weights;
};

// Of maps of so many bytes in f32 or bf16.
std::vector<KernelCase> activation_cases(std::int64_t bytes, at::ScalarType type,
                                         c10::Device device);
// Of one weight of so many bytes, and of all weights of a network at once and layer by layer.
std::vector<KernelCase> weight_cases(std::int64_t bytes, const NetworkShapes& network,
                                     c10::Device device);
// Of logits of 1,000 classes.
std::vector<KernelCase> logit_cases(std::int64_t bytes, c10::Device device);

}  // namespace zsq::benchmarks
