// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace zsq {

std::string version();          // "0.1.0"
std::string version_details();  // a line each: zsq, libtorch, CUDA, cuDNN, OpenCV, compiler

}  // namespace zsq
