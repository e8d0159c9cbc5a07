// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "formats/limits.h"
#include "formats/onnx.h"
#include "formats/onnx_messages.h"

namespace zsq::formats::onnx {
namespace {

using protozero::pbf_reader;

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
  Subgraph g;
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
        fields.g = read_subgraph(message.get_view());
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
    case kGraph:
      attribute.value = std::move(fields.g);
      break;
    case kUndefined:
      break;
    default:
      throw Error(ErrorCode::unsupported_model,
                  "attribute '" + attribute.name + "' has a type that is not supported");
  }
  return attribute;
}

}  // namespace

const Attribute* Node::find(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const Attribute& a) { return a.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

std::vector<const Subgraph*> Node::subgraphs() const {
  std::vector<const Subgraph*> found;
  for (const Attribute& attribute : attributes)
    if (const auto* subgraph = std::get_if<Subgraph>(&attribute.value)) found.push_back(subgraph);
  return found;
}

std::vector<std::string> Node::reads() const {
  auto names = inputs;
  for (const auto* inside : subgraphs())
    names.insert(names.end(), inside->reads.begin(), inside->reads.end());
  return names;
}

std::vector<std::string> Node::gives() const {
  auto names = outputs;
  for (const auto* inside : subgraphs())
    names.insert(names.end(), inside->gives.begin(), inside->gives.end());
  return names;
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
        if (attributes.size() >= kMaxOnnxAttributes)
          throw Error(ErrorCode::bad_input,
                      "a node has more than " + std::to_string(kMaxOnnxAttributes) + " attributes");
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

}  // namespace zsq::formats::onnx
