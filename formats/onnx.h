// SPDX-License-Identifier: Apache-2.0
// ONNX messages as plain structs (the subset that CNN classifiers use), read and written with
// protozero. No knowledge of operators here. Source: onnx.proto3, IR 3 to 10.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/array.h"

namespace zsq::formats::onnx {

// A branch of If or the body of Loop, as the file has it.
struct Subgraph {
  std::string message;  // GraphProto
  // Names of the graph around it that it reads, and those that it gives to values of its own, in
  // alphabetical order. Source: onnx's IR.md, "Names Within a Graph": no name is given twice.
  std::vector<std::string> reads, gives;

  bool operator==(const Subgraph&) const = default;
};

struct Attribute {
  std::string name;
  std::variant<std::monostate, float, std::int64_t, std::string, Array, std::vector<float>,
               std::vector<std::int64_t>, std::vector<std::string>, Subgraph>
      value;
};

// Of the operators of ONNX itself, and not of a vendor or of ai.onnx.ml.
inline bool is_default_domain(std::string_view domain) {
  return domain.empty() || domain == "ai.onnx";
}

struct Node {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // "" marks an absent optional input
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const;
  std::vector<const Subgraph*> subgraphs() const;
  std::vector<std::string> reads() const;  // its inputs and what its sub-graphs read
  std::vector<std::string> gives() const;  // its outputs and the names inside its sub-graphs
};

struct Dimension {
  std::int64_t value = -1;  // -1: symbolic or unknown
  std::string symbol;
};

struct ValueInfo {
  std::string name;
  std::int32_t element_type = 1;  // TensorProto.DataType
  std::vector<Dimension> shape;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  NamedArrays initializers;
  std::vector<ValueInfo> inputs, outputs;
};

struct Model {
  std::int64_t ir_version = 8;
  std::int64_t opset = 17;                      // of the default domain
  std::map<std::string, std::int64_t> domains;  // other operator sets by their domain, and version
  std::string producer_name, producer_version;
  std::map<std::string, std::string> metadata;
  Graph graph;
};

// External data is read only inside the model's own folder (no absolute path, "..", symbolic or
// hard link out of it; lengths checked against the file). Functions, sparse initialisers, and
// sub-graphs with either or with external data: Error(unsupported_model). Damaged or empty file:
// Error(bad_input).
Model read(const std::filesystem::path& path);

// Deterministic bytes, raw_data initialisers. Atomic.
void write(const std::filesystem::path& path, const Model& model);

}  // namespace zsq::formats::onnx
