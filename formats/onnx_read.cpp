// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "formats/in_file.h"
#include "formats/onnx.h"
#include "formats/onnx_tensor.h"

namespace zsq::formats::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Cases of the switches below: a field counts only with its right wire type, any other is skipped
// as unknown fields are.
constexpr std::uint32_t bytes_field(std::uint32_t number) {
  return protozero::tag_and_type(number, pbf_wire_type::length_delimited);
}
constexpr std::uint32_t varint_field(std::uint32_t number) {
  return protozero::tag_and_type(number, pbf_wire_type::varint);
}
constexpr std::uint32_t fixed32_field(std::uint32_t number) {
  return protozero::tag_and_type(number, pbf_wire_type::fixed32);
}

[[noreturn]] void unsupported(const std::string& what) {
  throw Error(ErrorCode::unsupported_model, what);
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

// AttributeProto.AttributeType
enum AttributeType : std::int64_t {
  kUndefined,
  kFloat,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
};

struct AttributeFields {
  std::string name, s;
  std::int64_t type = kUndefined, i = 0;
  AttributeType seen = kUndefined;  // what the fields say; old files have no type
  float f = 0;
  Array t;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
};

AttributeFields read_attribute_fields(pbf_reader message, ExternalData& external) {
  AttributeFields fields;
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        fields.name = message.get_string();
        break;
      case fixed32_field(2):
        fields.f = message.get_float();
        fields.seen = kFloat;
        break;
      case varint_field(3):
        fields.i = message.get_int64();
        fields.seen = kInt;
        break;
      case bytes_field(4):
        fields.s = message.get_string();
        fields.seen = kString;
        break;
      case bytes_field(5):
        fields.t = read_tensor(message.get_message(), external).array;
        fields.seen = kTensor;
        break;
      case bytes_field(6):
      case bytes_field(11):
        message.skip();
        fields.seen = kGraph;
        break;
      case bytes_field(7):
      case fixed32_field(7):
        append_floats(message, fields.floats);
        fields.seen = kFloats;
        break;
      case bytes_field(8):
      case varint_field(8):
        append_integers(message, fields.ints);
        fields.seen = kInts;
        break;
      case bytes_field(9):
        fields.strings.push_back(message.get_string());
        fields.seen = kStrings;
        break;
      case varint_field(20):
        fields.type = message.get_int64();
        break;
      default:
        message.skip();
    }
  return fields;
}

Attribute read_attribute(pbf_reader message, ExternalData& external) {
  AttributeFields fields = read_attribute_fields(message, external);
  Attribute attribute = {std::move(fields.name), {}};
  switch (fields.type == kUndefined ? fields.seen : fields.type) {
    case kFloat:
      attribute.value = fields.f;
      break;
    case kInt:
      attribute.value = fields.i;
      break;
    case kString:
      attribute.value = std::move(fields.s);
      break;
    case kTensor:
      attribute.value = std::move(fields.t);
      break;
    case kFloats:
      attribute.value = std::move(fields.floats);
      break;
    case kInts:
      attribute.value = std::move(fields.ints);
      break;
    case kStrings:
      attribute.value = std::move(fields.strings);
      break;
    case kUndefined:
      break;
    default:
      unsupported("attribute '" + attribute.name +
                  "' holds a sub-graph or another type that is not supported; export without "
                  "control flow");
  }
  return attribute;
}

Node read_node(pbf_reader message, ExternalData& external) {
  Node node;
  std::vector<pbf_reader> attributes;  // read last, so that errors can name the node
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        node.inputs.push_back(message.get_string());
        break;
      case bytes_field(2):
        node.outputs.push_back(message.get_string());
        break;
      case bytes_field(3):
        node.name = message.get_string();
        break;
      case bytes_field(4):
        node.op_type = message.get_string();
        break;
      case bytes_field(5):
        attributes.push_back(message.get_message());
        break;
      case bytes_field(7):
        node.domain = message.get_string();
        break;
      default:
        message.skip();
    }
  try {
    for (const pbf_reader& attribute : attributes)
      node.attributes.push_back(read_attribute(attribute, external));
  } catch (const Error& error) {
    throw Error(error.code(), node.op_type + " node '" + node.name + "': " + error.what());
  }
  return node;
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
          if (shape.tag_and_type() == bytes_field(1))
            info.shape.push_back(read_dimension(shape.get_message()));
          else
            shape.skip();
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
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        graph.nodes.push_back(read_node(message.get_message(), external));
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
        graph.inputs.push_back(read_value_info(message.get_message()));
        break;
      case bytes_field(12):
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

// OperatorSetIdProto: 1 domain, 2 version. Zero where the domain is another one.
std::int64_t read_default_opset(pbf_reader message) {
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
  return domain.empty() || domain == "ai.onnx" ? version : 0;
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
        model.opset = std::max(model.opset, read_default_opset(message.get_message()));
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

}  // namespace

const Attribute* Node::find(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const Attribute& a) { return a.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

Model read(const std::filesystem::path& path) {
  return in_file(path, [&] {
    const InputFile file(path);
    const auto bytes = file.read(0, file.size());
    ExternalData external(path);
    try {
      return read_model({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, external);
    } catch (const protozero::exception& error) {
      throw Error(ErrorCode::bad_input,
                  std::string("is not an ONNX file, or is cut or damaged: ") + error.what());
    }
  });
}

}  // namespace zsq::formats::onnx
