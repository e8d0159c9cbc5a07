// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "core/error.h"
#include "parallel/ranks.h"
#include "pipeline/plan.h"

namespace zsq::pipeline {
namespace {

// KL below which a student cannot be told from its teacher, nats per image.
constexpr double kNothingLeft = 1e-3;
constexpr const char* kKept = "kept";

std::string results_in_words(const std::vector<SyntheticResult>& results) {
  std::string words;
  for (const auto& r : results) {
    char text[96];
    std::snprintf(text, sizeof text, "%sKL %.4f, agreement %.1f %% on %s images",
                  words.empty() ? "" : "; ", r.divergence, 100 * r.agreement,
                  r.kind == "dead_leaves" ? "dead-leaves" : r.kind.c_str());
    words += text;
  }
  return words;
}

// After stage `number`.
Progress as_measurement(const StageResult& result, std::int64_t number, std::int64_t stages) {
  Progress measured{"held-out", number, stages, result.seconds, {}};
  for (const auto& r : result.synthetic) {
    measured.metrics.emplace_back("kl_" + r.kind, r.divergence);
    measured.metrics.emplace_back("agreement_" + r.kind, r.agreement);
  }
  return measured;
}

// Of the student as it is; empty before the first stage and without held-out images.
std::vector<SyntheticResult> last_kept(const RunState& state) {
  for (auto i = static_cast<std::size_t>(state.finished); i-- > 0;)
    if (state.stages[i].outcome == kKept) return state.stages[i].synthetic;
  return {};
}

void leave_out(const Run& run, RunState& state) {
  for (StageResult& stage : state.stages)
    if (stage.outcome.empty()) stage.outcome = "skipped: no further gain is possible";
  run.say(
      "student and teacher agree on nearly every synthetic image: the remaining stages "
      "are skipped");
}

bool stays(const Run& run, const Stage& stage, const std::vector<SyntheticResult>& now,
           const std::vector<SyntheticResult>& before) {
  return stage.needed || !run.undoes_stages() || before.empty() || is_better(now, before);
}

}  // namespace

void run_stages(const Run& run, const std::vector<Stage>& stages, quant::Student& student,
                RunState& state, const Identity& identity) {
  const auto file = run.output.file("checkpoint/student.safetensors");
  const auto write = [&] {
    if (!parallel::is_first(parallel::current())) return;
    state.seconds = run.clock.seconds();
    save(file, state, identity);
  };
  for (auto i = static_cast<std::size_t>(state.finished); i < stages.size(); ++i) {
    StageResult& result = state.stages[i];
    if (!result.outcome.empty()) continue;  // skipped
    const auto before = last_kept(state);
    if (run.recipe.process.automatic && !before.empty() &&
        parallel::agreed(parallel::current(), pool(before).divergence) < kNothingLeft) {
      leave_out(run, state);
      break;
    }
    const models::Graph graph = student.graph;
    if (state.parts > 0) {
      restore(student, state.now);
    } else {
      state.start = student.parameters.clone();
      write();
    }
    const auto number = static_cast<std::int64_t>(i) + 1;
    run.observer.on_stage(number, stages[i].name);
    run.say("stage " + std::to_string(i + 1) + " of " + std::to_string(stages.size()) + ": " +
            stages[i].name);
    const Stopwatch begin;
    double written = 0;
    try {
      stages[i].run(student, state, [&](std::int64_t parts) {
        state.parts = parts;
        state.now = student.parameters.clone();
        if (begin.seconds() < written + 30) return;
        written = begin.seconds();
        write();
      });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::stopped) write();
      throw;
    }
    result.seconds = begin.seconds();
    const auto fused = quant::fuse_activations(student.graph);
    result.synthetic = measure_on(run.held_out, fused, student.parameters);
    result.outcome = kKept;
    if (!parallel::agreed(parallel::current(), stays(run, stages[i], result.synthetic, before))) {
      result.outcome = "rejected: KL to the teacher did not decrease";
      student.graph = graph;
      student.parameters = state.start.clone();
    }
    run.observer.on_measurement(as_measurement(result, number, std::ssize(stages)));
    if (!result.synthetic.empty())
      run.say("  " + result.outcome + ": " + results_in_words(result.synthetic));
    state.finished = number;
    state.parts = 0;
  }
}

}  // namespace zsq::pipeline
