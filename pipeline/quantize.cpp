// SPDX-License-Identifier: Apache-2.0
// The order of a run: prepare, stages (pipeline/run/stage.h), files, report.
#include "pipeline/quantize.h"

#include "formats/atomic_file.h"
#include "losses/divergence.h"
#include "parallel/ranks.h"
#include "pipeline/report/describe.h"
#include "pipeline/report/layer_errors.h"
#include "pipeline/report/quality.h"
#include "pipeline/report/recorder.h"
#include "pipeline/report/samples.h"
#include "pipeline/report/saturation.h"
#include "pipeline/report/sections.h"
#include "pipeline/report/verdict.h"
#include "pipeline/run/finish.h"
#include "pipeline/run/memory_plan.h"
#include "pipeline/run/mixed.h"
#include "pipeline/run/plan.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/preprocessing.h"
#include "train/checkpoint.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
using namespace pipeline;

// Every layer is computed twice for each image: eight, or as few as four with so many pixels in
// all.
constexpr std::int64_t kPixelsForLayerErrors = std::int64_t{4} * 224 * 224;

std::optional<MixedResult> choose_bits_if_asked(Run& run) {
  const MixedOptions& mixed = run.recipe.mixed;
  const bool asked =
      mixed.target_size.amount > 0 || mixed.target_bops.amount > 0 || mixed.target_cost.amount > 0;
  if (!asked) return std::nullopt;
  return choose_bits(run.teacher, run.source, run.sha256, run.recipe, run.observer);
}

// Where an earlier run has stopped, or the beginning with a plan.
RunState begin(Run& run, const std::vector<Stage>& stages, quant::Student& student,
               const Identity& identity, bool resume) {
  const fs::path file = run.output.file("checkpoint/student.safetensors");
  if (parallel::agreed(parallel::current(), resume && fs::exists(file))) {
    RunState state = load_run_state(file, identity, run.teacher.parameters.device());
    restore(student, state.start);
    run.clock.add_earlier(state.seconds);
    run.say("resuming after " + std::to_string(state.finished) + " of " +
            std::to_string(stages.size()) + " stages");
    return state;
  }
  RunState state;
  state.stages = tell_plan(run, stages);
  return state;
}

Finished finished_in(const Run& run, const RunState& state) {
  Finished finished{state.finished, state.parts};
  const fs::path training = run.output.checkpoint();
  if (fs::exists(training)) finished.iterations = train::iterations_in(training);
  return finished;
}

// From here on the run is recorded.
void open(Recorder& recorder, Run& run, const RunState& state) {
  recorder.open(run.output.file(""), finished_in(run, state));
  std::optional<eval::Preprocessing> preprocessing;
  if (eval::is_given(run.recipe.data))
    preprocessing = preprocessing_of(run.teacher, run.recipe.data);
  run.on_images = [&recorder, preprocessing](std::int64_t iteration, const at::Tensor& images) {
    const eval::Image strip = sample_strip(images, preprocessing);
    if (!strip.pixels.empty()) recorder.add_samples(iteration, strip);
  };
}

void describe_quality(const Run& run, const RunState& state, const quant::Student& student,
                      QuantizeReport& report) {
  if (run.held_out.empty()) return;
  report.synthetic = last_kept(state);
  if (report.synthetic.empty())
    report.synthetic =
        measure_on(run.held_out, quant::fuse_activations(student.graph), student.parameters);
  const PooledResult all = pool(report.synthetic);
  report.agreement = all.agreement;
  report.divergence = all.divergence;
  const at::Tensor& leaves = run.held_out.front().images;
  const auto few =
      std::clamp<std::int64_t>(kPixelsForLayerErrors / (leaves.size(2) * leaves.size(3)), 4, 8);
  const auto errors = layer_errors(run.teacher, student, leaves.slice(0, 0, few));
  double lowest = std::numeric_limits<double>::infinity();
  for (LayerResult& layer : report.layers) {
    const auto found = errors.find(layer.name);
    if (found == errors.end()) continue;
    layer.weight_sqnr = found->second.weight_sqnr;
    layer.output_sqnr = found->second.output_sqnr;
    if (layer.output_sqnr >= lowest) continue;
    lowest = layer.output_sqnr;
    report.costliest_layer = layer.name;
  }
}

// Of fine-tuning in processes before this one, which only its own checkpoint knows.
double earlier_training(const RunState& state, const std::optional<train::TrainReport>& trained) {
  return trained ? std::max(0.0, trained->seconds - state.stages.back().seconds) : 0;
}

void require_at_least(double wanted, double found, const std::string& what) {
  if (found >= wanted) return;
  throw Error(ErrorCode::accuracy_gate,
              what + " " + std::to_string(found) + " % is below the " + std::to_string(wanted) +
                  " % that was asked for; the model is saved all the same");
}

