// SPDX-License-Identifier: Apache-2.0
#include "train/images/low_pass.h"

#include <ATen/core/grad_mode.h>

#include "generator/augment.h"

namespace zsq::train {

Batch low_pass(const Batch& batch, double cutoff, const models::Model& teacher,
               const std::vector<models::NodeId>& features, Precision precision) {
  if (cutoff == 0) return batch;
  const at::NoGradGuard no_grad;
  auto result = batch;
  result.images = generator::low_pass(batch.images, cutoff);
  models::Taps taps{features, {}};
  result.logits =
      models::execute(teacher.graph, teacher.parameters, result.images, &taps, precision)
          .to(batch.logits.scalar_type());
  result.features = std::move(taps.values);
  return result;
}

}  // namespace zsq::train
