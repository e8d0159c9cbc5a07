// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "pipeline/check.h"
#include "pipeline/runtimes/processor.h"

namespace zsq::pipeline {

// Verdict, `equal` and `fastest` of a report that has its rows.
void conclude(CheckReport& report, const Processor& processor);

}  // namespace zsq::pipeline
