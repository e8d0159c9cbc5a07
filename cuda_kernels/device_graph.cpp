// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/device_graph.h"

#include "core/error.h"
#include "cuda_kernels/cuda_scope.h"

#ifdef ZSQ_HAS_CUDA
// The allocator is reached through its virtual functions, so that c10's CUDA library is not linked.
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <atomic>

namespace zsq::cuda_kernels {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw Error(ErrorCode::internal,
                std::string("CUDA graph: ") + what + ": " + cudaGetErrorString(error));
}

// Memory that a recording uses is nobody else's, also between replays: a pool of its own in
// libtorch's allocator, for what is allocated on the recording stream.
class GraphMemory {
 public:
  GraphMemory(c10::DeviceIndex device, cudaStream_t stream) : device_(device), stream_(stream) {}
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory() {
    if (used_) allocator().releasePool(device_, id_);
  }

  void begin() {
    allocator().beginAllocateToPool(device_, id_,
                                    [stream = stream_](cudaStream_t s) { return s == stream; });
    used_ = true;
  }
  void end() { allocator().endAllocateToPool(device_, id_); }

 private:
  // Pools of libtorch's own graphs have 0 in one of the two places. The first place alone is what
  // libtorch's table of pools hashes: alike in all of them it would let that table grow without
  // end.
  static c10::MempoolId_t new_id() {
    static std::atomic<c10::CaptureId_t> count = 0x7a7371;
    constexpr c10::CaptureId_t kOurs = 1;
    return {count++, kOurs};
  }
  static c10::cuda::CUDACachingAllocator::CUDAAllocator& allocator() {
    return static_cast<c10::cuda::CUDACachingAllocator::CUDAAllocator&>(
        *c10::GetAllocator(c10::kCUDA));
  }

  c10::DeviceIndex device_;
  cudaStream_t stream_;
  c10::MempoolId_t id_ = new_id();
  bool used_ = false;
};

class CudaGraph : public DeviceGraph {
 public:
  explicit CudaGraph(c10::Device device)
      : impl_(device.type()),
        device_(device.has_index() ? device : impl_.getDevice()),
        stream_(impl_.getStreamFromGlobalPool(device_)) {}
  ~CudaGraph() override {
    const c10::DeviceGuard guard(device_);
    forget();
  }

  void warm_up(const std::function<void()>& body) override {
    const c10::DeviceGuard guard(device_);
    wait();
    {
      const c10::StreamGuard on_stream(stream_);
      body();
    }
    wait();
  }

  void record(const std::function<void()>& body) override {
    const c10::DeviceGuard guard(device_);
    wait();
    forget();
    memory_ = std::make_unique<GraphMemory>(device_.index(), raw_stream());
    try {
      const c10::StreamGuard on_stream(stream_);
      const cudaGraph_t graph = captured(body);
      const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
      cudaGraphDestroy(graph);
      check(error, "cannot be made ready");
    } catch (...) {
      cudaGetLastError();  // what the recording met is no error of the next launch
      executable_ = nullptr;
      forget();
      throw;
    }
  }

  void replay() override {
    if (!executable_) throw Error(ErrorCode::internal, "CUDA graph: nothing was recorded");
    const CudaScope cuda("replay", device_);
    check(cudaGraphLaunch(executable_, cuda.stream()), "cannot be launched");
  }

 private:
  // Whatever happens, the stream stops recording and the allocator goes back to its own pool.
  cudaGraph_t captured(const std::function<void()>& body) {
    memory_->begin();
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamBeginCapture(raw_stream(), cudaStreamCaptureModeGlobal);
    if (error == cudaSuccess) {
      try {
        body();
      } catch (...) {
        cudaStreamEndCapture(raw_stream(), &graph);
        if (graph) cudaGraphDestroy(graph);
        memory_->end();
        throw;
      }
      error = cudaStreamEndCapture(raw_stream(), &graph);
    }
    memory_->end();
    check(error, "cannot be recorded");
    return graph;
  }

  void forget() {
    if (!memory_) return;
    cudaDeviceSynchronize();  // a replay may be under way; what it met, the next launch reports
    if (executable_) cudaGraphExecDestroy(executable_);
    executable_ = nullptr;
    memory_.reset();
  }

  void wait() const { impl_.synchronizeDevice(device_.index()); }
  cudaStream_t raw_stream() const { return static_cast<cudaStream_t>(stream_.native_handle()); }

  c10::impl::VirtualGuardImpl impl_;
  c10::Device device_;
  c10::Stream stream_;
  std::unique_ptr<GraphMemory> memory_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device) {
  return std::make_unique<CudaGraph>(device);
}

}  // namespace zsq::cuda_kernels

#else

namespace zsq::cuda_kernels {

std::unique_ptr<DeviceGraph> make_device_graph(c10::Device) {
  throw Error(ErrorCode::internal, std::string("device graph: ") + kBuiltWithoutCuda);
}

}  // namespace zsq::cuda_kernels

#endif
