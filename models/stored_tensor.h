// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include "models/graph.h"

namespace zsq::models {

// A node's value, as an operator without inputs.
class StoredTensor : public CustomOp {
 public:
  explicit StoredTensor(at::Tensor value) : value_(std::move(value)) {}
  std::string kind() const override { return "stored_tensor"; }
  at::Tensor forward(const std::vector<at::Tensor>&, const ParameterStore&) const override {
    return value_;
  }

 private:
  at::Tensor value_;
};

}  // namespace zsq::models
