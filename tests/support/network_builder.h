// SPDX-License-Identifier: Apache-2.0
// Small networks written as code. Parameters of a layer "a" are "a.weight", "a.bias", "a.gamma",
// ...
#pragma once
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/graph.h"

namespace zsq::test {

// Normal values of this deviation, the same for the same seed everywhere.
at::Tensor normal(const std::vector<std::int64_t>& shape, std::uint64_t seed, float deviation = 1);

// What a parameter starts as. `role`: weight, bias, gamma, beta, mean or variance.
using Fill = std::function<at::Tensor(const std::string& name, const std::string& role,
                                      const std::vector<std::int64_t>& shape)>;

// Weights by He et al. (1502.01852), biases, betas and means around 0, gammas around 1 of which
// every third is negative, variances of at least 1/2; by a seed.
Fill varied_parameters(std::uint64_t seed = 1);
// Weights by He et al., BatchNorm that changes nothing, biases 0: where training begins.
Fill initial_parameters(std::uint64_t seed);

class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::array<std::int64_t, 3> image = {3, 12, 12},
                          Fill fill = varied_parameters());

  models::NodeId input() const { return model_.graph.input; }
  at::Tensor& at(const std::string& parameter) { return model_.parameters.at(parameter); }
  models::Model& model() { return model_; }

  models::NodeId op(const std::string& name, models::Op op, std::vector<models::NodeId> inputs,
                    std::map<std::string, std::string> params = {});
  // `shape`: [out, in / groups, kh, kw]
  models::NodeId conv(const std::string& name, models::NodeId x, std::vector<std::int64_t> shape,
                      models::Conv2d conv, bool bias = false);
  // Square kernel, padding that keeps the size.
  models::NodeId conv(const std::string& name, models::NodeId x, std::int64_t in, std::int64_t out,
                      std::int64_t kernel = 3, std::int64_t groups = 1, bool bias = false);
  models::NodeId batch_norm(const std::string& name, models::NodeId x, std::int64_t channels,
                            double eps = models::BatchNorm{}.eps);
  models::NodeId linear(const std::string& name, models::NodeId x, std::int64_t in,
                        std::int64_t out);
  models::NodeId relu(const std::string& name, models::NodeId x) {
    return op(name, models::Clip{}, {x});
  }
  models::NodeId relu6(const std::string& name, models::NodeId x) {
    return op(name, models::Clip{0, 6}, {x});
  }
  // conv "<name>", BatchNorm "<name>.bn" and ReLU "<name>.relu"
  models::NodeId conv_bn(const std::string& name, models::NodeId x, std::int64_t in,
                         std::int64_t out, std::int64_t kernel = 3, std::int64_t groups = 1);
  models::NodeId conv_bn_relu(const std::string& name, models::NodeId x, std::int64_t in,
                              std::int64_t out, std::int64_t kernel = 3, std::int64_t groups = 1);

  models::Model finish(models::NodeId output, std::int64_t classes = 0);

 private:
  std::map<std::string, std::string> set(const std::string& layer, const std::string& role,
                                         const std::vector<std::int64_t>& shape);

  models::Model model_;
  Fill fill_;
};

// stem - residual block with identity shortcut - pool - flatten - linear
models::Model residual_network();

}  // namespace zsq::test
