// SPDX-License-Identifier: Apache-2.0
// In place of launch/mpi.cpp in a program that is built without MPI.
#include "core/error.h"
#include "launch/mpi.h"
#include "launch/ranks.h"

namespace zsq::launch {

std::string mpi_version() { return "none"; }

std::unique_ptr<MpiRanks> start_mpi(int wanted, const std::string& launcher, double) {
  throw Error(ErrorCode::usage,
              launcher + " has started " + std::to_string(wanted) +
                  " processes, but this program is built without MPI (ZSQ_MPI=OFF, or no MPI was "
                  "found): start one, or set ZSQ_MPI=0 to let each process run alone");
}

}  // namespace zsq::launch
