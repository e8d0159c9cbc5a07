// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx.h"

#include <gtest/gtest.h>

#include "tests/formats/onnx_bytes.h"

namespace zsq::formats::onnx {
namespace {

Model parse(const TempFolder& folder, const std::string& bytes) {
  return read(folder.file("x.onnx", bytes));
}

Array parse_tensor(const TempFolder& folder, const std::string& fields) {
  return parse(folder, model(text(5, fields))).graph.initializers.at(0).second;
}

Model example() {
  Model model;
  model.producer_name = "test";
  model.producer_version = "1";
  model.graph.name = "net";
  model.graph.initializers = every_dtype();
  model.graph.initializers.emplace_back("u4", pack_u4({3}, std::vector<std::uint8_t>{9, 0, 15}));
  model.graph.inputs = {{"input", 1, {{-1, "N"}, {3, ""}, {-1, ""}}}};
  model.graph.outputs = {{"logits", 10, {}}};
  Node node;
  node.name = "conv";
  node.op_type = "Conv";
  node.domain = "custom";
  node.inputs = {"input", "", "w"};
  node.outputs = {"logits"};
  node.attributes = {{"alpha", 0.5f},
                     {"axis", std::int64_t{-1}},
                     {"mode", std::string("linear")},
                     {"value", make_array<float>(DType::f32, {2}, {1, 2})},
                     {"scales", std::vector<float>{1, 2.5f}},
                     {"pads", std::vector<std::int64_t>{0, -1, 1LL << 40}},
                     {"names", std::vector<std::string>{"a", ""}},
                     {"none", std::vector<std::int64_t>{}}};
  model.graph.nodes = {node, Node{"relu", "Relu", "", {"logits"}, {"y"}, {}}};
  return model;
}

void expect_same_attribute(const Attribute& got, const Attribute& wanted) {
  SCOPED_TRACE(wanted.name);
  EXPECT_EQ(got.name, wanted.name);
  ASSERT_EQ(got.value.index(), wanted.value.index());
  if (const auto* array = std::get_if<Array>(&wanted.value)) {
    expect_same(std::get<Array>(got.value), *array);
    return;
  }
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (!std::is_same_v<T, Array>) {
          EXPECT_TRUE(std::get<T>(got.value) == value);
        }
      },
      wanted.value);
}

TEST(Onnx, RoundTripIsExactAndDeterministic) {
  const TempFolder folder;
  Model wanted = example();
  wanted.metadata = {{"b", "2"}, {"a", "1"}};
  wanted.domains = {{"custom", 3}, {"other", 1}};
  write(folder / "x", wanted);
  write(folder / "y", wanted);
  EXPECT_EQ(read_text(folder / "x"), read_text(folder / "y"));
  const Model got = read(folder / "x");
  EXPECT_EQ(got.ir_version, 8);
  EXPECT_EQ(got.opset, 17);
  EXPECT_EQ(got.domains, wanted.domains);
  EXPECT_EQ(got.producer_name, "test");
  EXPECT_EQ(got.producer_version, "1");
  EXPECT_EQ(got.metadata, wanted.metadata);
  EXPECT_EQ(got.graph.name, "net");
  expect_same(got.graph.initializers, wanted.graph.initializers);
  ASSERT_EQ(got.graph.nodes.size(), 2u);
  const Node& node = got.graph.nodes[0];
  EXPECT_EQ(node.inputs, wanted.graph.nodes[0].inputs);
  EXPECT_EQ(node.outputs, wanted.graph.nodes[0].outputs);
  EXPECT_EQ(node.domain, "custom");
  ASSERT_EQ(node.attributes.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i)
    expect_same_attribute(node.attributes[i], wanted.graph.nodes[0].attributes[i]);
  EXPECT_EQ(node.find("axis"), &node.attributes[1]);
  EXPECT_FALSE(node.find("axes"));
  ASSERT_EQ(got.graph.inputs[0].shape.size(), 3u);
  EXPECT_EQ(got.graph.inputs[0].shape[0].symbol, "N");
  EXPECT_EQ(got.graph.inputs[0].shape[0].value, -1);
  EXPECT_EQ(got.graph.inputs[0].shape[1].value, 3);
  EXPECT_EQ(got.graph.inputs[0].shape[2].value, -1);
  EXPECT_EQ(got.graph.outputs[0].element_type, 10);
}

