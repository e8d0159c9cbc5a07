// SPDX-License-Identifier: Apache-2.0
// The memory of this process.
#pragma once
#include "quant/mixed_options.h"

namespace zsq {

// A percentage is of the machine's memory; 0: no limit.
double bytes_of(const Budget& limit);

// From here on what would need more fails with std::bad_alloc, which quantize() turns into
// Error(out_of_memory), instead of an end by the system. For a program; a library does not limit
// the process that it is loaded into. Nothing without a limit, and where there is a GPU, whose
// driver sets memory aside that it does not use.
void limit_process_memory(const Budget& limit);

}  // namespace zsq
