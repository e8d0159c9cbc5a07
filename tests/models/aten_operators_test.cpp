// SPDX-License-Identifier: Apache-2.0
// Each operator, with its defaults and without, against ATen's own.
#include <ATen/ops/_softmax.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/channel_shuffle.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/models/script.h"

namespace zsq::models::aten_operators_test {
namespace {

using at::Tensor;

// x is [2, 4, 6, 6].
struct Weights {
  Tensor conv = at::randn({6, 4, 3, 3}), bias = at::randn({6}), depthwise = at::randn({4, 1, 3, 2}),
         gamma = at::randn({4}), beta = at::randn({4}), mean = at::randn({4}),
         variance = at::randn({4}).abs().add(0.5), linear = at::randn({5, 4}),
         classes = at::randn({5}), channels = at::randn({4, 1, 1});
  std::vector<Tensor> all() const {
    return {conv, bias, depthwise, gamma, beta, mean, variance, linear, classes, channels};
  }
};

struct Case {
  const char* name;
  const char* code;  // makes y of x
  Tensor (*truth)(const Tensor& x, const Weights& w);
};

const Case kLayers[] = {
    {"conv2d", "y = torch.conv2d(x, CONSTANTS.c0, CONSTANTS.c1, [2, 1], [1, 0], [1, 2])",
     [](const Tensor& x, const Weights& w) {
       return at::conv2d(x, w.conv, w.bias, {2, 1}, at::IntArrayRef{1, 0}, {1, 2});
     }},
    {"conv2d_same", "y = torch.conv2d(x, CONSTANTS.c2, None, [1, 1], \"same\", [2, 1], 4)",
     [](const Tensor& x, const Weights& w) {
       return at::conv2d(x, w.depthwise, {}, {1, 1}, "same", {2, 1}, 4);
     }},
    {"conv2d_valid", "y = torch.conv2d(x, CONSTANTS.c0, padding=\"valid\")",
     [](const Tensor& x, const Weights& w) { return at::conv2d(x, w.conv); }},
    {"_convolution",
     "y = torch._convolution(x, CONSTANTS.c2, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 4, "
     "False, False, True, True)",
     [](const Tensor& x, const Weights& w) {
       return at::conv2d(x, w.depthwise, {}, {1, 1}, at::IntArrayRef{1, 1}, {1, 1}, 4);
     }},
    {"batch_norm",
     "y = torch.batch_norm(x, CONSTANTS.c3, CONSTANTS.c4, CONSTANTS.c5, CONSTANTS.c6, False, "
     "0.1, 0.001, True)",
     [](const Tensor& x, const Weights& w) {
       return at::batch_norm(x, w.gamma, w.beta, w.mean, w.variance, false, 0.1, 1e-3, false);
     }},
    {"batch_norm_without_affine",
     "y = torch.batch_norm(x, None, None, CONSTANTS.c5, CONSTANTS.c6, False, 0.1, 0.001, True)",
     [](const Tensor& x, const Weights& w) {
       return at::batch_norm(x, {}, {}, w.mean, w.variance, false, 0.1, 1e-3, false);
     }},
    {"native_batch_norm",
     "y, _0, _1, = torch.native_batch_norm(x, CONSTANTS.c3, CONSTANTS.c4, CONSTANTS.c5, "
     "CONSTANTS.c6, False, 0.1, 0.001)",
     [](const Tensor& x, const Weights& w) {
       return at::batch_norm(x, w.gamma, w.beta, w.mean, w.variance, false, 0.1, 1e-3, false);
     }},
    {"linear", "y = torch.linear(torch.mean(x, [2, 3]), CONSTANTS.c7, CONSTANTS.c8)",
     [](const Tensor& x, const Weights& w) {
       return at::linear(x.mean({2, 3}), w.linear, w.classes);
     }},
    {"addmm", "y = torch.addmm(CONSTANTS.c8, torch.mean(x, [2, 3]), torch.t(CONSTANTS.c7))",
     [](const Tensor& x, const Weights& w) {
       return at::linear(x.mean({2, 3}), w.linear, w.classes);
     }},
    {"matmul", "y = torch.matmul(torch.mean(x, [-1, 2]), torch.transpose(CONSTANTS.c7, 0, 1))",
     [](const Tensor& x, const Weights& w) {
       return at::linear(x.mean({2, 3}), w.linear);
     }},
};

#define ZSQ_UNARY(name, code, expression)                                  \
  {                                                                        \
    name, code, [](const Tensor& x, const Weights&) { return expression; } \
  }

const Case kElementwise[] = {
    ZSQ_UNARY("relu", "y = torch.relu(x)", x.relu()),
    ZSQ_UNARY("relu6", "y = torch.relu6(torch.mul(x, 5))", x.mul(5).clamp(0, 6)),
    ZSQ_UNARY("hardtanh", "y = torch.hardtanh(x, 0., 0.5)", at::hardtanh(x, 0, 0.5)),
    ZSQ_UNARY("hardtanh_defaults", "y = torch.hardtanh(x)", at::hardtanh(x)),
    ZSQ_UNARY("clamp", "y = torch.clamp(x, None, 0.5)", x.clamp_max(0.5)),
    ZSQ_UNARY("clamp_min", "y = torch.clamp_min(x, -1)", x.clamp_min(-1)),
    ZSQ_UNARY("leaky_relu", "y = torch.leaky_relu(x, 0.2)", at::leaky_relu(x, 0.2)),
    ZSQ_UNARY("leaky_relu_default", "y = torch.leaky_relu(x)", at::leaky_relu(x)),
    ZSQ_UNARY("sigmoid", "y = torch.sigmoid(x)", x.sigmoid()),
    ZSQ_UNARY("silu", "y = torch.silu(x)", at::silu(x)),
    ZSQ_UNARY("gelu", "y = torch.gelu(x)", at::gelu(x)),
    ZSQ_UNARY("layer_norm",
              "y = torch.permute(torch.layer_norm(torch.permute(x, [0, 2, 3, 1]), [4], None, None, "
              "0.01), [0, 3, 1, 2])",
              at::layer_norm(x.permute({0, 2, 3, 1}), {4}, {}, {}, 0.01).permute({0, 3, 1, 2})),
    ZSQ_UNARY("hardsigmoid", "y = torch.hardsigmoid(torch.mul(x, 2))", at::hardsigmoid(x.mul(2))),
    ZSQ_UNARY("hardswish", "y = torch.hardswish(torch.mul(x, 2))", at::hardswish(x.mul(2))),
    ZSQ_UNARY("softmax", "y = torch.softmax(x, 1)", at::_softmax(x, 1, false)),
    ZSQ_UNARY("add", "y = torch.add(x, torch.relu(x))", x.add(x.relu())),
    ZSQ_UNARY("add_number", "y = torch.add(x, 3)", x.add(3)),
    ZSQ_UNARY("sub_number", "y = torch.sub(x, 0.5)", x.sub(0.5)),
    ZSQ_UNARY("rsub", "y = torch.rsub(x, 1)", x.neg().add(1)),
    ZSQ_UNARY("mul", "y = torch.mul(torch.sigmoid(x), x)", x.sigmoid().mul(x)),
    ZSQ_UNARY("div", "y = torch.div(x, 6)", x.div(6)),
    {"mul_constant", "y = torch.mul(x, CONSTANTS.c9)",
     [](const Tensor& x, const Weights& w) { return x.mul(w.channels); }},
    ZSQ_UNARY("dropout", "y = torch.dropout(x, 0.5, False)", x.clone()),
    ZSQ_UNARY("clone", "y = torch.contiguous(torch.clone(torch.detach(x)))", x.clone()),
    ZSQ_UNARY("to", "y = torch.to(x, 6)", x.clone()),
};

const Case kPooling[] = {
    ZSQ_UNARY("max_pool2d", "y = torch.max_pool2d(x, [3, 3], [2, 2], [1, 1])",
              at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1})),
    ZSQ_UNARY("max_pool2d_defaults", "y = torch.max_pool2d(x, 2)", at::max_pool2d(x, 2)),
    ZSQ_UNARY("max_pool2d_ceil", "y = torch.max_pool2d(x, [3, 3], [2, 2], [0, 0], [1, 1], True)",
              at::max_pool2d(x, {3, 3}, {2, 2}, {0, 0}, {1, 1}, true)),
    ZSQ_UNARY("max_pool2d_with_indices",
              "y, _0, = torch.max_pool2d_with_indices(x, [2, 2], [2, 2], [0, 0])",
              at::max_pool2d(x, 2)),
    ZSQ_UNARY("avg_pool2d", "y = torch.avg_pool2d(x, [3, 3], [1, 1], [1, 1], False, False)",
              at::avg_pool2d(x, {3, 3}, {1, 1}, {1, 1}, false, false)),
    ZSQ_UNARY("avg_pool2d_defaults", "y = torch.avg_pool2d(x, [2, 3], annotate(List[int], []))",
              at::avg_pool2d(x, {2, 3})),
    ZSQ_UNARY("adaptive_1", "y = torch.adaptive_avg_pool2d(x, [1, 1])", x.mean({2, 3}, true)),
    ZSQ_UNARY("adaptive_3x2", "y = torch.adaptive_avg_pool2d(x, [3, 2])",
              at::adaptive_avg_pool2d(x, {3, 2})),
    ZSQ_UNARY("mean", "y = torch.mean(x, [2, 3], True)", x.mean({2, 3}, true)),
    ZSQ_UNARY("upsample_scales", "y = torch.upsample_nearest2d(x, None, [2., 3.])",
              at::upsample_nearest2d(x, {12, 18})),
    ZSQ_UNARY("upsample_sizes", "y = torch.upsample_nearest2d(x, [12, 18], 2., 3.)",
              at::upsample_nearest2d(x, {12, 18})),
};

