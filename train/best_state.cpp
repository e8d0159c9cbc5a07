// SPDX-License-Identifier: Apache-2.0
#include "train/best_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <cstdio>

#include "core/error.h"
#include "core/stopwatch.h"

namespace zsq::train {
namespace {

constexpr const char *kImages = "best/images", *kNumbers = "best/numbers", *kBest = "best/student/";

at::Tensor pack(const BestCheckpoint& r) {
  std::vector<double> numbers{static_cast<double>(r.iteration), static_cast<double>(r.checked_at),
                              static_cast<double>(r.checks), r.seconds};
  for (const Agreement& a : {r.start, r.kept, r.last})
    numbers.insert(numbers.end(), {a.agreement, a.kl, static_cast<double>(a.images)});
  return at::tensor(numbers, at::kDouble);
}

BestCheckpoint unpack(const at::Tensor& packed) {
  if (packed.numel() != 13 || packed.scalar_type() != at::kDouble)
    throw Error(ErrorCode::bad_input,
                "the checkpoint's '" + std::string(kNumbers) + "' is not of this version");
  const auto numbers = packed.to(at::kCPU);
  const auto* v = numbers.const_data_ptr<double>();
  const auto count = [&](int i) { return static_cast<std::int64_t>(v[i]); };
  const auto agreement = [&](int i) { return Agreement{v[i], v[i + 1], count(i + 2)}; };
  return {count(0), count(1), count(2), v[3], agreement(4), agreement(7), agreement(10)};
}

}  // namespace

std::string in_words(const BestCheckpoint& seen, std::int64_t iterations) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(),
                "best checkpoint: iteration %lld of %lld, KL %.4g on %lld held-out synthetic "
                "images (%.4g at the start, %.4g at the end)",
                static_cast<long long>(seen.iteration), static_cast<long long>(iterations),
                seen.kept.kl, static_cast<long long>(seen.kept.images), seen.start.kl,
                seen.last.kl);
  return text.data();
}

void BestState::check(std::int64_t iteration) {
  const at::NoGradGuard no_grad;
  const Stopwatch begin;
  if (!expected_.defined()) expected_ = logits_of(teacher_.graph, teacher_.parameters, images_);
  report_.last = measure_agreement(expected_, student_, images_);
  report_.last.kl = parallel::agreed(ranks_, report_.last.kl);
  report_.checked_at = iteration;
  if (!started()) report_.start = report_.last;
  // NaN is never smaller.
  if (!started() || report_.last.kl < report_.kept.kl) {
    report_.kept = report_.last;
    report_.iteration = iteration;
    best_.clear();
    for (const auto& name : student_.parameters.names())
      best_.emplace_back(name, student_.parameters.at(name).detach().clone());
  }
  ++report_.checks;
  report_.seconds += begin.seconds();
}

void BestState::put_back() const {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : best_) student_.parameters.at(name).detach().copy_(tensor);
}

NamedTensors BestState::state() const {
  NamedTensors state;
  if (!has_images()) return state;
  state.emplace_back(kImages, images_);
  state.emplace_back(kNumbers, pack(report_));
  for (const auto& [name, tensor] : best_) state.emplace_back(kBest + name, tensor);
  return state;
}

NamedTensors BestState::load(const NamedTensors& saved) {
  NamedTensors rest;
  for (const auto& [name, tensor] : saved) {
    if (name == kImages)
      hold_out(tensor);
    else if (name == kNumbers)
      report_ = unpack(tensor);
    else if (name.starts_with(kBest))
      best_.emplace_back(name.substr(std::string(kBest).size()), tensor);
    else
      rest.emplace_back(name, tensor);
  }
  return rest;
}

}  // namespace zsq::train
