// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <gtest/gtest.h>

#include <map>

namespace zsq::launch {
namespace {

std::optional<Launch> launch_in(const std::map<std::string, std::string>& variables) {
  return launch_of([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, IsToldByItsVariables) {
  const auto mpirun = launch_in({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  ASSERT_TRUE(mpirun);
  EXPECT_EQ(mpirun->launcher, "mpirun");
  EXPECT_EQ(mpirun->size, 4);
  EXPECT_EQ(mpirun->rank, 3);
  const auto pmi = launch_in({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  ASSERT_TRUE(pmi);
  EXPECT_EQ(pmi->size, 2);
  const auto srun = launch_in({{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "0"}});
  ASSERT_TRUE(srun);
  EXPECT_EQ(srun->launcher, "srun");
  EXPECT_EQ(srun->size, 8);
}

TEST(Launcher, OfOneProcessIsNone) {
  EXPECT_FALSE(launch_in({}));
  EXPECT_FALSE(launch_in({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  // The script of a batch job, which itself is one process.
  EXPECT_FALSE(launch_in({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}));
  EXPECT_FALSE(launch_in({{"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_FALSE(launch_in({{"PMI_SIZE", "4x"}, {"PMI_RANK", "0"}}));
  EXPECT_FALSE(
      launch_in({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"ZSQ_MPI", "0"}}));
}

TEST(Launcher, GivesEachRankAGpu) {
  EXPECT_EQ(gpu_of(2, 4, nullptr), "2");
  EXPECT_EQ(gpu_of(1, 2, "5,7"), "7");
  EXPECT_EQ(gpu_of(0, 2, "GPU-a,GPU-b,GPU-c"), "GPU-a");
  EXPECT_EQ(gpu_of(1, 2, "3"), std::nullopt);  // the launcher has bound one to each task
}

TEST(Launcher, SharesTheCores) {
  EXPECT_EQ(threads_of_rank(64, 8, 64), 8);
  EXPECT_EQ(threads_of_rank(64, 8, 1), 1);  // bound to a core each
  EXPECT_EQ(threads_of_rank(2, 4, 2), 1);
  EXPECT_EQ(threads_of_rank(7, 2, 7), 3);
}

}  // namespace
}  // namespace zsq::launch
