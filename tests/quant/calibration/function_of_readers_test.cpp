// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include <cmath>

#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

using models::NodeId;

// A convolution "x" whose output the test gives readers.
class Readers {
 public:
  NodeId convolution() { return x_; }
  NodeId op(const std::string& name, models::Op op, std::vector<NodeId> inputs) {
    return net_.op(name, std::move(op), std::move(inputs));
  }
  // The function in the student, at `values`.
  at::Tensor of(NodeId last, const at::Tensor& values) {
    const auto flat = op("flat", models::Flatten{}, {op("pool", models::GlobalAvgPool{}, {last})});
    const auto model = net_.finish(net_.linear("fc", flat, 4, 3), 3);
    const auto student = test::quantized(model, {});
    const auto function = function_of_readers(student.graph, student.graph.id_of("x"));
    return function ? function(values) : at::Tensor();
  }

 private:
  test::NetworkBuilder net_{{3, 6, 6}};
  NodeId x_ = net_.conv("x", net_.input(), 3, 4, 3, 1, true);
};

at::Tensor silu_by_hand(const at::Tensor& x) { return x / (1 + at::exp(-x)); }

TEST(FunctionOfReaders, IsTheOneThatAllComputeTogether) {
  const auto values = at::linspace(-12, 12, 49);
  Readers gate;
  const auto sigmoid = gate.op("s", models::Sigmoid{}, {gate.convolution()});
  const auto product = gate.op("p", models::Mul{}, {gate.convolution(), sigmoid});
  EXPECT_TRUE(at::allclose(gate.of(product, values), silu_by_hand(values), 1e-5, 1e-6));
  Readers alone;
  const auto elu = models::Elementwise{models::Function::elu, 1, 0};
  const auto found = alone.of(alone.op("f", elu, {alone.convolution()}), values);
  EXPECT_TRUE(at::allclose(found, at::where(values > 0, values, at::exp(values) - 1), 1e-5, 1e-6));
}

TEST(FunctionOfReaders, IsNoneWhereSomethingElseReads) {
  const auto values = at::arange(3.0);
  Readers shortcut;
  const auto sigmoid = shortcut.op("s", models::Sigmoid{}, {shortcut.convolution()});
  EXPECT_FALSE(
      shortcut.of(shortcut.op("sum", models::Add{}, {shortcut.convolution(), sigmoid}), values)
          .defined());
  Readers twice;  // the gate is read by another as well
  const auto gate = twice.op("s", models::Sigmoid{}, {twice.convolution()});
  const auto product = twice.op("p", models::Mul{}, {twice.convolution(), gate});
  EXPECT_FALSE(twice.of(twice.op("sum", models::Add{}, {product, gate}), values).defined());
}

// Codes below -8 would tell values apart that SiLU makes the same.
TEST(FunctionOfReaders, GivesItsFlatPartNoCodes) {
  const auto spec = activation_spec(8, Mode::deploy);
  Histogram histogram;
  const auto values = test::normal({20000}, 3, 12);
  histogram.add(values, at::ones_like(values) / 20000);
  const auto plain = least_error_range(histogram, spec, 5);
  const auto silu = least_error_range(histogram, spec, 5, silu_by_hand);
  EXPECT_LT(plain.first, -30);
  EXPECT_GT(silu.first, -10);
  const auto error = [&](std::pair<double, double> range) {
    double sum = 0;
    const double scale = (range.second - range.first) / 255,
                 zero = std::nearbyint(-range.first / scale);
    for (std::int64_t i = 0; i < values.size(0); ++i) {
      const double x = values[i].item<double>();
      const double code = std::min(255.0, std::max(0.0, std::nearbyint(x / scale) + zero));
      const double q = (code - zero) * scale;
      sum += std::abs(q / (1 + std::exp(-q)) - x / (1 + std::exp(-x)));
    }
    return sum;
  };
  EXPECT_LT(error(silu), 0.8 * error(plain));
}

}  // namespace
}  // namespace zsq::quant
