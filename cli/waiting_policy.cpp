// SPDX-License-Identifier: Apache-2.0
// How long a thread that waits for others at the end of a parallel loop looks again and again
// before it sleeps. libgomp's default is some milliseconds; on a machine with other work, where a
// thread may have lost its core, the others then burn theirs at every loop, and a training step
// takes several times as long. On an idle machine waits are shorter than the bound that is set
// here, so it costs nothing there (docs/performance.md, "Waiting threads").
//
// libgomp reads its environment when it is loaded, before anything of a program runs but
// functions in .preinit_array, and what they write into the environment is dropped when libc starts
// after them. So the program starts itself again, with the variable set, which loads its libraries
// once more: 0.12 s at every start. Whoever has set GOMP_SPINCOUNT or OMP_WAIT_POLICY keeps it and
// saves that.
#include <unistd.h>

#include <cstring>

// The sanitizers are not up yet when it would run.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

char spin_count[] = "GOMP_SPINCOUNT=2000";

bool begins_with(const char* text, const char* start) {
  return std::strncmp(text, start, std::strlen(start)) == 0;
}

void bound_waiting(int, char** arguments, char** environment) {
  constexpr int kMostVariables = 4096;
  static char* variables[kMostVariables + 2];
  static char path[4096];
  int count = 0;
  for (; environment[count]; ++count) {
    if (count == kMostVariables || begins_with(environment[count], "GOMP_SPINCOUNT=") ||
        begins_with(environment[count], "OMP_WAIT_POLICY="))
      return;
    variables[count] = environment[count];
  }
  variables[count] = spin_count;
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length > 0) execve(path, arguments, variables);
  // If that failed, the program goes on as it is.
}

using Start = void (*)(int, char**, char**);
[[gnu::section(".preinit_array"), gnu::used]] const Start at_start = bound_waiting;

}  // namespace

#endif
