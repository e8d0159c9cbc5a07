// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "cuda_kernels/device_graph.h"

namespace zsq::benchmarks {
namespace {

constexpr int kRecordedRuns = 10;

// A replay of so many runs: launching a replay takes the host microseconds too.
std::function<void()> recorded(std::function<void()> run, c10::Device device) {
  const std::shared_ptr<cuda_kernels::DeviceGraph> graph = cuda_kernels::make_device_graph(device);
  for (int i = 0; i < 2; ++i) graph->warm_up(run);
  graph->record([&] {
    for (int i = 0; i < kRecordedRuns; ++i) run();
  });
  // What the run keeps from one call to the next, the recording reads.
  return [graph, run = std::move(run)] { graph->replay(); };
}

}  // namespace

double now(c10::Device device) {
  if (!device.is_cpu()) {
    const c10::impl::VirtualGuardImpl impl(device.type());
    impl.synchronizeDevice(device.has_index() ? device.index() : impl.getDevice().index());
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Seconds summarize(std::vector<double> samples) {
  if (samples.empty()) throw Error(ErrorCode::internal, "a part of the benchmark was never timed");
  std::sort(samples.begin(), samples.end());
  const auto middle = samples.size() / 2;
  const double median =
      samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {samples.front(), median};
}

void stop_if_asked(Observer& observer) {
  if (observer.stop_requested()) throw Error(ErrorCode::stopped, "stopped; nothing was kept");
}

std::vector<Seconds> time_cases(std::vector<std::function<void()>> cases, std::int64_t rounds,
                                c10::Device device, Observer& observer) {
  constexpr double kPiece = 5e-3;
  constexpr int kMostRepeats = 1000;
  const int runs = device.is_cpu() ? 1 : kRecordedRuns;
  if (!device.is_cpu())
    for (auto& run : cases) run = recorded(std::move(run), device);
  const auto time = [&](const std::function<void()>& run, int repeats) {
    const double begin = now(device);
    for (int i = 0; i < repeats; ++i) run();
    return (now(device) - begin) / repeats;
  };
  std::vector<int> repeats;
  for (const auto& run : cases) {
    stop_if_asked(observer);
    run();  // pays for setting up memory and kernels
    const double pieces = kPiece / std::max(time(run, 1), 1e-9);
    repeats.push_back(std::clamp(static_cast<int>(std::ceil(pieces)), 1, kMostRepeats));
  }
  std::vector<std::vector<double>> samples(cases.size());
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      stop_if_asked(observer);
      cases[i]();
      samples[i].push_back(time(cases[i], repeats[i]) / runs);
    }
  }
  std::vector<Seconds> seconds;
  for (auto& of_case : samples) seconds.push_back(summarize(std::move(of_case)));
  return seconds;
}

}  // namespace zsq::benchmarks
