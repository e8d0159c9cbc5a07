// SPDX-License-Identifier: Apache-2.0
// Operators that also sum: what they write has the bits of the CPU implementation, the sums are
// near it (it adds in float within a row) and have the same bits in every order.
#include "cuda_kernels/bn_act_implementations.h"
#include "cuda_kernels/channel_moments_implementations.h"
#include "cuda_kernels/channel_sums_cuda.h"
#include "cuda_kernels/scale_gradient_implementations.h"
#include "tests/cuda_kernels/emulated/raw_memory.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

std::int64_t elements(ChannelLayout layout) {
  return layout.outer * layout.channels * layout.inner;
}
// Rounding errors of sums over a channel of numbers about 1.
double sum_error(ChannelLayout layout) {
  return 1e-5 * std::sqrt(static_cast<double>(layout.outer * layout.inner)) + 1e-5;
}
template <class F>
void for_every_layout(const F& f, const std::vector<ChannelLayout>& layouts = kLayouts) {
  for (const ChannelLayout& layout : layouts) {
    SCOPED_TRACE(std::to_string(layout.outer) + " x " + std::to_string(layout.channels) + " x " +
                 std::to_string(layout.inner));
    f(layout, float());
    if (kManyThreads) f(layout, Bf16());
  }
}
// Sums of every order: near those of the CPU, and equal to those of the first order.
class Sums {
 public:
  Sums(Memory<double> cpu, double error) : cpu_(std::move(cpu)), error_(error) {}
  void expect(const Memory<double>& cuda) {
    EXPECT_TRUE(near(cuda, cpu_, 1e-5, error_));
    if (first_.size() == 0) first_ = cuda;
    EXPECT_TRUE(same(first_, cuda));
  }

 private:
  Memory<double> cpu_, first_;
  double error_;
};

template <class T>
struct BnActCase {
  ChannelLayout layout;
  std::int64_t n, c;
  Memory<T> x, residual, dy;
  Memory<float> gain, offset, mean, a, b, scale, zero;
  bool with_residual;

  BnActCase(ChannelLayout layout, bool with_residual)
      : layout(layout),
        n(elements(layout)),
        c(layout.channels),
        x(normal<T>(n)),
        residual(normal<T>(n)),
        dy(normal<T>(n)),
        gain(normal(c)),
        offset(normal(c)),
        mean(normal(c, 0.1f)),
        a(normal(c, 0.1f)),
        b(normal(c, 0.1f)),
        scale(uniform(1, 0.2f, 0.4f)),
        zero(zeros<float>(1)),
        with_residual(with_residual) {}
  BnActChannels channels() const { return {gain, offset, mean, a, b}; }
  BnActTensors<T> tensors(T* y, T* dx, T* dresidual) const {
    return {layout, x, with_residual ? residual.data() : nullptr, dy, y, dx, dresidual};
  }
  ClipQuant quant(bool clipped) const { return {0, 3, scale, zero, {0, 7}, clipped}; }
};

// run_cpu(tensors, sums), run_cuda(tensors, sums, scratch); `writes` of y, dx and dresidual, and
// kSums sums.
struct Writes {
  bool y = false, dx = false, dresidual = false;
};
template <class T, class Cpu, class Cuda>
void expect_pass(const BnActCase<T>& in, Writes writes, int sums, const Cpu& run_cpu,
                 const Cuda& run_cuda) {
  const auto made = [&](bool wanted) { return Memory<T>(wanted ? in.n : 0); };
  const auto at = [](const Memory<T>& m) { return m.size() ? m.data() : nullptr; };
  writes.dresidual &= in.with_residual;
  const Memory<T> y = made(writes.y), dx = made(writes.dx), dr = made(writes.dresidual);
  const Memory<double> sums_cpu(sums * in.c);
  run_cpu(in.tensors(at(y), at(dx), at(dr)), sums_cpu.data());
  Sums expected(sums_cpu, sum_error(in.layout));
  in_every_order([&] {
    const Memory<T> y2 = made(writes.y), dx2 = made(writes.dx), dr2 = made(writes.dresidual);
    const Memory<double> sums_cuda(sums * in.c), partial(channel_sums_scratch(in.layout));
    run_cuda(in.tensors(at(y2), at(dx2), at(dr2)), sums_cuda.data(), {partial, nullptr});
    EXPECT_TRUE(same(y, y2));
    EXPECT_TRUE(same(dx, dx2));
    EXPECT_TRUE(same(dr, dr2));
    expected.expect(sums_cuda);
  });
}

