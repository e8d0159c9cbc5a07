// SPDX-License-Identifier: Apache-2.0
// The parts of a .tflite file: tensors, constants and operators of one subgraph. It knows nothing
// of students.
#pragma once
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exporters/registry.h"
#include "exporters/tflite/schema_generated.h"
#include "formats/array.h"

namespace zsq::exporters::tflite {

using TensorId = int;  // index in the subgraph
using Sizes = std::vector<std::int64_t>;

// What a tensor holds: float values, or codes with the scales and zero points that give them.
struct Kind {
  TensorType type = TensorType::FLOAT32;
  std::vector<float> scale = {};
  std::vector<std::int64_t> zero_point = {};
  int dimension = 0;  // along which there are several scales
};

template <class T>
BuiltinOptionsUnion options_of(T options) {
  BuiltinOptionsUnion result;
  result.Set(std::move(options));
  return result;
}

class Builder {
 public:
  Builder();

  TensorId input(const std::string& name, Sizes shape);
  // Adds an operator; its result.
  TensorId node(BuiltinOperator code, BuiltinOptionsUnion options,
                const std::vector<TensorId>& inputs, const std::string& name, Sizes shape,
                const Kind& kind = {});
  TensorId constant(const std::string& name, const formats::Array& array, const Kind& kind = {});
  TensorId integers(const std::string& name, const Sizes& values);  // i32
  TensorId scalar(const std::string& name, float value);

  const Sizes& shape(TensorId id) const { return shapes_.at(static_cast<std::size_t>(id)); }
  const Kind& kind(TensorId id) const { return kinds_.at(static_cast<std::size_t>(id)); }
  bool is_float(TensorId id) const { return kind(id).type == TensorType::FLOAT32; }

  // Writes the file; the dimension 0 of input and output is the caller's to choose.
  void write(const std::filesystem::path& path, TensorId output, const std::string& output_name,
             const exporters::Metadata& metadata) &&;

 private:
  TensorId tensor(const std::string& name, Sizes shape, const Kind& kind, std::uint32_t buffer);
  std::uint32_t buffer(std::span<const std::byte> bytes);
  std::uint32_t code_index(BuiltinOperator code);
  std::string unique(const std::string& name);
  void sign(TensorId output, const std::string& output_name);

  ModelT model_;
  SubGraphT* graph_;  // the only one of model_
  // A call may take a reference to one and add another for its next argument.
  std::deque<Sizes> shapes_;
  std::deque<Kind> kinds_;
  std::map<BuiltinOperator, std::uint32_t> codes_;
  std::map<std::string, int> names_;  // how often each was asked for
};

}  // namespace zsq::exporters::tflite
