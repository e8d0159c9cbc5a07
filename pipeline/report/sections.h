// SPDX-License-Identifier: Apache-2.0
// The parts of a run's page, as HTML. A part that the run has nothing for is empty.
#pragma once
#include "pipeline/report/finished_run.h"
#include "pipeline/report/grid.h"

namespace zsq::pipeline {

std::string verdict_section(const FinishedRun& run);
std::string size_section(const FinishedRun& run);
std::string samples_section(const FinishedRun& run);
std::string stages_section(const FinishedRun& run);
std::string layers_section(const FinishedRun& run);
std::string sensitivity_section(const FinishedRun& run);
std::string bits_section(const FinishedRun& run);
std::string settings_section(const FinishedRun& run);

// Each output of several, or one with places, on each kind of images; no rows for others.
Grid outputs_grid(const Json& report);

// The whole page.
std::string run_page(const FinishedRun& run);

}  // namespace zsq::pipeline