// Names inside are all that a sub-graph gives, those of its own sub-graphs among them.
TEST(Onnx, SubgraphsStayAsTheyAre) {
  const auto attribute = [](const std::string& graph) {
    return text(5, text(1, "body") + text(6, graph) + number(20, 5));
  };
  const auto value = [](std::uint32_t field, const std::string& name) {
    return text(field, text(1, name));
  };
  const std::string constant = text(5, text(1, "value") + text(5, text(8, "own")) + number(20, 4));
  const std::string inner =
      text(1, text(1, "b") + text(1, "far") + text(2, "d")) + value(12, "d") + value(12, "direct");
  const std::string outer = value(11, "i") + text(5, text(8, "w")) +
                            text(1, text(1, "near") + text(1, "i") + text(1, "") + text(2, "b")) +
                            text(1, text(1, "w") + text(2, "c") + constant + attribute(inner)) +
                            value(12, "c") + text(500, "?");
  const TempFolder folder;
  const auto whole =
      model(text(1, text(1, "x") + text(2, "y") + text(4, "Loop") + attribute(outer)));
  const Model got = parse(folder, whole);
  const Node& node = got.graph.nodes.at(0);
  const auto& body = std::get<Subgraph>(node.find("body")->value);
  EXPECT_EQ(body.message, outer);
  using Names = std::vector<std::string>;
  EXPECT_EQ(body.reads, (Names{"direct", "far", "near"}));
  EXPECT_EQ(body.gives, (Names{"b", "c", "d", "i", "w"}));
  EXPECT_EQ(node.reads(), (Names{"x", "direct", "far", "near"}));
  EXPECT_EQ(node.gives(), (Names{"y", "b", "c", "d", "i", "w"}));
  write(folder / "again", got);
  const Model again = read(folder / "again");
  EXPECT_EQ(std::get<Subgraph>(again.graph.nodes.at(0).attributes.at(0).value), body);
}

TEST(Onnx, WritesExactlyTheseBytes) {
  const TempFolder folder;
  Model small;
  small.producer_name = "p";
  small.graph.name = "g";
  small.graph.nodes = {Node{"", "Relu", "", {"x"}, {"y"}, {}}};
  small.graph.initializers = {{"w", make_array<std::uint8_t>(DType::u8, {2}, {7, 8})}};
  write(folder / "x", small);
  const std::string node = text(1, "x") + text(2, "y") + text(4, "Relu");
  const std::string tensor = number(1, 2) + number(2, 2) + text(8, "w") + text(9, "\7\10");
  EXPECT_EQ(read_text(folder / "x"), number(1, 8) + text(2, "p") + text(3, "") +
                                         text(7, text(1, node) + text(2, "g") + text(5, tensor)) +
                                         text(8, text(1, "") + number(2, 17)));
}

// dims, ints and floats occur packed (proto3) and unpacked (proto2).
TEST(Onnx, PackedAndUnpacked) {
  const TempFolder folder;
  const std::string float_tag = varint(7 << 3 | 5);
  const std::string unpacked = text(1, "a") + number(8, 1) + number(8, -2) + number(20, 7);
  const std::string packed = text(1, "b") + text(8, varint(1) + varint(~1ULL)) + number(20, 7);
  const std::string floats = text(1, "c") + float_tag + raw(1.5f) + float_tag + raw(2.f);
  const std::string packed_floats = text(1, "d") + text(7, raw(1.5f) + raw(2.f)) + number(20, 6);
  const Model got =
      parse(folder, model(text(1, text(4, "Op") + text(5, unpacked) + text(5, packed) +
                                      text(5, floats) + text(5, packed_floats))));
  const auto& attributes = got.graph.nodes[0].attributes;
  for (const int i : {0, 1})
    EXPECT_EQ(std::get<std::vector<std::int64_t>>(attributes[i].value),
              (std::vector<std::int64_t>{1, -2}));
  for (const int i : {2, 3})
    EXPECT_EQ(std::get<std::vector<float>>(attributes[i].value), (std::vector<float>{1.5f, 2}));

  const Array wanted = make_array<float>(DType::f32, {2, 1}, {1.5f, 2});
  const std::string data = text(9, raw(1.5f) + raw(2.f));
  expect_same(parse_tensor(folder, number(1, 2) + number(1, 1) + number(2, 1) + data), wanted);
  expect_same(parse_tensor(folder, data + number(2, 1) + text(1, "\2\1")), wanted);
}