const Case kShapes[] = {
    ZSQ_UNARY("view", "y = torch.view(x, [torch.size(x, 0), 2, -1, 9])", x.view({2, 2, -1, 9})),
    ZSQ_UNARY("reshape", "y = torch.reshape(x, [-1, 144])", x.reshape({-1, 144})),
    ZSQ_UNARY("flatten_last", "y = torch.flatten(x, -2)", x.flatten(-2)),
    ZSQ_UNARY("flatten_middle", "y = torch.flatten(x, 1, 2)", x.flatten(1, 2)),
    ZSQ_UNARY("squeeze", "y = torch.squeeze(torch.mean(x, [2, 3], True), -1)",
              x.mean({2, 3}, true).squeeze(-1)),
    ZSQ_UNARY("squeeze_nothing", "y = torch.squeeze(x, 2)", x.clone()),
    ZSQ_UNARY("unsqueeze", "y = torch.unsqueeze(x, -1)", x.unsqueeze(-1)),
    ZSQ_UNARY("permute", "y = torch.permute(x, [0, 2, -1, 1])", x.permute({0, 2, 3, 1})),
    ZSQ_UNARY("transpose", "y = torch.transpose(x, 1, -1)", x.transpose(1, -1)),
    ZSQ_UNARY("channel_shuffle", "y = torch.channel_shuffle(x, 2)", at::channel_shuffle(x, 2)),
    ZSQ_UNARY("pad", "y = torch.pad(x, [1, 2, 0, 3], \"constant\", 0.5)",
              at::pad(x, {1, 2, 0, 3}, "constant", 0.5)),
    ZSQ_UNARY("pad_channels", "y = torch.pad(x, [0, 0, 0, 0, 1, 2])",
              at::pad(x, {0, 0, 0, 0, 1, 2})),
    ZSQ_UNARY("cat", "y = torch.cat([x, torch.relu(x)], 1)", at::cat({x, x.relu()}, 1)),
    ZSQ_UNARY("chunk", "a, b, = torch.chunk(x, 2, 1)\ny = torch.cat([b, a], 1)",
              at::cat({x.slice(1, 2), x.slice(1, 0, 2)}, 1)),
    ZSQ_UNARY("split", "a, b, = torch.split(x, 3, 1)\ny = torch.cat([b, a], 1)",
              at::cat({x.slice(1, 3), x.slice(1, 0, 3)}, 1)),
    ZSQ_UNARY("split_sizes",
              "a, b, = torch.split_with_sizes(x, [1, 3], 1)\ny = torch.cat([b, a], 1)",
              at::cat({x.slice(1, 1), x.slice(1, 0, 1)}, 1)),
    ZSQ_UNARY("slice", "y = torch.slice(torch.slice(x, 0), 2, 1, None, 2)", x.slice(2, 1, {}, 2)),
    ZSQ_UNARY("slice_negative", "y = torch.slice(x, 1, -3, 9223372036854775807)", x.slice(1, 1)),
    ZSQ_UNARY("select", "y = torch.select(x, 3, -1)", x.select(3, -1)),
};

