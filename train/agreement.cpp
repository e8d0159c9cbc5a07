// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "cuda_kernels/kl_divergence.h"
#include "models/execute.h"
#include "train/trainer.h"

namespace zsq::train {
namespace {

constexpr std::int64_t kBatch =
    64;  // the generator's BatchNorm wants a batch, so the last is whole

// next_batch(n) gives n images.
template <class NextBatch>
Agreement measure(const models::Model& teacher, const quant::Student& student, std::int64_t images,
                  NextBatch&& next_batch) {
  const at::NoGradGuard no_grad;
  const auto graph = quant::fuse_activations(student.graph);
  Agreement sum;
  while (sum.images < images) {
    const auto count = std::min(kBatch, images - sum.images);
    const auto batch = next_batch(count);
    const auto expected = models::execute(teacher.graph, teacher.parameters, batch);
    const auto answer = models::execute(graph, student.parameters, batch);
    sum.agreement += answer.argmax(1).eq(expected.argmax(1)).sum().template item<double>();
    sum.kl += cuda_kernels::kl_divergence(answer, expected, /*tau=*/1, /*divisor=*/1)
                  .template item<double>();
    sum.images += count;
  }
  if (sum.images == 0) return sum;
  const auto n = static_cast<double>(sum.images);
  return {sum.agreement / n, sum.kl / n, sum.images};
}

}  // namespace

Agreement measure_agreement(const models::Model& teacher, const quant::Student& student,
                            const generator::Generator& generator, std::int64_t images) {
  auto step = generator::Generator::kHeldOutSteps;
  return measure(teacher, student, images, [&](std::int64_t count) {
    return generator.forward(generator.draw(kBatch, step++)).narrow(0, 0, count);
  });
}

Agreement measure_agreement(const models::Model& teacher, const quant::Student& student,
                            const at::Tensor& images) {
  std::int64_t first = 0;
  return measure(teacher, student, images.size(0), [&](std::int64_t count) {
    return images.narrow(0, std::exchange(first, first + count), count);
  });
}

}  // namespace zsq::train
