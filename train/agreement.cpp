// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>

#include "losses/divergence.h"
#include "models/inference.h"

namespace zsq::train {
namespace {

// The generator's BatchNorm takes its moments from a batch, so a last one that is not full is made
// whole and cut.
constexpr std::int64_t kBatch = 64;

}  // namespace

at::Tensor logits_of(const models::Graph& graph, const models::ParameterStore& parameters,
                     const at::Tensor& images) {
  return models::Inference(graph, parameters)(images);
}

Agreement compare_outputs(const models::OutputRow& row, const at::Tensor& teacher,
                          const at::Tensor& student) {
  const auto n = teacher.size(0);
  if (n == 0) return {};
  return {
      losses::agreement(row, student, teacher).item<double>(),
      losses::divergence(row, student, teacher, /*tau=*/1, static_cast<double>(n)).item<double>(),
      n};
}

Agreement measure_agreement(const models::Model& teacher, const quant::Student& student,
                            const at::Tensor& images) {
  return measure_agreement(logits_of(teacher.graph, teacher.parameters, images), student, images);
}

Agreement measure_agreement(const at::Tensor& logits_of_teacher, const quant::Student& student,
                            const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const auto graph = quant::fuse_activations(student.graph);
  return compare_outputs(graph.signature.kind, logits_of_teacher,
                         logits_of(graph, student.parameters, images));
}

at::Tensor held_out_images(const generator::Generator& generator, std::int64_t images) {
  const at::NoGradGuard no_grad;
  auto step = generator::Generator::kHeldOutSteps;
  std::vector<at::Tensor> parts;
  for (std::int64_t done = 0; done < images; done += kBatch)
    parts.push_back(generator.forward(generator.draw(kBatch, step++))
                        .narrow(0, 0, std::min(kBatch, images - done)));
  return at::cat(parts);
}

}  // namespace zsq::train
