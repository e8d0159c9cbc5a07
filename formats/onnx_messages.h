// SPDX-License-Identifier: Apache-2.0
// What the sources that read and write ONNX messages share.
#pragma once
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "formats/array.h"
#include "formats/onnx.h"
#include "formats/onnx_external.h"

namespace zsq::formats::onnx {

// Cases for switches on tag_and_type(): a field counts only with its right wire type, any other is
// skipped as unknown fields are.
constexpr std::uint32_t bytes_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t varint_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t fixed32_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::fixed32);
}

// TensorProto.DataType. Error(unsupported_model) for types that Array does not hold.
DType from_data_type(std::int64_t data_type);
std::int32_t to_data_type(DType dtype);

struct NamedTensor {
  std::string name;
  Array array;
};
NamedTensor read_tensor(protozero::pbf_reader message, ExternalData& external);

// A TensorProto up to the length of its raw_data; the bytes of the array follow.
std::string tensor_start(const std::string& name, const Array& array);

Node read_node(protozero::pbf_reader message, ExternalData& external);
Subgraph read_subgraph(protozero::data_view message);

// Numbers of a repeated field, packed or not.
void append_integers(protozero::pbf_reader& message, std::vector<std::int64_t>& values);
void append_floats(protozero::pbf_reader& message, std::vector<float>& values);

}  // namespace zsq::formats::onnx
