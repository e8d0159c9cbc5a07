// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/tensor_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace zsq {
namespace {

constexpr std::int64_t kMebi = 1 << 20;

// Other tests of this program have libtorch's allocator.
struct Tensors : testing::Test {
  void SetUp() override { keep_freed_tensors(); }
  void TearDown() override { c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 1); }
};

at::Tensor of(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

TEST_F(Tensors, GivesFreedMemoryToTheNextTensorOfItsSize) {
  auto x = of(5 * kMebi);
  const void* before = x.data_ptr();
  x.reset();
  EXPECT_GE(tensor_memory().freed, 5 * kMebi);
  x = of(5 * kMebi);
  EXPECT_EQ(x.data_ptr(), before);
}

// Two neighbours that are freed hold one that needs the room of both.
TEST_F(Tensors, JoinsFreedNeighbours) {
  auto whole = of(64 * kMebi);
  const auto* begin = static_cast<const std::uint8_t*>(whole.data_ptr());
  whole.reset();
  auto a = of(20 * kMebi), b = of(20 * kMebi), c = of(20 * kMebi);
  for (const auto& part : {a, b, c}) {
    const auto* at = static_cast<const std::uint8_t*>(part.data_ptr());
    EXPECT_TRUE(at >= begin && at < begin + 64 * kMebi);
  }
  const auto before = tensor_memory();
  b.reset();
  a.reset();
  const auto both = of(40 * kMebi);
  EXPECT_LE(tensor_memory().used, before.used);
  EXPECT_LE(static_cast<const std::uint8_t*>(both.data_ptr()), begin + 20 * kMebi);
}

// Sizes of every kind come and go; each tensor keeps its values while it lives, and nothing is
// mapped that has not been in use at one time.
TEST_F(Tensors, KeepsValuesApartAndHoldsNoMoreThanWasUsed) {
  std::mt19937 random(1);
  struct Held {
    at::Tensor tensor;
    std::uint8_t value;
  };
  std::vector<Held> held;
  std::int64_t most = tensor_memory().most_used;
  for (int i = 0; i < 600; ++i) {
    if (held.size() > 12 || (!held.empty() && random() % 3 == 0)) {
      const auto which = random() % held.size();
      const auto& [tensor, value] = held[which];
      // Not by an operator, which would allocate.
      const auto* bytes = tensor.const_data_ptr<std::uint8_t>();
      ASSERT_EQ(std::count(bytes, bytes + tensor.numel(), value), tensor.numel());
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      const auto bytes = static_cast<std::int64_t>(random() % (4 * kMebi));
      const auto value = static_cast<std::uint8_t>(i % 251);
      held.push_back({of(bytes).fill_(value), value});
      if (bytes > 0) {
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(held.back().tensor.data_ptr()) % 64, 0u);
      }
    }
    const auto now = tensor_memory();
    most = std::max(most, now.used);
    ASSERT_EQ(now.most_used, most);
    ASSERT_LE(now.used + now.freed, most);
  }
}

// oneDNN takes its scratchpads so.
TEST_F(Tensors, ServesRequestsWithoutATensor) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{3 << 20}}) {
    const auto before = tensor_memory().used;
    void* memory = c10::GetCPUAllocator()->raw_allocate(bytes);
    std::fill_n(static_cast<char*>(memory), bytes, 1);
    c10::GetCPUAllocator()->raw_deallocate(memory);
    EXPECT_EQ(tensor_memory().used, before);
  }
}

}  // namespace
}  // namespace zsq