TEST(Onnx, TypedData) {
  const TempFolder folder;
  const std::string two = number(1, 2);
  const std::string tag = varint(4 << 3 | 5);
  const Array floats = make_array<float>(DType::f32, {2}, {1, 2});
  expect_same(parse_tensor(folder, text(4, raw(1.f) + raw(2.f)) + two + number(2, 1)), floats);
  expect_same(parse_tensor(folder, two + number(2, 1) + tag + raw(1.f) + tag + raw(2.f)), floats);
  expect_same(parse_tensor(folder, two + number(2, 3) + number(5, -1) + number(5, 127)),
              make_array<std::int8_t>(DType::i8, {2}, {-1, 127}));
  expect_same(parse_tensor(folder, two + number(2, 10) + text(5, varint(0x3c00) + varint(0xc000))),
              make_array<std::uint16_t>(DType::f16, {2}, {0x3c00, 0xc000}));
  expect_same(parse_tensor(folder, two + number(2, 7) + number(7, -5) + number(7, 1LL << 40)),
              make_array<std::int64_t>(DType::i64, {2}, {-5, 1LL << 40}));
  expect_same(parse_tensor(folder, two + number(2, 11) + text(10, raw(1.) + raw(2.))),
              make_array<double>(DType::f64, {2}, {1, 2}));
  expect_same(parse_tensor(folder, two + number(2, 12) + number(11, 1) + number(11, 4'000'000'000)),
              make_array<std::uint32_t>(DType::u32, {2}, {1, 4'000'000'000u}));
  expect_same(
      parse_tensor(folder, number(1, 3) + number(2, 21) + text(5, varint(0x21) + varint(3))),
      pack_u4({3}, std::vector<std::uint8_t>{1, 2, 3}));
  expect_error([&] { parse_tensor(folder, two + number(2, 3) + number(5, 1) + number(5, 200)); },
               ErrorCode::bad_input, "200");
}

TEST(Onnx, SizesAreCheckedBeforeAllocation) {
  const TempFolder folder;
  const auto refuse = [&](const std::string& fields, const char* part) {
    expect_error([&] { parse_tensor(folder, text(8, "w") + fields); }, ErrorCode::bad_input, part);
  };
  refuse(number(1, 1LL << 40) + number(2, 1) + text(9, "1234"), "'w': holds 4 bytes");
  refuse(number(1, 1LL << 40) + number(2, 1), "holds 0 bytes");
  refuse(number(1, 1LL << 40) + number(1, 1LL << 40) + number(2, 1), "overflows");
  refuse(number(1, -1) + number(2, 1), "negative");
  refuse(number(1, 2) + number(2, 1) + text(4, "12345678901"), "holds 11 bytes");
}

TEST(Onnx, WhatIsNotSupportedIsNamed) {
  const TempFolder folder;
  const auto refuse = [&](const std::string& bytes, const char* part) {
    expect_error([&] { parse(folder, bytes); }, ErrorCode::unsupported_model, part);
  };
  const auto branch = [](const std::string& graph) {
    const std::string attribute = text(1, "then_branch") + text(6, graph) + number(20, 5);
    return model(text(1, text(3, "if1") + text(4, "If") + text(5, attribute)));
  };
  refuse(branch(text(5, text(8, "w") + number(14, 1))), "If node 'if1': a sub-graph has tensors");
  refuse(branch(text(15, "")), "sparse");
  const std::string several = text(1, "branches") + text(11, "") + number(20, 10);
  refuse(model(text(1, text(4, "Switch") + text(5, several))), "'branches' has a type");
  refuse(model(text(15, "")), "sparse");
  refuse(model(text(5, number(1, 2) + number(2, 22) + text(9, "1"))), "type 22");
  const std::string call = text(1, text(3, "n") + text(4, "F") + text(7, "d"));
  const std::string function = text(25, text(1, "F") + text(10, "d"));
  refuse(model(call) + function, "'n' calls the function F");
  EXPECT_EQ(parse(folder, model(call) + text(25, text(1, "G") + text(10, "d"))).opset, 17);
}

TEST(Onnx, UnknownFieldsAreSkipped) {
  const TempFolder folder;
  const std::string unknown = text(500, "?") + number(501, 3) + varint(502 << 3 | 5) + raw(1.f) +
                              number(7, 5);  // the last: a known field with a wrong wire type
  const Model got = parse(folder, unknown + model(unknown + text(1, unknown + text(4, "Op"))));
  EXPECT_EQ(got.graph.nodes.at(0).op_type, "Op");
}

TEST(Onnx, OpsetOfTheDefaultDomain) {
  const TempFolder folder;
  const std::string other = text(8, text(1, "com.other") + number(2, 99));
  EXPECT_EQ(parse(folder, other + model("") + other).opset, 17);
  expect_error([&] { parse(folder, number(1, 8) + text(7, "") + other); }, ErrorCode::bad_input,
               "operator set");
}

TEST(Onnx, EveryCutIsAnError) {
  const TempFolder folder;
  write(folder / "x", example());
  const std::string bytes = read_text(folder / "x");
  expect_every_prefix_fails(folder, bytes, read);
  expect_survives_changed_bytes(folder, bytes, read);
}

TEST(Onnx, BrokenModelsAreNotWritten) {
  const TempFolder folder;
  Model broken = example();
  broken.graph.initializers[0].second.data.pop_back();
  expect_error([&] { write(folder / "x", broken); }, ErrorCode::internal, "does not fit");
  broken = example();
  broken.graph.nodes[0].attributes[0].value = std::monostate();
  expect_error([&] { write(folder / "x", broken); }, ErrorCode::internal, "alpha");
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

}  // namespace
}  // namespace zsq::formats::onnx
