// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "formats/array.h"
#include "formats/onnx_external.h"

namespace zsq::formats::onnx {

// TensorProto.DataType. Error(unsupported_model) for types that Array does not hold.
DType from_data_type(std::int64_t data_type);
std::int32_t to_data_type(DType dtype);

struct NamedTensor {
  std::string name;
  Array array;
};
NamedTensor read_tensor(protozero::pbf_reader message, ExternalData& external);

// Numbers of a repeated field, packed or not.
void append_integers(protozero::pbf_reader& message, std::vector<std::int64_t>& values);
void append_floats(protozero::pbf_reader& message, std::vector<float>& values);

}  // namespace zsq::formats::onnx