// Out of memory, the error also says what would have fitted.
void run_within_memory(const Run& run, const std::function<void()>& stages) {
  try {
    at_boundary(stages);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    const std::string plan = smaller_plan(run.teacher, run.recipe);
    throw Error(ErrorCode::out_of_memory,
                std::string(error.what()) +
                    (plan.empty() ? "" : "; a new run with " + plan + " needs less") +
                    "; with more memory the same command with --resume goes on from '" +
                    run.output.file("checkpoint").string() + "'");
  }
}

void require_accuracy(const QuantizeReport& report, const QuantizeOptions& options) {
  if (report.student) require_at_least(options.min_top1, report.student->top1, "top-1");
  if (!report.student && options.min_top1 > 0)
    throw Error(ErrorCode::accuracy_gate,
                "the network gives values, so that no top-1 was measured that could be above "
                "--min_top1; the model is saved all the same. --min_agreement asks for its "
                "similarity to the float network");
  if (report.agreement)
    require_at_least(options.min_agreement, 100 * *report.agreement, "agreement");
}

// Rank 0 has the folder for itself; the others read the checkpoint in it.
bool open_output(Run& run, const QuantizeOptions& options, Observer& observer) {
  auto& ranks = parallel::current();
  const auto open = [&] {
    return run.output.open("model sha256 " + run.sha256 + " with preprocessing " +
                               preprocessing_record(run.recipe.data),
                           options.resume, observer);
  };
  return parallel::agreed(ranks, parallel::is_first(ranks) && open());
}

// Stages after the first are judged.
HeldOutUse use_of_images(const Run& run) {
  return stage_kinds_of(run.recipe, run.teacher).size() > 1 ? HeldOutUse::choices
                                                            : HeldOutUse::report;
}

QuantizeReport quantize_inside(const fs::path& model, const QuantizeOptions& options,
                               const fs::path& output, Observer& observer) {
  Recorder recorder(observer);
  Run run = prepare(model, options, output, recorder);
  const bool resume = open_output(run, options, observer);
  const bool first = parallel::is_first(parallel::current());
  const auto mixed = choose_bits_if_asked(run);
  QuantizeReport report = describe_run(model, run.recipe, run.sha256, run.added_macs);
  report.mixed = mixed;
  report.notes = run.notes;
  report.output_kind = losses::name_of(run.teacher.graph.signature.kind);
  report.outputs = run.teacher.classes;
  report.pixels = run.pixels.words;
  report.pixel_range_known = run.pixels.range;
  report.pixels_confirmed = run.pixels.confirmed;
  if (first)
    formats::write_atomically(run.output.file("resolved.yaml"),
                              std::string_view(to_yaml(run.recipe)));

  quant::Student student = quant::insert_quantizers(run.teacher, run.recipe.quantize);
  run.held_out = held_out_images(run.source, run.sha256, run.recipe, use_of_images(run),
                                 run.bank.held_out, observer);
  std::optional<train::TrainReport> trained;
  const std::vector<Stage> stages = plan_stages(run, trained);
  const Identity identity = identity_of(run.recipe);
  RunState state = begin(run, stages, student, identity, resume);
  if (first) open(recorder, run, state);
  parallel::wait_for_all(parallel::current());  // none writes where another still reads
  run_within_memory(run, [&] { run_stages(run, stages, student, state, identity); });
  recorder.close();
  if (!first) return report;

  report.activations = activations_in_words(student.options);  // a stage may have changed them
  report.stages = state.stages;
  report.blocks = state.blocks;
  const train::TrainReport training = trained.value_or(train::TrainReport{});
  report.iterations = training.iterations;
  report.skipped_steps = training.skipped;
  report.kept = describe_kept(training);
  report.layers = describe_layers(student, training);
  report.float_tensors = quant::float_tensors(student);
  describe_quality(run, state, student, report);
  write_files(run, student, report);
  report.saturation = measure_saturation(student, run.output.file("model.onnx"), run.held_out);
  evaluate(run, student, report);
  report.verdict = verdict_of(report);
  report.seconds = run.clock.seconds() + earlier_training(state, trained);
  formats::write_atomically(run.output.file("report.json"), std::string_view(to_json(report)));
  formats::write_atomically(run.output.file("report.html"),
                            std::string_view(run_page(read_run(output))));
  run.output.close();
  require_accuracy(report, options);
  return report;
}

}  // namespace

QuantizeReport quantize(const fs::path& model, const QuantizeOptions& options,
                        const fs::path& output, Observer* observer) {
  Observer silent;
  return at_boundary(
      [&] { return quantize_inside(model, options, output, observer ? *observer : silent); });
}

}  // namespace zsq
