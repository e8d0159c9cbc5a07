// SPDX-License-Identifier: Apache-2.0
// The terms of the student's loss, by name. Torch-free; losses/registry.h says what they are.
#pragma once
#include "core/settings.h"

namespace zsq {

enum class LossTerm {
  kl_divergence,
  feature_mse,
  channel_attention,
  cross_entropy,
  perturbed_kl_divergence,
  easy_cross_entropy,
  grad_cam,
  pseudo_label_cross_entropy,
  relative_feature_mse
};

template <>
struct EnumNames<LossTerm> {
  static constexpr std::array<std::string_view, 9> names{"kl_divergence",
                                                         "feature_mse",
                                                         "channel_attention",
                                                         "cross_entropy",
                                                         "perturbed_kl_divergence",
                                                         "easy_cross_entropy",
                                                         "grad_cam",
                                                         "pseudo_label_cross_entropy",
                                                         "relative_feature_mse"};
};

// Written "name=weight", or "name" for weight 1.
struct LossWeight {
  LossTerm term = LossTerm::kl_divergence;
  double weight = 1;
};

}  // namespace zsq
