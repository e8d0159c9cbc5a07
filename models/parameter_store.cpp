// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "models/graph.h"

namespace zsq::models {

const at::Tensor& ParameterStore::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw Error(ErrorCode::internal, "there is no parameter '" + name + "'");
  }
  return found->second;
}

at::Tensor& ParameterStore::at(const std::string& name) {
  return const_cast<at::Tensor&>(std::as_const(*this).at(name));
}

bool ParameterStore::contains(const std::string& name) const { return tensors_.count(name) > 0; }

void ParameterStore::set(const std::string& name, at::Tensor value) {
  if (!contains(name)) names_.push_back(name);
  tensors_[name] = std::move(value);
}

at::Device ParameterStore::device() const {
  return names_.empty() ? at::Device(at::kCPU) : at(names_.front()).device();
}

ParameterStore ParameterStore::clone() const {
  ParameterStore copy;
  for (const auto& name : names_) copy.set(name, at(name).detach().clone());
  return copy;
}

}  // namespace zsq::models
