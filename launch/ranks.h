// SPDX-License-Identifier: Apache-2.0
// How the program takes part in a run of several ranks: it joins those that mpirun or srun has
// started with it, and ends with them. In a program that was started alone each function returns at
// once. No torch header, for cli/.
#pragma once
#include <string>
#include <vector>

namespace zsq::launch {

// Which MPI this program was built with, as "Open MPI 4.1"; "none" if without.
std::string mpi_version();

// Makes the ranks of the launcher parallel::current(), gives each rank of a machine an equal part
// of its cores (unless OMP_NUM_THREADS is set) and a GPU of its own. Error(usage) if the ranks were
// started with different arguments, or as start_mpi() says.
void join(const std::vector<std::string>& arguments);

// Whether this is the rank that writes files and reports. True before join().
bool is_first();

// "rank 1 of 4: " before a message, or nothing.
std::string who();

// After an error: ends all ranks with this exit code. Another rank than the first waits a second,
// since all ranks mostly fail alike, and one message is enough.
void abandon(int exit_code, const std::string& message);

// Waits for all ranks, and with a time limit ends those that do not come; gives its argument.
int leave(int exit_code);
int leave(int exit_code, double seconds);

}  // namespace zsq::launch