void expect_as_aten(const Case& one) {
  SCOPED_TRACE(one.name);
  at::manual_seed(5);
  const at::NoGradGuard no_grad;
  const Weights weights;
  const auto x = at::randn({2, 4, 6, 6});
  const auto got = test::run(
      test::script(std::string(one.code) + "\nreturn torch.flatten(y, 1)", weights.all()), x);
  const auto wanted = one.truth(x, weights).flatten(1);
  ASSERT_EQ(got.sizes(), wanted.sizes());
  EXPECT_TRUE(at::allclose(got, wanted, 1e-4, 1e-5)) << (got - wanted).abs().max();
}

TEST(AtenOperators, Layers) {
  for (const auto& one : kLayers) {
    expect_as_aten(one);
  }
}
TEST(AtenOperators, Elementwise) {
  for (const auto& one : kElementwise) expect_as_aten(one);
}
TEST(AtenOperators, Pooling) {
  for (const auto& one : kPooling) expect_as_aten(one);
}
TEST(AtenOperators, Shapes) {
  for (const auto& one : kShapes) expect_as_aten(one);
}

// What import says of a network whose forward() is `code`.
std::string refusal(const std::string& code, ErrorCode wanted = ErrorCode::unsupported_model) {
  try {
    test::run(test::script(code, Weights().all()), at::randn({2, 4, 6, 6}));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), wanted) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(AtenOperators, RefusalsNameTheOperatorAndTheLine) {
  const auto refused = [](const std::string& code, const std::string& part) {
    const auto text = refusal(code + "\nreturn torch.flatten(y, 1)");
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  };
  refused("y = torch.nonzero(x)",
          "operator nonzero (code/__torch__/net.py, line 3): is not known. Known: ");
  refused("y = torch.avg_pool2d(x, [3, 3], [2, 2], [0, 0], True, True, 5)", "divisor_override");
  refused("y = torch.conv2d(x, x)", "the weight must be a constant");
  refused("y = torch.conv2d(x, CONSTANTS.c0, frob=1)", "argument 'frob' is not known");
  refused("y = torch.conv2d(x, CONSTANTS.c1)", "two-dimensional");
  refused("y = torch.conv2d(x, CONSTANTS.c0, None, [1, 1, 1])", "'stride' must hold one or two");
  refused("y = torch.batch_norm(x, None, None, None, None, True, 0.1, 0.1, True)",
          "no running statistics");
  refused("y = torch.pad(x, [6, 0, 0, 0], \"reflect\")", "goes beyond a side of 6 pixels");
  refused("y = torch.sum(x)", "reduces the batch");
  refused("y = torch.arange(torch.size(x, 0))", "counts up to the batch size");
  refused("y = torch.cat([x, x])", "the batch cannot be the axis");
  refused("y = torch.flatten(x)", "the batch would be merged");
  refused("y = torch.chunk(x, 9, 1)", "number of parts");
  refused("y = torch.to(x, 4)", "floating-point");
  refused("y = ops.torchvision.nms(x, x, 1)", "ops.torchvision.nms is not known");
}

