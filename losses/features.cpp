// SPDX-License-Identifier: Apache-2.0
#include "losses/features.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <limits>

#include "core/error.h"

namespace zsq::losses {
namespace {

// Sum over the maps of what `error` says of a pair.
template <class ErrorOfMap>
at::Tensor sum_of_errors(const std::vector<at::Tensor>& student,
                         const std::vector<at::Tensor>& teacher, ErrorOfMap&& error) {
  if (student.empty() || student.size() != teacher.size())
    throw Error(ErrorCode::internal, "feature terms need pairs of maps and at least one, not " +
                                         std::to_string(student.size()) + " and " +
                                         std::to_string(teacher.size()));
  std::vector<at::Tensor> terms;
  for (std::size_t l = 0; l < student.size(); ++l)
    terms.push_back(error(student[l].to(at::kFloat), teacher[l].detach().to(at::kFloat)));
  return at::stack(terms).sum();
}

at::Tensor attention(const at::Tensor& map) {
  constexpr double kSmallest = 1e-12;  // of a norm
  const auto power = map.square().mean({2, 3});
  return power.div(power.norm(2, {1}, /*keepdim=*/true).clamp_min(kSmallest));
}

at::Tensor relative_error(const at::Tensor& student, const at::Tensor& teacher) {
  const auto values = teacher.flatten(1);
  const auto spread = values.sub(values.mean(1, /*keepdim=*/true)).square().sum(1);
  const auto error = student.flatten(1).sub(values).square().sum(1);
  return at::where(spread.gt(0), error / spread.clamp_min(std::numeric_limits<float>::min()), 0)
      .mean();
}

}  // namespace

at::Tensor feature_error(const std::vector<at::Tensor>& student,
                         const std::vector<at::Tensor>& teacher) {
  return sum_of_errors(student, teacher,
                       [](const at::Tensor& s, const at::Tensor& t) { return at::mse_loss(s, t); });
}

at::Tensor relative_feature_error(const std::vector<at::Tensor>& student,
                                  const std::vector<at::Tensor>& teacher) {
  return sum_of_errors(student, teacher, relative_error).div(std::ssize(student));
}

at::Tensor channel_attention_error(const std::vector<at::Tensor>& student,
                                   const std::vector<at::Tensor>& teacher) {
  return sum_of_errors(student, teacher, [](const at::Tensor& s, const at::Tensor& t) {
    return at::mse_loss(attention(s), attention(t));
  });
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
