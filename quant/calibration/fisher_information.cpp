// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/fisher_information.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/seed.h"
#include "losses/divergence.h"
#include "models/execute.h"

namespace zsq::quant {

std::vector<at::Tensor> fisher_information(const models::Model& model,
                                           const std::vector<models::NodeId>& nodes,
                                           const at::Tensor& images, std::int64_t batch_size,
                                           std::uint64_t seed) {
  auto draws = at::detail::createCPUGenerator(stream_seed(seed, "fisher", 0));
  std::vector<at::Tensor> sums(nodes.size());
  const at::AutoGradMode with_gradients(true);
  for (const auto& batch : images.split(batch_size)) {
    models::Taps taps{nodes, {}};
    const auto logits = models::execute(model.graph, model.parameters,
                                        batch.detach().clone().requires_grad_(true), &taps);
    const auto gradients = torch::autograd::grad(
        {losses::drawn_log_likelihood(model.graph.signature.kind, logits, draws)}, taps.values);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto sum = gradients[i].square().sum({0, 2, 3}, false, at::kDouble).cpu();
      sums[i] = sums[i].defined() ? sums[i] + sum : sum;
    }
  }
  for (auto& sum : sums) sum.div_(images.size(0));
  return sums;
}

}  // namespace zsq::quant
