// SPDX-License-Identifier: Apache-2.0
// What benchmarks find out. Torch-free. Rates are taken from the fastest round, in SI units; FLOPs
// are 2 per multiply-accumulate of convolutions and linear layers, and nothing else is counted.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zsq {

struct Seconds {
  double min = 0, median = 0;  // over rounds
};

// What this machine does at best, by libtorch's own copy and matrix product.
struct MachinePeaks {
  std::string device;  // "cpu", "cuda"
  std::int64_t threads = 0;
  std::int64_t cache_bytes = 0;  // last-level cache of the CPU
  // A tensor that stays in cache and one that cannot; kernels are timed on both sizes.
  std::int64_t cached_bytes = 0, large_bytes = 0;
  double copy_cached = 0, copy_large = 0;  // bytes per second, read and written
  double gemm_fp32 = 0, gemm_bf16 = 0;     // FLOP per second
};

struct KernelTime {
  std::string name, variant, pass;  // "fake_quant", "per_channel", "forward"
  std::string precision;            // of the tensor: "fp32", "bf16"
  std::int64_t tensor_bytes = 0;
  std::int64_t moved_bytes = 0;  // what a single pass has to read and write at least
  Seconds seconds;
  double share_of_copy = 0;  // its bytes per second / those of the copy of that size
  // Of gradient inundation: time over that of a plain SGD-Nesterov step on the same tensors, as
  // one fused kernel and as a sequence of elementwise ones.
  std::optional<double> over_fused_sgd, over_foreach_sgd;
};

// A part of an iteration; losses belong to the forward part before them.
struct PartTime {
  std::string name, precision;  // "teacher_backward"; "fp32", "tf32", "bf16"
  Seconds seconds;
  double flops = 0;          // 0: an optimizer, which is bound by memory
  double share_of_peak = 0;  // of the matrix product in bf16, or for the others in fp32
};

struct StepReport {
  std::string model, scheme;
  std::int64_t batch = 0, image_size = 0;
  std::int64_t parameters = 0, layers = 0;  // of the teacher; convolutions and linear layers
  Seconds seconds;                          // a generator step and a student step
  bool recorded = false;  // `seconds` are those of CUDA graphs, the parts' those without
  double flops = 0;
  std::vector<PartTime> parts;
  // CPU: resident memory of the process, at the start and at most; CUDA: of the tensors.
  std::int64_t memory_before = 0, memory_peak = 0;
};

struct GrowthRow {
  std::int64_t value = 0;
  StepReport step;
};

}  // namespace zsq
