// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/machine.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace zsq::benchmarks {
namespace {

constexpr std::int64_t kMega = std::int64_t{1} << 20;

// The largest cache that the kernel lists for the first core, 32 MB where it lists none. (sysconf
// adds up the caches of all sockets on some processors.)
std::int64_t last_level_cache() {
  std::int64_t largest = 0;
  for (int index = 0;; ++index) {
    const std::filesystem::path folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::ifstream file(folder / "size");
    std::int64_t size = 0;
    char unit = ' ';
    if (!(file >> size)) break;
    file >> unit;
    size *= unit == 'K' ? 1024 : unit == 'M' ? kMega : 1;
    largest = std::max(largest, size);
  }
  return largest > 0 ? largest : 32 * kMega;
}

std::int64_t physical_memory() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

void choose_sizes(MachinePeaks& peaks) {
  if (peaks.device == "cuda") {
    peaks.cached_bytes = 4 * kMega;
    peaks.large_bytes = 256 * kMega;
    return;
  }
  peaks.cache_bytes = last_level_cache();
  peaks.cached_bytes = std::clamp(peaks.cache_bytes / 16, kMega / 4, 2 * kMega);
  // A benchmark holds some 15 tensors of that size.
  const auto most = std::clamp(physical_memory() / 64, 64 * kMega, 512 * kMega);
  peaks.large_bytes = std::clamp(2 * peaks.cache_bytes, 64 * kMega, most);
}

}  // namespace

MachinePeaks measure_machine(c10::Device device, std::int64_t rounds, Observer& observer) {
  const at::NoGradGuard no_grad;
  MachinePeaks peaks;
  peaks.device = device.is_cpu() ? "cpu" : "cuda";
  peaks.threads = at::get_num_threads();
  choose_sizes(peaks);
  const auto tensor = [&](std::int64_t bytes) {
    return at::ones({bytes / 4}, at::TensorOptions(device).dtype(at::kFloat));
  };
  const std::int64_t n = !device.is_cpu() ? 8192 : peaks.threads > 4 ? 2048 : 1024;
  const auto square = [&](at::ScalarType type) {
    return at::ones({n, n}, at::TensorOptions(device).dtype(type));
  };
  const auto cached = tensor(peaks.cached_bytes), large = tensor(peaks.large_bytes);
  const auto fp32 = square(at::kFloat), bf16 = square(at::kBFloat16);
  const auto cached_target = at::empty_like(cached), large_target = at::empty_like(large);
  const auto seconds = time_cases({[&] { at::clone(cached); }, [&] { cached_target.copy_(cached); },
                                   [&] { at::clone(large); }, [&] { large_target.copy_(large); },
                                   [&] { at::mm(fp32, fp32); }, [&] { at::mm(bf16, bf16); }},
                                  rounds, device, observer);
  const auto copy_rate = [&](std::int64_t bytes, std::size_t first) {
    return 2 * static_cast<double>(bytes) / std::min(seconds[first].min, seconds[first + 1].min);
  };
  const double flops =
      2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  peaks.copy_cached = copy_rate(peaks.cached_bytes, 0);
  peaks.copy_large = copy_rate(peaks.large_bytes, 2);
  peaks.gemm_fp32 = flops / seconds[4].min;
  peaks.gemm_bf16 = flops / seconds[5].min;
  return peaks;
}

}  // namespace zsq::benchmarks
