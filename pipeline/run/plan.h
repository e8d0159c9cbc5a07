// SPDX-License-Identifier: Apache-2.0
// Which stages a run has, what each is estimated to take, and running them: with a checkpoint
// before each and after its parts, and in a run that undoes stages (pipeline/run/prepare.h) with
// each of them kept only if it helps.
#pragma once
#include <memory>

#include "pipeline/run/stage.h"

namespace zsq::pipeline {

// A stage of one run.
struct Stage {
  std::string name;
  StageSeconds seconds;
  std::function<void(quant::Student&, RunState&, const PartDone&)> run;
  bool needed = false, judged_with_next = false;   // as in StageKind
  void (*trial)(QuantOptions& options) = nullptr;  // as in StageKind
  bool learns = false;                             // as in StageKind
  double most_share = 1;                           // as in StageKind
};

// Those of stage_kinds() that apply, with estimates from the time that the float network takes for
// a few images. `trained` gets what fine-tuning reports; it and `run` outlive the stages.
std::vector<Stage> plan_stages(const Run& run, std::optional<train::TrainReport>& trained);

// What is to come, told to the observer before it begins. With a time budget a run that plans
// itself leaves out each stage that does not fit into what those before it leave. Without a budget,
// a plan of over an hour names the faster way.
std::vector<StageResult> tell_plan(const Run& run, const std::vector<Stage>& stages);

// Runs the stages that `state` has not finished. Stopped by the observer: the state is on disk, and
// Error(stopped) says so.
void run_stages(const Run& run, const std::vector<Stage>& stages, quant::Student& student,
                RunState& state, const Identity& identity);

// Of the student as run_stages() leaves it; empty before the first stage and without held-out
// images.
std::vector<SyntheticResult> last_kept(const RunState& state);

}  // namespace zsq::pipeline
