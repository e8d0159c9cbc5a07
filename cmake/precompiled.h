// SPDX-License-Identifier: Apache-2.0
// Precompiled for every target that uses libtorch: parsing these headers takes longer than
// compiling what most sources say themselves. A source still includes what it uses.
#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>
