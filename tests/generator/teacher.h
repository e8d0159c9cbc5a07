// SPDX-License-Identifier: Apache-2.0
// What the generator reads of a teacher: image shape, number of classes, last layer.
#pragma once
#include <ATen/ops/randn.h>

#include "models/graph.h"
#include "tests/support/seed_each_test.h"

namespace zsq::generator {

inline models::Model rectangular_teacher(std::int64_t height, std::int64_t width,
                                         std::int64_t classes, std::int64_t features,
                                         bool linear = true) {
  models::Model model;
  auto& graph = model.graph;
  graph.input_shape = {3, height, width};
  graph.input = graph.add({"input", models::Input{}, {}});
  model.parameters.set("stem.weight", at::randn({features, 3, 1, 1}));
  auto x = graph.add({"stem", models::Conv2d{}, {graph.input}, {{"weight", "stem.weight"}}});
  x = graph.add({"pool", models::GlobalAvgPool{}, {x}});
  if (linear) {
    x = graph.add({"flatten", models::Flatten{}, {x}});
    model.parameters.set("head.weight", at::randn({classes, features}));
    x = graph.add({"head", models::Linear{}, {x}, {{"weight", "head.weight"}}});
  } else {
    model.parameters.set("head.weight", at::randn({classes, features, 1, 1}));
    x = graph.add({"head", models::Conv2d{}, {x}, {{"weight", "head.weight"}}});
    x = graph.add({"flatten", models::Flatten{}, {x}});
  }
  graph.output = x;
  model.classes = classes;
  return model;
}

inline models::Model teacher(std::int64_t size, std::int64_t classes, std::int64_t features,
                             bool linear = true) {
  return rectangular_teacher(size, size, classes, features, linear);
}

}  // namespace zsq::generator
