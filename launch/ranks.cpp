// SPDX-License-Identifier: Apache-2.0
#include "launch/ranks.h"

#include <ATen/Parallel.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>

#include "core/error.h"
#include "launch/launcher.h"
#include "launch/mpi.h"
#include "parallel/ranks.h"

namespace zsq::launch {
namespace {

std::unique_ptr<MpiRanks>& joined() {
  static std::unique_ptr<MpiRanks> ranks;
  return ranks;
}

double timeout() {
  constexpr double kDefault = 1800;  // seconds
  const char* text = std::getenv("ZSQ_RANK_TIMEOUT");
  if (!text) return kDefault;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds > 0))
    throw Error(ErrorCode::usage,
                std::string("ZSQ_RANK_TIMEOUT='") + text + "' is no positive number of seconds");
  return seconds;
}

int cores_left() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void share_machine(const MpiRanks& ranks) {
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (!std::getenv("OMP_NUM_THREADS"))
    at::set_num_threads(threads_of_rank(cores, ranks.local_size(), cores_left()));
  if (const auto gpu =
          gpu_of(ranks.local_rank(), ranks.local_size(), std::getenv("CUDA_VISIBLE_DEVICES")))
    setenv("CUDA_VISIBLE_DEVICES", gpu->c_str(), /*overwrite=*/1);
}

std::string in_one_line(const std::vector<std::string>& arguments) {
  std::string line;
  for (const auto& argument : arguments) line += argument + '\n';
  return line;
}

}  // namespace

void join(const std::vector<std::string>& arguments) {
  const auto launch = launch_of([](const char* name) { return std::getenv(name); });
  if (!launch || joined()) return;
  joined() = start_mpi(launch->size, launch->launcher, timeout());
  parallel::set_current(*joined());
  parallel::require_same_text(*joined(), in_one_line(arguments),
                              "the ranks of a run were started with different arguments; for runs "
                              "that have nothing to do with each other set ZSQ_MPI=0");
  share_machine(*joined());
}

bool is_first() { return !joined() || joined()->rank() == 0; }

std::string who() {
  if (!joined()) return "";
  return "rank " + std::to_string(joined()->rank()) + " of " + std::to_string(joined()->size()) +
         ": ";
}

void abandon(int exit_code, const std::string& message) {
  if (!is_first()) std::this_thread::sleep_for(std::chrono::seconds(1));
  std::fprintf(stderr, "zsq: %s%s\n", who().c_str(), message.c_str());
  if (joined()) joined()->abort(exit_code);
}

int leave(int exit_code) { return leave(exit_code, std::numeric_limits<double>::infinity()); }

int leave(int exit_code, double seconds) {
  if (joined() && !joined()->finish(seconds)) joined()->abort(exit_code);
  return exit_code;
}

}  // namespace zsq::launch
