// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

#include "core/error.h"
#include "formats/limits.h"
#include "formats/onnx.h"
#include "formats/onnx_messages.h"

namespace zsq::formats::onnx {
namespace {

using protozero::pbf_reader;

struct Names {
  std::set<std::string> read, given;

  void read_one(std::string name) { add(read, std::move(name)); }
  void give(std::string name) { add(given, std::move(name)); }

 private:
  void add(std::set<std::string>& names, std::string name) {
    if (!name.empty()) names.insert(std::move(name));
    if (read.size() + given.size() > kMaxOnnxNames)
      throw Error(ErrorCode::bad_input,
                  "holds more than " + std::to_string(kMaxOnnxNames) + " names in sub-graphs");
  }
};

void require_inside(bool external) {
  if (external)
    throw Error(ErrorCode::unsupported_model,
                "a sub-graph has tensors in another file; save the network as one file");
}

// TensorProto: 8 name, 14 data_location.
void scan_tensor(pbf_reader tensor, Names& names) {
  while (tensor.next()) switch (tensor.tag_and_type()) {
      case bytes_field(8):
        names.give(tensor.get_string());
        break;
      case varint_field(14):
        require_inside(tensor.get_int32() != 0);
        break;
      default:
        tensor.skip();
    }
}

// ValueInfoProto: 1 name.
std::string name_of(pbf_reader value) {
  std::string name;
  while (value.next(1, protozero::pbf_wire_type::length_delimited)) name = value.get_string();
  return name;
}

void scan_graph(pbf_reader graph, Names& names, std::size_t depth);

// AttributeProto: 5 t, 6 g, 10 tensors, 11 graphs, 22 sparse_tensor.
void scan_attribute(pbf_reader attribute, Names& names, std::size_t depth) {
  Names of_values;  // a tensor's own name is no name of the graph
  while (attribute.next()) switch (attribute.tag_and_type()) {
      case bytes_field(5):
      case bytes_field(10):
        scan_tensor(attribute.get_message(), of_values);
        break;
      case bytes_field(6):
      case bytes_field(11):
        scan_graph(attribute.get_message(), names, depth + 1);
        break;
      default:
        attribute.skip();
    }
}

// NodeProto: 1 input, 2 output, 5 attribute.
void scan_node(pbf_reader node, Names& names, std::size_t depth) {
  while (node.next()) switch (node.tag_and_type()) {
      case bytes_field(1):
        names.read_one(node.get_string());
        break;
      case bytes_field(2):
        names.give(node.get_string());
        break;
      case bytes_field(5):
        scan_attribute(node.get_message(), names, depth);
        break;
      default:
        node.skip();
    }
}

void scan_graph(pbf_reader graph, Names& names, std::size_t depth) {
  if (depth > kMaxOnnxDepth)
    throw Error(ErrorCode::bad_input,
                "holds sub-graphs in more than " + std::to_string(kMaxOnnxDepth) + " levels");
  while (graph.next()) switch (graph.tag_and_type()) {
      case bytes_field(1):
        scan_node(graph.get_message(), names, depth);
        break;
      case bytes_field(5):
        scan_tensor(graph.get_message(), names);
        break;
      case bytes_field(11):
        names.give(name_of(graph.get_message()));
        break;
      case bytes_field(12):
        names.read_one(name_of(graph.get_message()));
        break;
      case bytes_field(15):
        throw Error(ErrorCode::unsupported_model,
                    "a sub-graph has sparse initialisers; export dense weights");
      default:
        graph.skip();
    }
}

}  // namespace

Subgraph read_subgraph(protozero::data_view message) {
  Names names;
  scan_graph(pbf_reader(message), names, 1);
  Subgraph subgraph{std::string(message.data(), message.size()), {}, {}};
  for (const auto& name : names.read)
    if (!names.given.contains(name)) subgraph.reads.push_back(name);
  subgraph.gives.assign(names.given.begin(), names.given.end());
  return subgraph;
}

}  // namespace zsq::formats::onnx