TEST(EmulatedCuda, BatchNormClipFakeQuant) {
  for_every_layout([]<class T>(ChannelLayout layout, T) {
    for (const bool with_residual : {false, true}) {
      const BnActCase<T> in(layout, with_residual);
      const auto c = in.channels();
      for (const bool clipped : {false, true}) {
        const ClipQuant act = in.quant(clipped);
        expect_pass(
            in, {.y = true}, 0, [&](const auto& t, double*) { bn_act_cpu(t, c, act); },
            [&](const auto& t, double*, BnActScratch s) { bn_act_cuda(t, c, act, s); });
        for (const bool slopes : {false, true})
          expect_pass(
              in, {.dx = true, .dresidual = true}, slopes ? 3 : 2,
              [&](const auto& t, double* sums) { bn_act_backward_cpu(t, c, act, slopes, sums); },
              [&](const auto& t, double* sums, BnActScratch s) {
                bn_act_backward_cuda(t, c, act, slopes, sums, s);
              });
      }
    }
  });
}

// Images with gains, offsets and sums of their own: what as many passes over one image give, in as
// many launches as one.
TEST(EmulatedCuda, BatchNormOfEachImage) {
  constexpr std::int64_t kImages = 3;
  const LeakyAct act{0.2f};
  const auto test = [&]<class T>(ChannelLayout layout, T) {
    const BnActCase<T> in({layout.outer * kImages, layout.channels, layout.inner}, false);
    const auto gain = normal(kImages * in.c), offset = normal(kImages * in.c);
    const BnActChannels c{gain, offset, in.mean, in.a, in.b};
    const auto pass = [&](const Memory<T>& y, const Memory<T>& dx) {
      auto t = in.tensors(y.data(), dx.data(), nullptr);
      t.layout = layout;
      t.images = kImages;
      return t;
    };
    const Memory<T> y(in.n), dx(in.n);
    const Memory<double> sums_cpu(kImages * 2 * in.c);
    for (std::int64_t i = 0; i < kImages; ++i) {
      const auto one = pass(y, dx).image(i);
      const auto own = c.image(i, in.c);
      EXPECT_EQ(one.images, 1);
      bn_act_cpu(one, own, act);
      bn_act_sums_cpu(one, own, act, sums_cpu.data() + i * 2 * in.c);
      bn_act_through_moments_cpu(one, own, act);
    }
    Sums expected(sums_cpu, sum_error(layout));
    in_every_order([&] {
      const Memory<T> y2(in.n), dx2(in.n);
      const Memory<double> sums(kImages * 2 * in.c),
          partial(kImages * channel_sums_scratch(layout));
      const auto t = pass(y2, dx2);
      const auto before = emulated_cuda::launches;
      bn_act_cuda(t, c, act, {partial, nullptr});
      bn_act_sums_cuda(t, c, act, sums, {partial, nullptr});
      bn_act_through_moments_cuda(t, c, act, {partial, nullptr});
      EXPECT_EQ(emulated_cuda::launches - before, 4u);
      EXPECT_TRUE(same(y, y2));
      EXPECT_TRUE(same(dx, dx2));
      expected.expect(sums);
    });
    const Memory<T> y3(in.n), dx3(in.n);
    const Memory<double> sums3(kImages * 2 * in.c);
    bn_act_cpu(pass(y3, dx3), c, act);
    bn_act_sums_cpu(pass(y3, dx3), c, act, sums3.data());
    bn_act_through_moments_cpu(pass(y3, dx3), c, act);
    EXPECT_TRUE(same(y, y3));
    EXPECT_TRUE(same(dx, dx3));
    EXPECT_TRUE(same(sums_cpu, sums3));
  };
  // The images of the last three are no whole vectors.
  for_every_layout(test, {{1, 3, 64}, {70, 8, 1}, {300, 4, 1}, {1, 5, 7}, {9, 3, 1}, {1, 1, 7}});
}

