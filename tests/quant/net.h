// SPDX-License-Identifier: Apache-2.0
// Small networks with random parameters, written as code.
#pragma once
#include <random>

#include "models/graph.h"

namespace zsq::test {

at::Tensor normal(std::vector<std::int64_t> shape, std::uint64_t seed, float deviation = 1);

class Net {
 public:
  explicit Net(std::array<std::int64_t, 3> image = {3, 12, 12}, std::uint64_t seed = 1);

  models::NodeId input() const { return model_.graph.input; }
  models::NodeId op(const std::string& name, models::Op op, std::vector<models::NodeId> inputs,
                    std::map<std::string, std::string> params = {});
  // Square kernel, padding that keeps the size.
  models::NodeId conv(const std::string& name, models::NodeId x, std::int64_t in, std::int64_t out,
                      std::int64_t kernel = 3, std::int64_t groups = 1, bool bias = false);
  // Every third gamma is negative.
  models::NodeId batch_norm(const std::string& name, models::NodeId x, std::int64_t channels);
  models::NodeId linear(const std::string& name, models::NodeId x, std::int64_t in,
                        std::int64_t out);
  models::NodeId relu(const std::string& name, models::NodeId x) {
    return op(name, models::Clip{}, {x});
  }
  // conv "<name>", BatchNorm "<name>.bn" and ReLU "<name>.relu"
  models::NodeId conv_bn(const std::string& name, models::NodeId x, std::int64_t in,
                         std::int64_t out, std::int64_t kernel = 3, std::int64_t groups = 1);
  models::NodeId conv_bn_relu(const std::string& name, models::NodeId x, std::int64_t in,
                              std::int64_t out, std::int64_t kernel = 3, std::int64_t groups = 1);

  models::Model finish(models::NodeId output);
  models::Model& model() { return model_; }

 private:
  models::Model model_;
  std::uint64_t seed_;
};

// stem - residual block with identity shortcut - pool - flatten - linear
models::Model residual_network();

}  // namespace zsq::test
