// SPDX-License-Identifier: Apache-2.0
// Needs a GPU.
#include "cuda_kernels/device_graph.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include "core/process_status.h"
#include "cuda_kernels/device.h"
#include "tests/cuda_kernels/helpers.h"
#include "tests/support/emulated_cuda/default_device.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

class Graph : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!cuda_available(&why)) GTEST_SKIP() << why;
    load_cuda();
    x_ = at::full({1000}, 1.0, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
    sum_ = at::zeros_like(x_);
    graph_ = make_device_graph(x_.device());
    for (int i = 0; i < 3; ++i) graph_->warm_up(body_);
  }
  float sum() const { return sum_[999].item<float>(); }

  NamedDevices named_devices_;
  at::Tensor x_, sum_, made_;
  std::unique_ptr<DeviceGraph> graph_;
  std::function<void()> body_ = [this] {
    made_ = x_ * x_;  // memory of the recording
    sum_.add_(made_);
  };
};

TEST_F(Graph, RepeatsWhatWasLaunchedOnWhatMemoryHolds) {
  EXPECT_EQ(sum(), 3);
  graph_->record(body_);
  EXPECT_EQ(sum(), 3);
  graph_->replay();
  EXPECT_EQ(sum(), 4);
  x_.fill_(3);
  const at::Tensor between = at::full({1000}, 7.0, x_.options());  // not over the recording's
  graph_->replay();
  EXPECT_EQ(sum(), 13);
  EXPECT_EQ(made_[0].item<float>(), 9);
  EXPECT_EQ(between[0].item<float>(), 7);
  graph_->record([this] { sum_.zero_(); });
  graph_->replay();
  EXPECT_EQ(sum(), 0);
}

TEST_F(Graph, WaitingForTheDeviceCannotBeRecorded) {
  EXPECT_ANY_THROW(graph_->record([this] {
    body_();
    sum();
  }));
  EXPECT_EQ(sum(), 3);
  EXPECT_THROW(graph_->replay(), Error);
  body_();
  EXPECT_EQ(sum(), 4);
  graph_->record(body_);
  graph_->replay();
  EXPECT_EQ(sum(), 5);
}

TEST_F(Graph, ADeviceWithoutIndexIsTheCurrentOne) {
  const auto graph = make_device_graph(at::kCUDA);
  graph->warm_up(body_);
  graph->record(body_);
  graph->replay();
  EXPECT_EQ(sum(), 5);
}

std::int64_t resident_bytes() { return status_bytes("VmRSS").value(); }

// libtorch's table of memory pools, if all pools had one hash, would double with each recording.
TEST_F(Graph, ManyRecordingsTakeLittleOfTheHost) {
  std::vector<std::unique_ptr<DeviceGraph>> graphs;
  const auto before = resident_bytes();
  for (int i = 0; i < 24; ++i) {
    graphs.push_back(make_device_graph(x_.device()));
    graphs.back()->warm_up(body_);
    graphs.back()->record(body_);
  }
  EXPECT_LT(resident_bytes() - before, 200'000'000);
}

}  // namespace
}  // namespace zsq::cuda_kernels
