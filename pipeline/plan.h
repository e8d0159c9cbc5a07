// SPDX-License-Identifier: Apache-2.0
// Which stages a run has, what each is thought to take, and running them: with a checkpoint before
// each and after its parts, and in a run that measures on held-out images (process.automatic, or
// finetune.validation_checks) with each stage kept only if it helps.
#pragma once
#include "pipeline/run_state.h"
#include "pipeline/stages/prepare.h"

namespace zsq::pipeline {

struct Stage {
  std::string name;
  double least = 0, estimate = 0;  // seconds: the least that is worth it, and as configured
  std::function<void(quant::Student&, RunState&, const PartDone&)> run;
  bool needed = false;  // kept whether it helps or not
  // If it does not help, the next stage goes on with its result, and both are kept or undone
  // together. The next one has no parts: a run that is stopped in it goes on with this one.
  bool judged_with_next = false;
};

// The stages of the recipe, with estimates from the time that the teacher takes for a few images.
// `trained` gets what fine-tuning reports; it and `run` outlive the stages.
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
