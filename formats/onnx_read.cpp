// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "formats/in_file.h"
#include "formats/limits.h"
#include "formats/onnx.h"
#include "formats/onnx_messages.h"
#include "formats/onnx_metadata.h"

namespace zsq::formats::onnx {
namespace {

using protozero::pbf_reader;

[[noreturn]] void unsupported(const std::string& what) {
  throw Error(ErrorCode::unsupported_model, what);
}

void require_room(std::size_t count, std::size_t most, const char* what) {
  if (count >= most)
    throw Error(ErrorCode::bad_input, "holds more than " + std::to_string(most) + " " + what);
}

std::pair<std::string, std::string> read_string_pair(pbf_reader message) {
  std::pair<std::string, std::string> entry;
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        entry.first = message.get_string();
        break;
      case bytes_field(2):
        entry.second = message.get_string();
        break;
      default:
        message.skip();
    }
  return entry;
}

Dimension read_dimension(pbf_reader message) {
  Dimension dimension;
  while (message.next()) switch (message.tag_and_type()) {
      case varint_field(1):
        dimension.value = message.get_int64();
        break;
      case bytes_field(2):
        dimension.symbol = message.get_string();
        break;
      default:
        message.skip();
    }
  return dimension;
}

void read_tensor_type(pbf_reader message, ValueInfo& info) {
  while (message.next()) switch (message.tag_and_type()) {
      case varint_field(1):
        info.element_type = message.get_int32();
        break;
      case bytes_field(2):
        for (pbf_reader shape = message.get_message(); shape.next();) {
          if (shape.tag_and_type() != bytes_field(1)) {
            shape.skip();
            continue;
          }
          require_room(info.shape.size(), kMaxRank, "dimensions in a tensor");
          info.shape.push_back(read_dimension(shape.get_message()));
        }
        break;
      default:
        message.skip();
    }
}

ValueInfo read_value_info(pbf_reader message) {
  ValueInfo info;
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        info.name = message.get_string();
        break;
      case bytes_field(2):
        for (pbf_reader type = message.get_message(); type.next();) {
          if (type.tag_and_type() == bytes_field(1))
            read_tensor_type(type.get_message(), info);
          else
            type.skip();
        }
        break;
      default:
        message.skip();
    }
  return info;
}

Graph read_graph(pbf_reader message, ExternalData& external) {
  Graph graph;
  std::size_t names = 0;
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        require_room(graph.nodes.size(), kMaxOnnxNodes, "nodes");
        graph.nodes.push_back(read_node(message.get_message(), external));
        for (const auto* inside : graph.nodes.back().subgraphs())
          names += inside->reads.size() + inside->gives.size();
        require_room(names, kMaxOnnxNames, "names in sub-graphs");
        break;
      case bytes_field(2):
        graph.name = message.get_string();
        break;
      case bytes_field(5): {
        NamedTensor tensor = read_tensor(message.get_message(), external);
        graph.initializers.emplace_back(std::move(tensor.name), std::move(tensor.array));
        break;
      }
      case bytes_field(11):
        require_room(graph.inputs.size(), kMaxOnnxValues, "inputs");
        graph.inputs.push_back(read_value_info(message.get_message()));
        break;
      case bytes_field(12):
        require_room(graph.outputs.size(), kMaxOnnxValues, "outputs");
        graph.outputs.push_back(read_value_info(message.get_message()));
        break;
      case bytes_field(15):
        unsupported("holds sparse initialisers; export dense weights");
      default:
        message.skip();
    }
  return graph;
}

// FunctionProto: 1 name, 10 domain.
std::pair<std::string, std::string> read_function_name(pbf_reader message) {
  std::pair<std::string, std::string> domain_and_name;
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        domain_and_name.second = message.get_string();
        break;
      case bytes_field(10):
        domain_and_name.first = message.get_string();
        break;
      default:
        message.skip();
    }
  return domain_and_name;
}

// OperatorSetIdProto: 1 domain, 2 version.
void read_opset(pbf_reader message, Model& model) {
  std::string domain;
  std::int64_t version = 0;
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        domain = message.get_string();
        break;
      case varint_field(2):
        version = message.get_int64();
        break;
      default:
        message.skip();
    }
  auto& known = is_default_domain(domain) ? model.opset : model.domains[domain];
  known = std::max(known, version);
}

Model read_model(pbf_reader message, ExternalData& external) {
  Model model;
  model.ir_version = model.opset = 0;
  bool has_graph = false;
  std::set<std::pair<std::string, std::string>> functions;
  while (message.next()) switch (message.tag_and_type()) {
      case varint_field(1):
        model.ir_version = message.get_int64();
        break;
      case bytes_field(2):
        model.producer_name = message.get_string();
        break;
      case bytes_field(3):
        model.producer_version = message.get_string();
        break;
      case bytes_field(7):
        if (has_graph) throw Error(ErrorCode::bad_input, "holds two graphs");
        model.graph = read_graph(message.get_message(), external);
        has_graph = true;
        break;
      case bytes_field(8):
        require_room(model.domains.size(), kMaxOnnxDomains, "operator sets");
        read_opset(message.get_message(), model);
        break;
      case bytes_field(14):
        model.metadata.insert(read_string_pair(message.get_message()));
        break;
      case bytes_field(25):
        functions.insert(read_function_name(message.get_message()));
        break;
      default:
        message.skip();
    }
  if (!has_graph || model.opset <= 0 || model.ir_version <= 0)
    throw Error(ErrorCode::bad_input,
                "is not a whole ONNX model: no graph, no IR version or no operator set was found");
  for (const Node& node : model.graph.nodes)
    if (functions.count({node.domain, node.op_type}))
      unsupported("node '" + node.name + "' calls the function " + node.op_type +
                  " of the file; export with its functions inlined");
  return model;
}

template <class Reader>
auto read_file(const std::filesystem::path& path, Reader&& reader) {
  return in_file(path, [&] {
    const InputFile file(path);
    const auto bytes = file.read(0, file.size());
    try {
      return reader(pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    } catch (const protozero::exception& error) {
      throw Error(ErrorCode::bad_input, std::string("is not an ONNX file, or is cut or damaged (") +
                                            error.what() + "); copy or export it again");
    }
  });
}

}  // namespace

Model read(const std::filesystem::path& path) {
  return read_file(path, [&](pbf_reader message) {
    ExternalData external(path);
    return read_model(message, external);
  });
}

std::map<std::string, std::string> read_metadata(const std::filesystem::path& path) {
  return read_file(path, [](pbf_reader message) {
    std::map<std::string, std::string> metadata;
    while (message.next(14, protozero::pbf_wire_type::length_delimited))
      metadata.insert(read_string_pair(message.get_message()));
    return metadata;
  });
}

}  // namespace zsq::formats::onnx
