// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>

#include "cuda_kernels/kl_divergence.h"
#include "models/execute.h"
#include "train/trainer.h"

namespace zsq::train {
namespace {

constexpr std::int64_t kBatch =
    64;  // the generator's BatchNorm wants a batch, so the last is whole

at::Tensor answers(const models::Graph& graph, const models::ParameterStore& parameters,
                   const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const auto& batch : images.split(kBatch))
    parts.push_back(models::execute(graph, parameters, batch));
  return at::cat(parts);
}

// Sums over the images.
Agreement compare(const at::Tensor& expected, const at::Tensor& answer) {
  return {answer.argmax(1).eq(expected.argmax(1)).sum().item<double>(),
          cuda_kernels::kl_divergence(answer, expected, /*tau=*/1, /*divisor=*/1).item<double>(),
          expected.size(0)};
}

Agreement mean(const Agreement& sum) {
  const auto n = static_cast<double>(std::max<std::int64_t>(sum.images, 1));
  return {sum.agreement / n, sum.kl / n, sum.images};
}

}  // namespace

Agreement measure_agreement(const models::Model& teacher, const quant::Student& student,
                            const generator::Generator& generator, std::int64_t images) {
  const at::NoGradGuard no_grad;
  const auto graph = quant::fuse_activations(student.graph);
  auto step = generator::Generator::kHeldOutSteps;
  Agreement sum;
  while (sum.images < images) {
    const auto count = std::min(kBatch, images - sum.images);
    const auto batch = generator.forward(generator.draw(kBatch, step++)).narrow(0, 0, count);
    const auto now = compare(answers(teacher, batch), answers(graph, student.parameters, batch));
    sum = {sum.agreement + now.agreement, sum.kl + now.kl, sum.images + count};
  }
  return mean(sum);
}

Agreement measure_agreement(const models::Model& teacher, const quant::Student& student,
                            const at::Tensor& images) {
  return measure_agreement(answers(teacher, images), student, images);
}

Agreement measure_agreement(const at::Tensor& logits_of_teacher, const quant::Student& student,
                            const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const auto graph = quant::fuse_activations(student.graph);
  return mean(compare(logits_of_teacher, answers(graph, student.parameters, images)));
}

at::Tensor answers(const models::Model& model, const at::Tensor& images) {
  return answers(model.graph, model.parameters, images);
}

at::Tensor images_for_checks(const generator::Generator& generator, std::int64_t images) {
  // Far from those that the finished student is measured on.
  auto step = generator::Generator::kHeldOutSteps + (std::uint64_t{1} << 62);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (std::int64_t done = 0; done < images; done += kBatch)
    parts.push_back(generator.forward(generator.draw(kBatch, step++))
                        .narrow(0, 0, std::min(kBatch, images - done)));
  return at::cat(parts);
}

}  // namespace zsq::train
