// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "core/error.h"
#include "losses/divergence.h"
#include "parallel/ranks.h"
#include "pipeline/report/output_words.h"
#include "pipeline/report/quality.h"
#include "pipeline/run/plan.h"
#include "pipeline/run/prepare.h"
#include "pipeline/session/format.h"

namespace zsq::pipeline {
namespace {

// KL below which a student cannot be told from its teacher, nats per image.
constexpr double kNothingLeft = 1e-3;
constexpr const char *kKept = "kept", *kNoGain = "skipped: no further gain is possible";

// All outputs are classes or labels, of images or of places. A small KL says that these stay; a
// small error of values can be large for a few.
bool decides(const models::Model& network) {
  const models::OutputRow& row = network.graph.signature.kind;
  const auto is_values = [](const auto& output) {
    return output.kind == models::OutputKind::values;
  };
  return row != models::OutputKind::values && std::ranges::none_of(row.outputs(), is_values);
}

std::string results_in_words(const std::vector<SyntheticResult>& results,
                             const models::Model& teacher) {
  const std::string kind(losses::name_of(teacher.graph.signature.kind));
  const OutputWords measures = words_for(kind, teacher.classes);
  const std::string agreement = kind == "logits" ? "agreement" : measures.agreement;
  std::string words;
  for (const auto& r : results) {
    words += format("%s%s %.4f, %s %.1f %% on %s images", words.empty() ? "" : "; ",
                    measures.divergence.c_str(), r.divergence, agreement.c_str(), 100 * r.agreement,
                    images_in_words(r.kind).c_str());
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

bool stays(const Run& run, const Stage& stage, const std::vector<SyntheticResult>& now,
           const std::vector<SyntheticResult>& before) {
  if (stage.trial) return !before.empty() && is_better_on_each(now, before);
  if (stage.needed || !undoes_stages(run.recipe) || before.empty()) return true;
  return stage.learns ? is_better_on_each(now, before) : is_better(now, before);
}

class StageLoop {
 public:
  StageLoop(const Run& run, const std::vector<Stage>& stages, quant::Student& student,
            RunState& state, const Identity& identity)
      : run_(run), stages_(stages), student_(student), state_(state), identity_(identity) {}

  void operator()() {
    adopt_options();
    for (auto i = static_cast<std::size_t>(state_.finished); i < stages_.size(); ++i) {
      if (!state_.stages[i].outcome.empty()) continue;  // skipped
      const auto before = last_kept(state_);
      if (stages_[i].trial && decides(run_.teacher) && cannot_gain(before)) {
        state_.stages[i].outcome = kNoGain;
        continue;
      }
      if (!stages_[i].trial && run_.recipe.process.automatic && cannot_gain(before))
        return leave_out();
      if (waiting_.empty()) begin();
      waiting_.push_back(i);
      carry_out(i);
      judge(i, before);
    }
  }

 private:
  // Of stages that an earlier process has kept.
  void adopt_options() {
    for (auto i = static_cast<std::size_t>(state_.finished); i-- > 0;)
      if (stages_[i].trial && state_.stages[i].outcome == kKept) stages_[i].trial(student_.options);
  }

  static bool cannot_gain(const std::vector<SyntheticResult>& before) {
    return !before.empty() &&
           parallel::agreed(parallel::current(), pool(before).divergence) < kNothingLeft;
  }

  void leave_out() {
    for (StageResult& stage : state_.stages)
      if (stage.outcome.empty()) stage.outcome = kNoGain;
    run_.say(
        "student and teacher agree on nearly every synthetic image: the remaining stages "
        "are skipped");
  }

  void begin() {
    graph_ = student_.graph;
    options_ = student_.options;
    if (state_.parts > 0) return restore(student_, state_.now);
    state_.start = student_.parameters.clone();
    write();
  }

  void write() {
    if (!parallel::is_first(parallel::current())) return;
    state_.seconds = run_.clock.seconds();
    save(run_.output.file("checkpoint/student.safetensors"), state_, identity_);
  }

  void carry_out(std::size_t i) {
    run_.observer.on_stage(static_cast<std::int64_t>(i) + 1, stages_[i].name);
    run_.say("stage " + std::to_string(i + 1) + " of " + std::to_string(stages_.size()) + ": " +
             stages_[i].name);
    const Stopwatch begin;
    double written = 0;
    try {
      if (stages_[i].trial) stages_[i].trial(student_.options);
      stages_[i].run(student_, state_, [&](std::int64_t parts) {
        state_.parts = parts;
        state_.now = student_.parameters.clone();
        if (begin.seconds() < written + 30) return;
        written = begin.seconds();
        write();
      });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::stopped) write();
      throw;
    }
    state_.stages[i].seconds = begin.seconds();
  }

  void judge(std::size_t i, const std::vector<SyntheticResult>& before) {
    StageResult& result = state_.stages[i];
    result.synthetic =
        measure_on(run_.held_out, quant::fuse_activations(student_.graph), student_.parameters);
    run_.observer.on_measurement(
        as_measurement(result, static_cast<std::int64_t>(i) + 1, std::ssize(stages_)));
    const bool kept =
        parallel::agreed(parallel::current(), stays(run_, stages_[i], result.synthetic, before));
    if (!kept && next_decides(i))
      return tell("no gain yet; decided after the next stage", result.synthetic);
    for (const std::size_t stage : waiting_)
      state_.stages[stage].outcome = kept ? kKept : "rejected: KL to the teacher did not decrease";
    if (!kept) {
      student_.graph = graph_;
      student_.options = options_;
      student_.parameters = state_.start.clone();
    }
    tell(result.outcome, result.synthetic);
    waiting_.clear();
    state_.finished = static_cast<std::int64_t>(i) + 1;
    state_.parts = 0;
  }

  bool next_decides(std::size_t i) const {
    return stages_[i].judged_with_next && i + 1 < stages_.size() &&
           state_.stages[i + 1].outcome.empty();
  }

  void tell(const std::string& outcome, const std::vector<SyntheticResult>& results) const {
    if (!results.empty()) run_.say("  " + outcome + ": " + results_in_words(results, run_.teacher));
  }

  const Run& run_;
  const std::vector<Stage>& stages_;
  quant::Student& student_;
  RunState& state_;
  const Identity& identity_;
  std::vector<std::size_t> waiting_;  // stages that are kept or undone together
  models::Graph graph_;               // before the first of these
  QuantOptions options_;              // likewise
};

}  // namespace

std::vector<SyntheticResult> last_kept(const RunState& state) {
  for (auto i = static_cast<std::size_t>(state.finished); i-- > 0;)
    if (state.stages[i].outcome == kKept) return state.stages[i].synthetic;
  return {};
}

void run_stages(const Run& run, const std::vector<Stage>& stages, quant::Student& student,
                RunState& state, const Identity& identity) {
  StageLoop(run, stages, student, state, identity)();
}

}  // namespace zsq::pipeline