TEST(AtenOperators, TrainingModeIsTakenAsInferenceWithAWarning) {
  auto file = test::script(
      "y = torch.dropout(torch.batch_norm(x, CONSTANTS.c3, CONSTANTS.c4, CONSTANTS.c5, "
      "CONSTANTS.c6, True, 0.1, 0.001, True), 0.5, True)\nreturn torch.flatten(y, 1)",
      Weights().all());
  file.traced_shape = {2, 4, 6, 6};
  const auto model = import_torchscript(file);
  ASSERT_EQ(model.warnings.size(), 2u);
  EXPECT_NE(model.warnings[0].find("training mode"), std::string::npos);
  EXPECT_NE(model.warnings[1].find("dropout"), std::string::npos);
}

// Channels that the file leaves open are those of the first convolution.
TEST(AtenOperators, OpenChannels) {
  const auto file = test::script(
      "y = torch.conv2d(x, CONSTANTS.c2, None, [1, 1], [0, 0], [1, 1], 4)\n"
      "return torch.flatten(y, 1)",
      Weights().all());
  const auto model = import_torchscript(file, test::sized(6));
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{4, 6, 6}));
}

// y = relu_(x) changes x; later readers of x and of nothing else must see it.
TEST(AtenOperators, InPlaceOperatorsChangeTheirArgument) {
  const auto x = at::randn({2, 4, 6, 6});
  const auto run = [&](const std::string& code) {
    return test::run(test::script(code + "\nreturn torch.flatten(z, 1)"), x);
  };
  EXPECT_TRUE(at::allclose(run("a = torch.mul(x, 2)\ny = torch.relu_(a)\nz = torch.add(a, x)"),
                           x.mul(2).relu().add(x).flatten(1)));
  EXPECT_TRUE(at::allclose(run("a = torch.mul(x, 2)\ny = torch.relu(a)\nz = torch.add(a, x)"),
                           x.mul(3).flatten(1)));
  EXPECT_TRUE(at::allclose(run("a = torch.mul(x, 2)\n_0 = torch.add_(a, x)\nz = torch.relu(a)"),
                           x.mul(3).relu().flatten(1)));
  // A view of what was changed is out of date, unless nobody reads it.
  EXPECT_NE(refusal("a = torch.mul(x, 2)\nv = torch.flatten(a, 1)\n_0 = torch.relu_(a)\nreturn v")
                .find("changed in place"),
            std::string::npos);
  EXPECT_NE(refusal("a = torch.mul(x, 2)\nv = torch.flatten(a, 1)\n_0 = torch.relu_(v)\n"
                    "return torch.flatten(a, 1)")
                .find("changed in place"),
            std::string::npos);
  EXPECT_TRUE(at::allclose(run("a = torch.mul(x, 2)\nv = torch.flatten(a, 1)\nz = torch.relu_(v)"),
                           x.mul(2).relu().flatten(1)));
}

}  // namespace
}  // namespace zsq::models::aten_operators_test
