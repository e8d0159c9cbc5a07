// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "cuda_kernels/kl_divergence.h"
#include "models/execute.h"
#include "train/trainer.h"

namespace zsq::train {

Agreement measure_agreement(const models::Model& teacher, const quant::Student& student,
                            const generator::Generator& generator, std::int64_t images) {
  constexpr std::int64_t kBatch =
      64;  // the generator's BatchNorm wants a batch, so the last is whole
  const at::NoGradGuard no_grad;
  const auto graph = quant::fuse_activations(student.graph);
  Agreement sum;
  for (auto step = generator::Generator::kHeldOutSteps; sum.images < images; ++step) {
    const auto count = std::min(kBatch, images - sum.images);
    const auto batch = generator.forward(generator.draw(kBatch, step)).narrow(0, 0, count);
    const auto expected = models::execute(teacher.graph, teacher.parameters, batch);
    const auto answer = models::execute(graph, student.parameters, batch);
    sum.agreement += answer.argmax(1).eq(expected.argmax(1)).sum().item<double>();
    sum.kl +=
        cuda_kernels::kl_divergence(answer, expected, /*tau=*/1, /*divisor=*/1).item<double>();
    sum.images += count;
  }
  if (sum.images == 0) return sum;
  const auto n = static_cast<double>(sum.images);
  return {sum.agreement / n, sum.kl / n, sum.images};
}

}  // namespace zsq::train
