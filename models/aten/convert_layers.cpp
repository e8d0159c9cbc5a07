// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

// As many outputs as inputs at stride 1; an odd pad goes to the end.
Dims same_pads(const Shape& weight, const Dims& dilation) {
  Dims pads(4);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto total = dilation[i] * (weight[i + 2] - 1);
    pads[i] = total / 2;
    pads[i + 2] = total - total / 2;
  }
  return pads;
}

Dims conv_pads(const Operation& op, const Shape& weight, const Dims& dilation) {
  if (!op.has("padding") || !op.value("padding").as<std::string>()) {
    const auto padding = op.pair("padding", 0);
    return {padding[0], padding[1], padding[0], padding[1]};
  }
  const auto word = op.text("padding", "");
  if (word == "valid") return {0, 0, 0, 0};
  if (word != "same") op.fail("padding '" + word + "' is not known");
  return same_pads(weight, dilation);
}

// Vectors that the network leaves out (affine=False) are made up.
std::string vector_or(const Operation& op, const char* parameter, double otherwise) {
  if (op.has(parameter)) return op.tensor(parameter);
  const auto size = op.shape("input").at(1);
  return op.constant(otherwise == 0 ? at::zeros({size}) : at::ones({size}));
}

}  // namespace

Value convert_conv2d(const Operation& op) {
  if (!op.is_constant("weight")) op.fail("the weight must be a constant");
  const auto weight = op.shape("weight");
  if (weight.size() != 4) op.fail("only two-dimensional convolutions are known");
  const auto groups = op.integer("groups", 1);
  if (groups < 1 || groups > onnx::kMaxExtent) op.fail("groups must be positive");
  op.expect_channels("input", weight[1] * groups);
  const auto dilation = op.pair("dilation", 1);
  std::vector<std::string> inputs{op.tensor("input"), op.tensor("weight")};
  if (op.has("bias")) inputs.push_back(op.tensor("bias"));
  return make_tensor(op.emit("Conv", inputs,
                             {{"strides", op.pair("stride", 1)},
                              {"pads", conv_pads(op, weight, dilation)},
                              {"dilations", dilation},
                              {"group", groups}}));
}

Value convert_conv1d(const Operation& op) {
  if (!op.is_constant("weight")) op.fail("the weight must be a constant");
  const auto weight = op.shape("weight");
  if (weight.size() != 3) op.fail("a weight of three dimensions was expected");
  const auto one = [&](const char* parameter, std::int64_t otherwise) {
    const auto numbers = op.integers(parameter, {otherwise});
    if (numbers.size() != 1)
      op.fail(std::string("argument '") + parameter + "' must hold one number");
    return numbers[0];
  };
  const auto dilation = one("dilation", 1);
  Dims pads(2, 0);
  if (op.has("padding") && op.value("padding").as<std::string>()) {
    const auto word = op.text("padding", "");
    if (word != "valid" && word != "same") op.fail("padding '" + word + "' is not known");
    const auto total = word == "same" ? dilation * (weight[2] - 1) : 0;
    pads = {total / 2, total - total / 2};
  } else {
    pads.assign(2, one("padding", 0));
  }
  std::vector<std::string> inputs{op.tensor("input"), op.tensor("weight")};
  if (op.has("bias")) inputs.push_back(op.tensor("bias"));
  return make_tensor(op.emit("Conv", inputs,
                             {{"strides", Dims{one("stride", 1)}},
                              {"pads", pads},
                              {"dilations", Dims{dilation}},
                              {"group", op.integer("groups", 1)}}));
}

