// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "pipeline/system_noise.h"

namespace zsq::cli {

// One row per option, then one per source, then all at once.
void print(const SystemNoiseReport& report);

}  // namespace zsq::cli
