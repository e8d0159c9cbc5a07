// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "models/execute.h"
#include "models/programs.h"

namespace zsq::models {
namespace {

using formats::ExportedProgram;
using Argument = ExportedProgram::Argument;
using Kind = Argument::Kind;

Argument tensor(const std::string& parameter, const std::string& name) {
  return {parameter, Kind::tensor, 0, 0, name, {}};
}
Argument integer(const std::string& parameter, std::int64_t value) {
  return {parameter, Kind::integer, value, 0, "", {}};
}
Argument list(const std::string& parameter, std::vector<Argument> items) {
  return {parameter, Kind::list, 0, 0, "", std::move(items)};
}

// conv -> relu_ -> max pool (a tuple) -> chunk -> cat -> view(sizes).
ExportedProgram program(const at::Tensor& weight) {
  ExportedProgram file;
  file.inputs = {{"x", {-1, 2, 6, 6}}};
  file.outputs = {"view"};
  file.parameters = {{"p_conv_weight", "conv.weight"}};
  file.tensors = {{"conv.weight", to_array(weight)}};
  const auto add = [&](const std::string& op, std::vector<Argument> inputs,
                       std::vector<Argument> outputs) {
    file.nodes.push_back({"torch.ops.aten." + op, outputs[0].text, inputs, outputs});
  };
  add("sym_size.int", {tensor("self", "x"), integer("dim", 0)},
      {{"", Kind::symbol, 0, 0, "batch", {}}});
  add("conv2d.default", {tensor("input", "x"), tensor("weight", "p_conv_weight")},
      {tensor("", "conv")});
  add("relu_.default", {tensor("self", "conv")}, {tensor("", "relu_")});
  add("max_pool2d_with_indices.default",
      {tensor("self", "relu_"), list("kernel_size", {integer("", 2), integer("", 2)})},
      {tensor("", "pool"), tensor("", "indices")});
  add("chunk.default", {tensor("self", "pool"), integer("chunks", 2), integer("dim", 1)},
      {list("", {tensor("", "first"), tensor("", "second")})});
  add("cat.default",
      {list("tensors", {tensor("", "second"), tensor("", "first")}), integer("dim", 1)},
      {tensor("", "cat")});
  add("view.default",
      {tensor("self", "cat"),
       list("size", {{"", Kind::symbol, 0, 0, "batch", {}}, integer("", -1)})},
      {tensor("", "view")});
  return file;
}

std::string refusal(const ExportedProgram& file, ErrorCode wanted) {
  try {
    import_exported_program(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), wanted) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(ExportedProgram, ComputesWhatAtenComputes) {
  const at::NoGradGuard no_grad;
  const auto weight = at::randn({4, 2, 3, 3}), x = at::randn({3, 2, 6, 6});
  const auto model = import_exported_program(program(weight));
  const auto pooled = at::max_pool2d(at::conv2d(x, weight).relu(), 2);
  const auto wanted = at::cat({pooled.slice(1, 2), pooled.slice(1, 0, 2)}, 1).flatten(1);
  EXPECT_TRUE(at::allclose(execute(model.graph, model.parameters, x), wanted, 1e-4, 1e-5));
  EXPECT_EQ(model.format, "pt2");
  EXPECT_NO_THROW(model.graph.id_of("conv"));
}

TEST(ExportedProgram, RefusalsNameTheNode) {
  const auto expect = [](const ExportedProgram& file, const std::string& part,
                         ErrorCode code = ErrorCode::unsupported_model) {
    const auto text = refusal(file, code);
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  };
  const auto whole = program(at::randn({4, 2, 3, 3}));
  auto file = whole;
  file.nodes[2].target = "torch.ops.aten.nonzero.default";
  expect(file, "operator nonzero (node 'relu_'): is not known. Known: ");
  file.nodes[2].target = "torch.ops.torchvision.nms.default";
  expect(file, "operator torch.ops.torchvision.nms.default (node 'relu_') is not known");
  file = whole;
  file.inputs.push_back({"z", {1}});
  expect(file, "2 inputs");
  file = whole;
  file.tensors.clear();
  expect(file, "tensor 'conv.weight' is missing", ErrorCode::bad_input);
  file = whole;
  file.nodes[1].inputs[0].text = "later";
  expect(file, "'later' is read", ErrorCode::bad_input);
  file = whole;
  file.inputs[0].shape = {-1, 2, -1, -1};
  expect(file, "give the image size", ErrorCode::bad_input);
}

// Casts to integers would change numbers.
TEST(ExportedProgram, DataTypes) {
  auto file = program(at::randn({4, 2, 3, 3}));
  file.nodes[2] = {"torch.ops.aten._to_copy.default",
                   "relu_",
                   {tensor("self", "conv"), {"dtype", Kind::dtype, 6, 0, "", {}}},
                   {tensor("", "relu_")}};
  EXPECT_NO_THROW(import_exported_program(file));
  file.nodes[2].inputs[1].integer = 4;
  EXPECT_NE(refusal(file, ErrorCode::unsupported_model).find("floating-point"), std::string::npos);
}

// Any change of a node is refused with Error, or gives some network.
TEST(ExportedProgram, DamagedNodesAreRefusedOrHarmless) {
  const auto whole = program(at::randn({4, 2, 3, 3}));
  const std::int64_t numbers[] = {0,         1,        -1, 7, 1 << 20, std::int64_t{1} << 62,
                                  INT64_MAX, INT64_MIN};
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    auto file = whole;
    auto& node = file.nodes[random() % file.nodes.size()];
    const auto& other = whole.nodes[random() % whole.nodes.size()];
    auto& argument = node.inputs[random() % node.inputs.size()];
    const auto& taken = other.inputs[random() % other.inputs.size()];
    switch (random() % 5) {
      case 0:
        node.target = other.target;
        break;
      case 1:
        argument = taken;
        break;
      case 2:
        argument.name = taken.name;
        break;
      case 3:
        node.outputs = other.outputs;
        break;
      default:
        auto& number = argument.items.empty() ? argument : argument.items[0];
        number.kind = Kind::integer;
        number.integer = numbers[random() % 8];
    }
    try {
      import_exported_program(file);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace zsq::models