Value convert_conv_transpose2d(const Operation& op) {
  if (!op.is_constant("weight")) op.fail("the weight must be a constant");
  const auto weight = op.shape("weight");
  if (weight.size() != 4) op.fail("only two-dimensional convolutions are known");
  op.expect_channels("input", weight[0]);
  const auto padding = op.pair("padding", 0);
  std::vector<std::string> inputs{op.tensor("input"), op.tensor("weight")};
  if (op.has("bias")) inputs.push_back(op.tensor("bias"));
  return make_tensor(op.emit("ConvTranspose", inputs,
                             {{"strides", op.pair("stride", 1)},
                              {"pads", Dims{padding[0], padding[1], padding[0], padding[1]}},
                              {"output_padding", op.pair("output_padding", 0)},
                              {"dilations", op.pair("dilation", 1)},
                              {"group", op.integer("groups", 1)}}));
}

Value convert_convolution(const Operation& op) {
  if (op.flag("transposed", false)) return convert_conv_transpose2d(op);
  return op.shape("weight").size() == 3 ? convert_conv1d(op) : convert_conv2d(op);
}

Value convert_convolution_mode(const Operation& op) {
  return op.shape("weight").size() == 3 ? convert_conv1d(op) : convert_conv2d(op);
}

Value convert_batch_norm(const Operation& op) {
  if (op.shape("input").size() < 2) op.fail("needs an input N x C x ...");
  const bool own = !op.has("running_mean") && op.flag("training", false) && op.is_constant("input");
  if (own) {  // a kernel that is standardized
    const auto zeros = op.constant(at::zeros({op.shape("input").at(1)}, at::kFloat));
    return make_tensor(op.emit(
        "BatchNormalization",
        {op.tensor("input"), vector_or(op, "weight", 1), vector_or(op, "bias", 0), zeros, zeros},
        {{"epsilon", static_cast<float>(op.number("eps", 1e-5))},
         {"training_mode", std::int64_t{1}}}));
  }
  if (!op.has("running_mean") || !op.has("running_var")) {
    op.fail("has no running statistics (track_running_stats=False)");
  }
  return make_tensor(
      op.emit("BatchNormalization",
              {op.tensor("input"), vector_or(op, "weight", 1), vector_or(op, "bias", 0),
               op.tensor("running_mean"), op.tensor("running_var")},
              {{"epsilon", static_cast<float>(op.number("eps", 1e-5))},
               {"training_mode", std::int64_t{op.flag("training", false)}}}));
}

Value convert_native_batch_norm(const Operation& op) {
  return make_list({convert_batch_norm(op), {}, {}});
}

Value convert_linear(const Operation& op) {
  if (op.shape("weight").size() != 2) op.fail("the weight must be a matrix");
  std::vector<std::string> inputs{op.tensor("input"), op.tensor("weight")};
  if (op.has("bias")) inputs.push_back(op.tensor("bias"));
  return make_tensor(op.emit("Gemm", inputs, {{"transB", std::int64_t{1}}}));
}

Value convert_addmm(const Operation& op) {
  if (op.number("beta", 1) != 1 || op.number("alpha", 1) != 1) {
    op.fail("alpha and beta other than 1 are not known");
  }
  if (!op.is_constant("mat2")) op.fail("multiplies the images of the batch with each other");
  const auto& transposed = op.value("mat2").tensor();
  if (op.shape("mat2").size() != 2) op.fail("the second factor must be a matrix");
  const bool stored = transposed->transposed.empty();
  return make_tensor(op.emit(
      "Gemm",
      {op.tensor("mat1"), stored ? op.tensor("mat2") : transposed->transposed, op.tensor("self")},
      {{"transB", std::int64_t{!stored}}}));
}

Value convert_matmul(const Operation& op) {
  const char* second = op.has("mat2") ? "mat2" : "other";
  const auto* other = op.value(second).tensor();
  if (!other || other->transposed.empty()) {
    return make_tensor(op.emit("MatMul", {op.tensor("self"), op.tensor(second)}));
  }
  return make_tensor(
      op.emit("Gemm", {op.tensor("self"), other->transposed}, {{"transB", std::int64_t{1}}}));
}

}  // namespace zsq::models::aten
