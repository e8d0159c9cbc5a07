// SPDX-License-Identifier: Apache-2.0
// What the passes promise beyond what operators use today.
#include "cuda_kernels/bn_act.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include "tests/cuda_kernels/helpers.h"
#include "tests/support/emulated_cuda/default_device.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

struct Channels {
  at::Tensor gain = random({3}), offset = random({3}), mean = random({3});
};

at::Tensor row(const at::Tensor& t) { return t.view({1, -1, 1, 1}); }

TEST(BnActPass, SumsTakeTheResidualIn) {
  const NamedDevices from_now_on;  // calls what is for the host
  const Channels c;
  const at::Tensor x = random({2, 3, 4, 5}), dy = random({2, 3, 4, 5});
  for (const at::Tensor& residual : {at::Tensor(), random({2, 3, 4, 5})}) {
    BnActPass pass{.op = "test", .x = x, .residual = residual, .dy = dy};
    pass.gain = c.gain;
    pass.offset = c.offset;
    pass.mean = c.mean;
    const at::Tensor sums = at::empty({2, 3}, at::kDouble);
    bn_act_sums_cpu(pass.tensors<float>(), pass.channels(), LeakyAct{0.2f},
                    sums.mutable_data_ptr<double>());
    at::Tensor u = x * row(c.gain) + row(c.offset);
    if (residual.defined()) u = u + residual;
    const at::Tensor du = at::where(u > 0, dy, dy * 0.2);
    const at::Tensor expected =
        at::stack({du.sum({0, 2, 3}), (du * (x - row(c.mean))).sum({0, 2, 3})});
    EXPECT_TRUE(at::allclose(sums.to(at::kFloat), expected, 1e-5, 1e-5));
  }
}

TEST(BnActPass, GradientsComeForBothOrNone) {
  const NamedDevices from_now_on;
  const at::Tensor x = random({2, 3, 4, 5});
  const auto nothing = [](const auto&...) {};
  BnActPass pass{.op = "test", .x = x, .residual = x, .dy = x, .dx = x};
  expect_error([&] { pass.run(nothing, nothing); }, "test: dresidual is missing");
  pass.dresidual = x;
  EXPECT_NO_THROW(pass.run(nothing, nothing));
  pass.residual = at::Tensor();
  expect_error([&] { pass.run(nothing, nothing); }, "test: dresidual is there");
}

}  // namespace
}  // namespace zsq::cuda_kernels
