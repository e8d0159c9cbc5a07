// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sstream>
#include <vector>

namespace zsq::launch {
namespace {

struct Names {
  const char *launcher, *size, *rank;
};
constexpr std::array kLaunchers{
    Names{"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    Names{"a PMI launcher", "PMI_SIZE", "PMI_RANK"},
    Names{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

std::optional<int> number(const char* text) {
  if (!text) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || stop == text) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Launch> launch_of(const Environment& environment) {
  const char* wanted = environment("ZSQ_MPI");
  if (wanted && std::strcmp(wanted, "0") == 0) return std::nullopt;
  for (const auto& names : kLaunchers) {
    const auto size = number(environment(names.size)), rank = number(environment(names.rank));
    if (size && rank && *size > 1) return Launch{names.launcher, *rank, *size};
  }
  return std::nullopt;
}

std::optional<std::string> gpu_of(int local_rank, int local_size, const char* visible) {
  if (!visible) return std::to_string(local_rank);
  std::vector<std::string> devices;
  std::istringstream list(visible);
  for (std::string device; std::getline(list, device, ',');) devices.push_back(device);
  if (static_cast<int>(devices.size()) < local_size) return std::nullopt;
  return devices[static_cast<std::size_t>(local_rank)];
}

int threads_of_rank(int cores, int local_size, int bound) {
  return std::clamp(cores / local_size, 1, std::max(1, bound));
}

}  // namespace zsq::launch
