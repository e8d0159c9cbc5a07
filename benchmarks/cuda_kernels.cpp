// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cuda_kernels.h"

#include <ATen/Context.h>

#include <algorithm>

#include "benchmarks/kernel_cases.h"

namespace zsq::benchmarks {
namespace {

NetworkShapes resnet(const std::string& name, std::int64_t stem, std::int64_t width,
                     std::int64_t stages, std::int64_t convolutions, std::int64_t classes) {
  NetworkShapes network{name, {{width, 3, stem, stem}}};
  auto in = width;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const auto out = width << stage;
    if (in != out) network.weights.push_back({out, in, 1, 1});
    for (std::int64_t i = 0; i < convolutions; ++i) {
      network.weights.push_back({out, in, 3, 3});
      in = out;
    }
  }
  network.weights.push_back({classes, in});
  return network;
}

std::vector<KernelTime> time_in_turns(const std::vector<KernelCase>& cases, double copy,
                                      c10::Device device, std::int64_t rounds, Observer& observer) {
  std::vector<std::function<void()>> runs;
  for (const KernelCase& c : cases) runs.push_back(c.run);
  const auto seconds = time_cases(runs, rounds, device, observer);
  std::vector<KernelTime> times;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const KernelCase& c = cases[i];
    const std::int64_t moved = c.tensors_moved * c.tensor_bytes;
    const double rate = static_cast<double>(moved) / seconds[i].min;
    times.push_back({c.name,
                     c.variant,
                     c.pass,
                     c.precision,
                     c.tensor_bytes,
                     moved,
                     seconds[i],
                     rate / copy,
                     {},
                     {}});
  }
  return times;
}

// Part by part, for a part with its graphs holds up to 15 tensors of so many bytes.
std::vector<KernelTime> time_size(std::int64_t bytes, const NetworkShapes& network, double copy,
                                  c10::Device device, std::int64_t rounds, Observer& observer) {
  const std::function<std::vector<KernelCase>()> parts[] = {
      [&] { return activation_cases(bytes, at::kFloat, device); },
      [&] { return activation_cases(bytes, at::kBFloat16, device); },
      [&] { return weight_cases(bytes, network, device); },
      [&] { return logit_cases(bytes, device); }};
  std::vector<KernelTime> times;
  for (const auto& make_cases : parts) {
    const auto part = time_in_turns(make_cases(), copy, device, rounds, observer);
    times.insert(times.end(), part.begin(), part.end());
  }
  const auto seconds_of = [&](const std::string& name, const std::string& variant) {
    return std::find_if(times.begin(), times.end(),
                        [&](const KernelTime& t) { return t.name == name && t.variant == variant; })
        ->seconds.min;
  };
  for (KernelTime& time : times) {
    if (time.name != "inundation") continue;
    const auto network_of = time.variant.empty() ? "" : time.variant + " ";
    time.over_fused_sgd = time.seconds.min / seconds_of("sgd_nesterov", network_of + "fused");
    time.over_foreach_sgd = time.seconds.min / seconds_of("sgd_nesterov", network_of + "foreach");
  }
  return times;
}

// Cases are recorded on streams of their own and share leaves. libtorch warns of that for the sake
// of gradients that are accumulated, and here none are.
class SharedLeaves {
 public:
  SharedLeaves() { at::globalContext().setWarnOnAccumulateGradStreamMismatch(false); }
  SharedLeaves(const SharedLeaves&) = delete;
  SharedLeaves& operator=(const SharedLeaves&) = delete;
  ~SharedLeaves() { at::globalContext().setWarnOnAccumulateGradStreamMismatch(before_); }

 private:
  bool before_ = at::globalContext().warnOnAccumulateGradStreamMismatch();
};

}  // namespace

std::vector<KernelTime> time_kernels(const MachinePeaks& machine, c10::Device device,
                                     std::int64_t rounds, Observer& observer) {
  const SharedLeaves quietly;
  auto times = time_size(machine.cached_bytes, resnet("resnet20", 3, 16, 3, 6, 10),
                         machine.copy_cached, device, rounds, observer);
  const auto large = time_size(machine.large_bytes, resnet("resnet18", 7, 64, 4, 4, 1000),
                               machine.copy_large, device, rounds, observer);
  times.insert(times.end(), large.begin(), large.end());
  return times;
}

}  // namespace zsq::benchmarks
