// SPDX-License-Identifier: Apache-2.0
// One program serves machines with and without a GPU: nothing links libtorch's CUDA libraries, they
// are loaded when a CUDA device is asked for.
#pragma once
#include <string>

namespace zsq::cuda_kernels {

// Whether CUDA tensors can be used once load_cuda() has run: built with CUDA kernels, a driver and
// a device that work, and libtorch's CUDA library installed. Loads nothing. `why` (may be null)
// gets the reason where not.
bool cuda_available(std::string* why = nullptr);

// Loads libtorch's CUDA library into the process; a second call does nothing. To be called before
// anything else asks libtorch about CUDA, which remembers the answer. Throws Error(usage) if
// cuda_available() is false or the library does not load.
void load_cuda();

}  // namespace zsq::cuda_kernels
