// SPDX-License-Identifier: Apache-2.0
// What the generator reads of a teacher: image shape, number of classes, last layer.
#pragma once
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include "tests/support/network_builder.h"
#include "tests/support/seed_each_test.h"

namespace zsq::generator {

inline models::Model rectangular_teacher(std::int64_t height, std::int64_t width,
                                         std::int64_t classes, std::int64_t features,
                                         bool linear = true) {
  test::NetworkBuilder net({3, height, width}, [](const std::string&, const std::string& role,
                                                  const std::vector<std::int64_t>& shape) {
    return role == "weight" ? at::randn(shape) : at::zeros(shape);
  });
  auto x = net.conv("stem", net.input(), 3, features, 1);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  if (!linear) x = net.conv("head", x, features, classes, 1);
  x = net.op("flatten", models::Flatten{}, {x});
  if (linear) x = net.linear("head", x, features, classes);
  return net.finish(x, classes);
}

inline models::Model teacher(std::int64_t size, std::int64_t classes, std::int64_t features,
                             bool linear = true) {
  return rectangular_teacher(size, size, classes, features, linear);
}

}  // namespace zsq::generator
