// SPDX-License-Identifier: Apache-2.0
#include "train/rank_batch.h"

#include <ATen/ops/cat.h>

namespace zsq::train {

cuda_kernels::BatchPart part_of(parallel::Communicator& ranks, const parallel::Rows& rows) {
  if (rows.whole()) return {};
  return {rows.share(), [&ranks](const at::Tensor& tensor) { ranks.all_reduce_sum(tensor); }};
}

std::vector<losses::Moments> moments_of_batch(parallel::Communicator& ranks,
                                              const parallel::Rows& rows,
                                              std::vector<losses::Moments> own) {
  if (rows.whole()) return own;
  std::vector<at::Tensor> means, squares;
  for (const auto& [mean, variance] : own) {
    means.push_back(mean.to(at::kDouble));
    squares.push_back(variance.to(at::kDouble).add(means.back().square()));
  }
  const auto firsts = at::cat(means).mul(rows.share());
  const auto seconds = at::cat(squares).mul(rows.share());
  const auto sums = at::cat({firsts.detach(), seconds.detach()});
  ranks.all_reduce_sum(sums);
  // The sum as a value, with the gradient of this rank's part.
  const auto whole = [&](const at::Tensor& part, const at::Tensor& sum) {
    return part.sub(part.detach()).add(sum);
  };
  const auto n = firsts.numel();
  const auto mean = whole(firsts, sums.narrow(0, 0, n));
  const auto variance = whole(seconds, sums.narrow(0, n, n)).sub(mean.square()).clamp_min(0);
  std::int64_t begin = 0;
  for (auto& moments : own) {
    const auto channels = moments.mean.numel();
    moments = {mean.narrow(0, begin, channels).to(at::kFloat),
               variance.narrow(0, begin, channels).to(at::kFloat)};
    begin += channels;
  }
  return own;
}

}  // namespace zsq::train
