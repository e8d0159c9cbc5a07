// SPDX-License-Identifier: Apache-2.0
// Timing by interleaved rounds: each round runs every case, so that what disturbs the machine for a
// while falls on all of them.
#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <vector>

#include "benchmarks/report.h"
#include "core/observer.h"

namespace zsq::benchmarks {

// Seconds on a monotonic clock, once the device has done what was asked of it.
double now(c10::Device device);

Seconds summarize(std::vector<double> samples);  // Error(internal) if there is none

// Seconds per run of each case. In a round a case runs once untimed, so that the caches hold what
// it leaves there, then as often as 5 ms take. On a GPU ten runs are recorded and replayed
// (cuda_kernels/device_graph.h), so that the time is the device's and not the host's, which takes
// longer to launch a small kernel than the kernel takes; a case may not wait for the device.
// Error(stopped) if the observer asks for it.
std::vector<Seconds> time_cases(std::vector<std::function<void()>> cases, std::int64_t rounds,
                                c10::Device device, Observer& observer);

// Asked between rounds; throws Error(stopped).
void stop_if_asked(Observer& observer);

}  // namespace zsq::benchmarks