TEST(EmulatedCuda, BatchNormClipMoments) {
  for_every_layout([]<class T>(ChannelLayout layout, T) {
    for (const bool with_residual : {false, true}) {
      const BnActCase<T> in(layout, with_residual);
      const auto c = in.channels();
      const ClipAct act{-1, 1.5f};
      expect_pass(
          in, {.y = true}, 2,
          [&](const auto& t, double* sums) { bn_act_moments_cpu(t, c, act, sums); },
          [&](const auto& t, double* sums, BnActScratch s) {
            bn_act_moments_cuda(t, c, act, sums, s);
          });
      expect_pass(
          in, {.dx = true, .dresidual = true}, 0,
          [&](const auto& t, double*) { bn_act_through_moments_cpu(t, c, act); },
          [&](const auto& t, double*, BnActScratch s) {
            bn_act_through_moments_cuda(t, c, act, s);
          });
    }
  });
}

TEST(EmulatedCuda, BatchNormLeakyRelu) {
  for_every_layout([]<class T>(ChannelLayout layout, T) {
    const BnActCase<T> in(layout, false);
    const auto c = in.channels();
    const LeakyAct act{0.2f};
    expect_pass(
        in, {.y = true}, 0, [&](const auto& t, double*) { bn_act_cpu(t, c, act); },
        [&](const auto& t, double*, BnActScratch s) { bn_act_cuda(t, c, act, s); });
    expect_pass(
        in, {}, 2, [&](const auto& t, double* sums) { bn_act_sums_cpu(t, c, act, sums); },
        [&](const auto& t, double* sums, BnActScratch s) { bn_act_sums_cuda(t, c, act, sums, s); });
    expect_pass(
        in, {.dx = true}, 0, [&](const auto& t, double*) { bn_act_through_moments_cpu(t, c, act); },
        [&](const auto& t, double*, BnActScratch s) { bn_act_through_moments_cuda(t, c, act, s); });
  });
}

TEST(EmulatedCuda, ChannelMoments) {
  const auto expect = []<class T>(ChannelLayout layout, T) {
    const std::int64_t n = elements(layout), channels = layout.channels;
    for (const std::int64_t shift : {0, 1}) {
      const auto x = normal<T>(n, 1, 0.5f, shift);
      const auto about = normal(channels, 0.1f), a = normal(channels), b = normal(channels);
      const Memory<double> sums_cpu(2 * channels);
      const Memory<T> dx(n, shift);
      channel_moment_sums_cpu(x.data(), about.data(), sums_cpu.data(), layout);
      channel_moments_backward_cpu(x.data(), about.data(), a.data(), b.data(), dx.data(), layout);
      Sums expected(sums_cpu, 10 * sum_error(layout));
      const T* in = x;
      in_every_order([&] {
        const Memory<double> sums(2 * channels), partial(channel_sums_scratch(layout));
        const Memory<T> dx_cuda(n, shift);
        channel_moment_sums_cuda(in, about, sums, partial, layout, nullptr);
        channel_moments_backward_cuda(in, about, a, b, dx_cuda.data(), layout, nullptr);
        EXPECT_TRUE(same(dx, dx_cuda));
        expected.expect(sums);
      });
    }
  };
  for_every_layout(expect);
  if (kManyThreads) for_every_layout(expect, kLargeLayouts);
}

TEST(EmulatedCuda, ScaleGradient) {
  for_every_layout([]<class T>(ChannelLayout layout, T) {
    const std::int64_t n = elements(layout);
    const auto x = normal<T>(n, 2), dy = normal<T>(n);
    const RandomGrid grid(layout.channels, 1);
    const ScaleGradientView view{layout, grid.scale, grid.zero_point, kCodes};
    for (const bool with_dx : {true, false}) {
      const Memory<double> sums_cpu(layout.channels);
      const Memory<T> dx(with_dx ? n : 0);
      const T *in = x, *above = dy;
      scale_gradient_cpu(in, above, with_dx ? dx.data() : nullptr, sums_cpu, view);
      Sums expected(sums_cpu, 100 * sum_error(layout));
      in_every_order([&] {
        const Memory<double> sums(layout.channels), partial(channel_sums_scratch(layout));
        const Memory<T> dx_cuda(with_dx ? n : 0);
        scale_gradient_cuda(in, above, with_dx ? dx_cuda.data() : nullptr, sums, partial, view,
                            nullptr);
        EXPECT_TRUE(same(dx, dx_cuda));
        expected.expect(sums);
      });
    }
  });
}

}  // namespace
}  // namespace zsq::cuda_kernels
