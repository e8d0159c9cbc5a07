// SPDX-License-Identifier: Apache-2.0
// Arrays of a file by name.
#pragma once
#include <stdexcept>
#include <string>

#include "formats/array.h"
#include "models/load.h"

namespace zsq::models {

inline at::Tensor array(const formats::NamedArrays& arrays, const std::string& name) {
  const auto* found = formats::find(arrays, name);
  if (!found) throw std::runtime_error("no array " + name);
  return to_tensor(*found);
}

}  // namespace zsq::models
