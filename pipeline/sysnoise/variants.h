// SPDX-License-Identifier: Apache-2.0
// The ways in which a deployment may differ, one at a time.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "eval/preprocessing.h"
#include "models/graph.h"
#include "pipeline/system_noise.h"

namespace zsq::pipeline {

struct Variant {
  NoiseSource source{};
  std::string option;
  PreprocessingOptions keys = {};  // in place of the reference's
  // Null: the model as it is. Error(unsupported_model) where the model cannot be changed so.
  std::function<models::Model(const models::Model&)> rewrite = {};
};

// Of decode, resize or colour, without what `reference` does itself.
std::vector<Variant> image_variants(NoiseSource source, const eval::Preprocessing& reference);

// Of precision, pool or padding. `make_int8` quantizes a model, given for precision.
std::vector<Variant> model_variants(
    NoiseSource source, const std::function<models::Model(const models::Model&)>& make_int8);

}  // namespace zsq::pipeline
