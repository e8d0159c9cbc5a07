// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/quality.h"

#include <algorithm>
#include <cmath>

#include "losses/divergence.h"
#include "train/agreement.h"

namespace zsq::pipeline {
namespace {

// Of the KL on one kind of images, where that on the other decreases more.
constexpr double kMostIncrease = 1.05;

}  // namespace

std::vector<OutputResult> measure_outputs(const models::OutputRow& row, const at::Tensor& teacher,
                                          const at::Tensor& student) {
  std::vector<OutputResult> results;
  for (const auto& one : losses::measures_of_outputs(row, student, teacher))
    results.push_back({one.name, one.kind, one.numbers, one.divergence, one.agreement});
  return results;
}

std::vector<SyntheticResult> measure_on(const std::vector<HeldOutImages>& held_out,
                                        const models::Graph& graph,
                                        const models::ParameterStore& parameters) {
  std::vector<SyntheticResult> results;
  for (const auto& kind : held_out) {
    const auto means = graph.signature.kind;
    const auto rows = train::logits_of(graph, parameters, kind.images);
    const auto seen = train::compare_outputs(means, kind.logits, rows);
    auto& result =
        results.emplace_back(SyntheticResult{kind.kind, seen.images, seen.kl, seen.agreement,
                                             losses::most_frequent_share(means, kind.logits)});
    result.outputs = measure_outputs(means, kind.logits, rows);
  }
  return results;
}

PooledResult pool(const std::vector<SyntheticResult>& results) {
  PooledResult all;
  for (const auto& result : results) {
    const auto n = static_cast<double>(result.images);
    all.divergence += std::log(result.divergence) / static_cast<double>(results.size());
    all.agreement += n * result.agreement;
    all.images += result.images;
  }
  const auto n = static_cast<double>(std::max<std::int64_t>(all.images, 1));
  return {results.empty() ? 0 : std::exp(all.divergence), all.agreement / n, all.images};
}

bool is_better(const std::vector<SyntheticResult>& now,
               const std::vector<SyntheticResult>& before) {
  return pool(now).divergence < pool(before).divergence;
}

bool is_better_on_each(const std::vector<SyntheticResult>& now,
                       const std::vector<SyntheticResult>& before) {
  for (std::size_t kind = 0; kind < now.size(); ++kind)
    if (!(now[kind].divergence <= kMostIncrease * before[kind].divergence)) return false;
  return is_better(now, before);
}

}  // namespace zsq::pipeline
