// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/entry_statistics.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "quant/data_free/inferred_values.h"

namespace zsq::quant {
namespace {

constexpr double kMostFactor = 8;  // a and 1 / a

// Of [N, C, ...] per channel: [C].
at::Tensor channel_mean(const at::Tensor& x) {
  return x.flatten(2).mean(at::IntArrayRef{0, 2}, false, at::kDouble);
}

at::Tensor with_places(const at::Tensor& x) { return x.dim() > 2 ? x : x.unsqueeze(2); }

}  // namespace

EntryStatistics::EntryStatistics(const models::Model& teacher,
                                 const std::vector<models::Block>& blocks)
    : graph_(teacher.graph) {
  std::vector<models::NodeId> entries;
  for (const auto& block : blocks)
    if (block.entry != graph_.input) entries.push_back(block.entry);
  const InferredValues values(graph_, teacher.parameters, entries);
  for (const auto entry : entries) {
    const auto mean_of = [&](const auto& f) {
      return channel_mean(with_places(values.mean_of(entry, f)));
    };
    const auto mean = mean_of([](const at::Tensor& x) { return x; });
    const auto square = mean_of([](const at::Tensor& x) { return x.square(); });
    known_[entry] = {mean, square.sub(mean.square()).clamp_min(0).sqrt()};
  }
}

void EntryStatistics::impose(models::NodeId entry, const std::vector<at::Tensor>& float_values,
                             const std::vector<at::Tensor>& student_values) const {
  const auto found = known_.find(entry);
  if (found == known_.end()) return;
  const at::NoGradGuard no_grad;
  const auto& [mean, deviation] = found->second;
  auto sum = at::zeros_like(mean), squares = at::zeros_like(mean);
  double images = 0;
  for (const auto& values : float_values) {
    const auto x = with_places(values).to(mean.device(), at::kDouble);
    const auto n = static_cast<double>(values.size(0));
    sum.add_(channel_mean(x), n);
    squares.add_(channel_mean(x.square()), n);
    images += n;
  }
  const auto own_mean = sum.div(images);
  const auto own_deviation = squares.div(images).sub(own_mean.square()).clamp_min(0).sqrt();
  const auto varies = own_deviation.gt(1e-6 * own_mean.abs()).logical_and(deviation.gt(0));
  const auto a =
      at::where(varies, deviation / own_deviation, 1).clamp(1 / kMostFactor, kMostFactor);
  const auto b = at::where(varies, mean - a * own_mean, 0);
  const auto* clip = models::get_if<models::Clip>(graph_[entry]);
  for (const auto* list : {&float_values, &student_values})
    for (const auto& values : *list) {
      const auto x = with_places(values);
      std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
      shape[1] = -1;
      x.mul_(a.view(shape).to(x.device())).add_(b.view(shape).to(x.device()));
      if (clip) x.clamp_(clip->lo, clip->hi);
    }
}

}  // namespace zsq::quant
