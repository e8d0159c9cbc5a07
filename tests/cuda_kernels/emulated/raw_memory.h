// SPDX-License-Identifier: Apache-2.0
// Heap memory that is exactly as large as what it holds, filled with random numbers, and runs of a
// launcher in every order of blocks and threads. No libtorch: fast to build, and every access is
// the sanitizers' to see.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/fake_quant_implementations.h"
#include "tests/support/emulated_cuda/grid.h"

namespace zsq::test {

// n elements at an address that is a multiple of 16 plus `shift` elements; no byte more. Floats are
// NaN until they are written.
template <class T>
class Memory {
 public:
  explicit Memory(std::int64_t n = 0, std::int64_t shift = 0) : n_(n), shift_(shift) {
    bytes_.reset(static_cast<T*>(::operator new((n + shift) * sizeof(T), kAlignment)));
    std::memset(static_cast<void*>(bytes_.get()), 0xFF, (n + shift) * sizeof(T));
  }
  Memory(const Memory& o) : Memory(o.n_, o.shift_) {
    std::memcpy(static_cast<void*>(data()), o.data(), bytes());
  }
  Memory& operator=(const Memory& o) { return *this = Memory(o); }
  Memory(Memory&&) = default;
  Memory& operator=(Memory&&) = default;

  T* data() const { return bytes_.get() + shift_; }
  operator T*() const { return data(); }
  std::int64_t size() const { return n_; }
  std::size_t bytes() const { return n_ * sizeof(T); }

 private:
  static constexpr auto kAlignment = std::align_val_t(16);
  struct Delete {
    void operator()(T* p) const { ::operator delete(p, kAlignment); }
  };
  std::int64_t n_, shift_;
  std::unique_ptr<T, Delete> bytes_;
};

inline std::mt19937_64 engine(7);

template <class T = float>
Memory<T> normal(std::int64_t n, float spread = 1, float mean = 0, std::int64_t shift = 0) {
  Memory<T> memory(n, shift);
  std::normal_distribution<float> draw(mean, spread);
  for (std::int64_t i = 0; i < n; ++i) cuda_kernels::store(memory[i], draw(engine));
  return memory;
}
inline Memory<float> uniform(std::int64_t n, float lo, float hi) {
  Memory<float> memory(n);
  std::uniform_real_distribution<float> draw(lo, hi);
  for (std::int64_t i = 0; i < n; ++i) memory[i] = draw(engine);
  return memory;
}
template <class T>
Memory<T> zeros(std::int64_t n) {
  Memory<T> memory(n);
  std::memset(static_cast<void*>(memory.data()), 0, memory.bytes());
  return memory;
}

inline double value_of(cuda_kernels::Bf16 v) { return cuda_kernels::load(v); }
template <class T>
double value_of(T v) {
  return static_cast<double>(v);
}

// Equal in every bit; NaN equals NaN.
template <class T>
testing::AssertionResult same(const Memory<T>& a, const Memory<T>& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << "sizes differ";
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = value_of(a[i]), y = value_of(b[i]);
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0 || (std::isnan(x) && std::isnan(y))) continue;
    return testing::AssertionFailure()
           << "element " << i << " of " << a.size() << ": " << x << " and " << y;
  }
  return testing::AssertionSuccess();
}
template <class T>
testing::AssertionResult near(const Memory<T>& found, const Memory<T>& wanted, double relative,
                              double absolute) {
  for (std::int64_t i = 0; i < found.size(); ++i) {
    const double x = value_of(found[i]), y = value_of(wanted[i]);
    if (std::abs(x - y) <= absolute + relative * std::abs(y)) continue;
    if (!(std::isnan(x) && std::isnan(y)))
      return testing::AssertionFailure() << "element " << i << ": " << x << ", wanted " << y;
  }
  return testing::AssertionSuccess();
}

// ThreadSanitizer takes a hundred times as long for a thread: one order tells it all, and grids of
// many blocks tell it no more than one block.
#if defined(__SANITIZE_THREAD__)
constexpr bool kManyThreads = false;
#else
constexpr bool kManyThreads = true;
#endif

// f() with blocks and threads forwards, backwards and shuffled.
template <class F>
void in_every_order(const F& f) {
  using emulated_cuda::Order;
  if (!kManyThreads) return f();
  for (const Order order : {Order::forward, Order::backward, Order::shuffled}) {
    emulated_cuda::order = order;
    emulated_cuda::order_seed = engine();
    f();
  }
  emulated_cuda::order = Order::forward;
}

constexpr cuda_kernels::CodeRange kCodes{-8, 7};

// A random scale and zero point for each channel.
struct RandomGrid {
  Memory<float> scale, zero_point;
  cuda_kernels::GridView view;
  RandomGrid(std::int64_t channels, std::int64_t inner)
      : scale(uniform(channels, 0.05f, 0.5f)), zero_point(uniform(channels, -3, 3)) {
    for (std::int64_t c = 0; c < channels; ++c) zero_point[c] = std::nearbyint(zero_point[c]);
    view = {scale, zero_point, channels, inner, kCodes};
  }
};

// Tails of every loop, one block, several, and more elements than the largest grid has threads.
struct Shape {
  std::int64_t n, channels, inner;
};
inline const std::vector<Shape> kShapes = {{1, 1, 1},      {3, 1, 3},       {4, 1, 4},
                                           {5, 5, 1},      {255, 3, 17},    {256, 16, 4},
                                           {1027, 13, 79}, {4096, 1, 4096}, {70000, 7, 100}};
constexpr Shape kBeyondTheGrid = {1200003, 3, 400001}, kBeyondTheGridByFour = {4400000, 1, 4400000};

// Layers of every size, more than one table of them holds.
inline std::vector<Shape> layer_shapes() {
  std::vector<Shape> shapes;
  for (std::int64_t i = 0; i < 80; ++i) {
    const std::int64_t c = 1 + i % 7, inner = 1 + i % 45;
    shapes.push_back({c * inner, c, inner});
  }
  for (const Shape& s : std::vector<Shape>{{1, 1, 1},
                                           {4096, 1, 4096},
                                           {4097, 1, 4097},
                                           {64 * 576, 64, 576},
                                           {70000, 1000, 70},
                                           {9 * 4097, 9, 4097},
                                           {8192, 2, 4096}})
    shapes.push_back(s);
  return shapes;
}

// Row-major and channels_last activations: one part and several, tiles and rows of threads that are
// not full, vectors that fit the layout of one type and not of the other, or leave a rest.
using cuda_kernels::ChannelLayout;
inline const std::vector<ChannelLayout> kLayouts = {
    {1, 1, 1},     {1, 40, 1},   {3, 40, 1},    {5003, 1, 1}, {2, 1, 37},
    {2, 3, 35},    {3, 8, 12},   {70, 3, 1},    {50, 12, 1},  {2, 17, 1023},
    {2046, 17, 1}, {4, 129, 49}, {196, 129, 1}, {130, 136, 1}};
// So many elements that a thread takes several: of parts, of vectors whose channels repeat only
// after three blocks, and of single elements.
inline const std::vector<ChannelLayout> kLargeLayouts = {
    {1, 2, 140000}, {140001, 2, 1}, {91300, 12, 1}, {350001, 3, 1}};

}  // namespace zsq::test
