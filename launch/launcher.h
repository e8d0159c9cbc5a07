// SPDX-License-Identifier: Apache-2.0
// What the environment tells of the launcher that started this process.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace zsq::launch {

struct Launch {
  std::string launcher;  // "mpirun", "srun", ...
  int rank = 0, size = 1;
};

using Environment = std::function<const char*(const char*)>;  // as std::getenv

// Of mpirun (Open MPI), of a PMI launcher (MPICH, Intel MPI) or of srun; nothing where there is
// one process, or with ZSQ_MPI=0, which makes the processes of a launcher independent. A job step
// counts, not a batch job: the script of `sbatch --ntasks=8` runs once.
std::optional<Launch> launch_of(const Environment& environment);

// The GPU of the process with number `local_rank` on its machine, as CUDA_VISIBLE_DEVICES wants it:
// one of the list `visible`, which may be null; nothing where the list leaves no choice.
std::optional<std::string> gpu_of(int local_rank, int local_size, const char* visible);

// So many threads that the ranks of a machine share its cores; `bound`: cores that the launcher has
// left to this process.
int threads_of_rank(int cores, int local_size, int bound);

}  // namespace zsq::launch
