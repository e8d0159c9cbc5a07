// SPDX-License-Identifier: Apache-2.0
#include "losses/features.h"

#include <ATen/ops/mse_loss.h>
#include <ATen/ops/stack.h>

#include "core/error.h"

namespace zsq::losses {
namespace {

// Sum over the maps of the mean squared difference of what `view` sees in them.
template <class View>
at::Tensor sum_of_errors(const std::vector<at::Tensor>& student,
                         const std::vector<at::Tensor>& teacher, View&& view) {
  if (student.empty() || student.size() != teacher.size())
    throw Error(ErrorCode::internal, "feature terms need pairs of maps and at least one, not " +
                                         std::to_string(student.size()) + " and " +
                                         std::to_string(teacher.size()));
  std::vector<at::Tensor> terms;
  for (std::size_t l = 0; l < student.size(); ++l)
    terms.push_back(
        at::mse_loss(view(student[l].to(at::kFloat)), view(teacher[l].detach().to(at::kFloat))));
  return at::stack(terms).sum();
}

at::Tensor attention(const at::Tensor& map) {
  constexpr double kSmallest = 1e-12;  // of a norm
  const auto power = map.square().mean({2, 3});
  return power.div(power.norm(2, {1}, /*keepdim=*/true).clamp_min(kSmallest));
}

}  // namespace

at::Tensor feature_error(const std::vector<at::Tensor>& student,
                         const std::vector<at::Tensor>& teacher) {
  return sum_of_errors(student, teacher, [](const at::Tensor& map) { return map; });
}

at::Tensor channel_attention_error(const std::vector<at::Tensor>& student,
                                   const std::vector<at::Tensor>& teacher) {
  return sum_of_errors(student, teacher, attention);
}

at::Tensor grad_cam_error(const at::Tensor& student, const at::Tensor& teacher,
                          const at::Tensor& targets, const at::Tensor& classifier) {
  if (student.size(1) != classifier.size(1))
    throw Error(ErrorCode::internal, "the classifier reads " + std::to_string(classifier.size(1)) +
                                         " features, the last map has " +
                                         std::to_string(student.size(1)));
  const auto weights = classifier.index_select(0, targets.argmax(1)).unsqueeze(1);  // [N, 1, C]
  const auto cam = [&](const at::Tensor& map) {
    const auto places = map.to(at::kFloat).flatten(2);  // [N, C, H W]
    return weights.bmm(places).relu().div(places.size(2));
  };
  return at::mse_loss(cam(student), cam(teacher.detach()));
}

}  // namespace zsq::losses
