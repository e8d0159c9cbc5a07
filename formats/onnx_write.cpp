// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <type_traits>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "formats/in_file.h"
#include "formats/onnx.h"
#include "formats/onnx_messages.h"

namespace zsq::formats::onnx {
namespace {

using protozero::pbf_writer;

// A message in pieces: small text, then the bytes of a tensor where they lie, so that no large
// tensor is copied.
struct Piece {
  std::string text;
  std::span<const std::byte> data;
};

std::string attribute_text(const Attribute& attribute) {
  std::string text;
  pbf_writer writer(text);
  writer.add_string(1, attribute.name);
  std::int32_t type = 0;  // AttributeProto.AttributeType
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, float>) {
          writer.add_float(2, value);
          type = 1;
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          writer.add_int64(3, value);
          type = 2;
        } else if constexpr (std::is_same_v<T, std::string>) {
          writer.add_bytes(4, value);
          type = 3;
        } else if constexpr (std::is_same_v<T, Array>) {
          const std::string start = tensor_start("", value);
          writer.add_bytes_vectored(
              5, start,
              protozero::data_view(reinterpret_cast<const char*>(value.data.data()),
                                   value.data.size()));
          type = 4;
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
          for (const float element : value) writer.add_float(7, element);
          type = 6;
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          for (const std::int64_t element : value) writer.add_int64(8, element);
          type = 7;
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          for (const std::string& element : value) writer.add_bytes(9, element);
          type = 8;
        } else if constexpr (std::is_same_v<T, Subgraph>) {
          writer.add_message(6, value.message);
          type = 5;
        }
      },
      attribute.value);
  if (type == 0)
    throw Error(ErrorCode::internal, "attribute '" + attribute.name + "' has no value to write");
  writer.add_int32(20, type);
  return text;
}

std::string node_text(const Node& node) {
  std::string text;
  pbf_writer writer(text);
  for (const std::string& input : node.inputs) writer.add_string(1, input);
  for (const std::string& output : node.outputs) writer.add_string(2, output);
  if (!node.name.empty()) writer.add_string(3, node.name);
  writer.add_string(4, node.op_type);
  for (const Attribute& attribute : node.attributes)
    writer.add_message(5, attribute_text(attribute));
  if (!node.domain.empty()) writer.add_string(7, node.domain);
  return text;
}

std::string value_info_text(const ValueInfo& info) {
  std::string shape;
  for (const Dimension& dimension : info.shape) {
    std::string text;
    pbf_writer writer(text);
    if (dimension.value >= 0)
      writer.add_int64(1, dimension.value);
    else if (!dimension.symbol.empty())
      writer.add_string(2, dimension.symbol);
    pbf_writer(shape).add_message(1, text);
  }
  std::string tensor, type, text;
  pbf_writer tensor_writer(tensor), writer(text);
  tensor_writer.add_int32(1, info.element_type);
  if (!info.shape.empty()) tensor_writer.add_message(2, shape);  // else it is not known
  pbf_writer(type).add_message(1, tensor);
  writer.add_string(1, info.name);
  writer.add_message(2, type);
  return text;
}

// The graph message. Fields in ascending order, elements in the order of the structs.
std::vector<Piece> graph_pieces(const Graph& graph) {
  std::vector<Piece> pieces(1);
  pbf_writer start(pieces[0].text);
  for (const Node& node : graph.nodes) start.add_message(1, node_text(node));
  start.add_string(2, graph.name);
  for (const auto& [name, array] : graph.initializers) {
    const std::string tensor = tensor_start(name, array);
    Piece piece = {{}, array.data};
    constexpr std::uint32_t kInitializer =
        protozero::tag_and_type(5, protozero::pbf_wire_type::length_delimited);
    protozero::add_varint_to_buffer(&piece.text, kInitializer);
    protozero::add_varint_to_buffer(&piece.text, tensor.size() + array.data.size());
    piece.text += tensor;
    pieces.push_back(std::move(piece));
  }
  pbf_writer end(pieces.emplace_back().text);
  for (const ValueInfo& info : graph.inputs) end.add_message(11, value_info_text(info));
  for (const ValueInfo& info : graph.outputs) end.add_message(12, value_info_text(info));
  return pieces;
}

std::vector<Piece> model_pieces(const Model& model) {
  std::vector<Piece> pieces = graph_pieces(model.graph);
  std::uint64_t graph_size = 0;
  for (const Piece& piece : pieces) graph_size += piece.text.size() + piece.data.size();

  Piece start;
  pbf_writer writer(start.text);
  writer.add_int64(1, model.ir_version);
  writer.add_string(2, model.producer_name);
  writer.add_string(3, model.producer_version);
  constexpr std::uint32_t kGraph =
      protozero::tag_and_type(7, protozero::pbf_wire_type::length_delimited);
  protozero::add_varint_to_buffer(&start.text, kGraph);
  protozero::add_varint_to_buffer(&start.text, graph_size);
  pieces.insert(pieces.begin(), std::move(start));

  pbf_writer end(pieces.emplace_back().text);
  const auto operator_set = [&](const std::string& domain, std::int64_t version) {
    std::string text;
    pbf_writer set_writer(text);
    set_writer.add_string(1, domain);
    set_writer.add_int64(2, version);
    end.add_message(8, text);
  };
  operator_set("", model.opset);
  for (const auto& [domain, version] : model.domains) operator_set(domain, version);
  for (const auto& [key, value] : model.metadata) {
    std::string entry;
    pbf_writer entry_writer(entry);
    entry_writer.add_string(1, key);
    entry_writer.add_string(2, value);
    end.add_message(14, entry);
  }

  std::uint64_t total = 0;
  for (const Piece& piece : pieces) total += piece.text.size() + piece.data.size();
  if (total > std::numeric_limits<std::int32_t>::max())
    throw Error(ErrorCode::unsupported_model,
                "would be larger than the 2 GB that an ONNX file can have");
  return pieces;
}

}  // namespace

void write(const std::filesystem::path& path, const Model& model) {
  const std::vector<Piece> pieces = in_file(path, [&] { return model_pieces(model); });
  AtomicFile file(path);
  for (const Piece& piece : pieces) {
    file.write(piece.text);
    file.write(piece.data);
  }
  file.commit();
}

}  // namespace zsq::formats::onnx
