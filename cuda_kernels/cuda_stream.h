// SPDX-License-Identifier: Apache-2.0
// The one CUDA type that launchers take, declared as the CUDA headers do, for builds without them.
#pragma once
struct CUstream_st;
using cudaStream_t = CUstream_st*;
