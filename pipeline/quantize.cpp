// SPDX-License-Identifier: Apache-2.0
// The order of the steps; each step is a function of its own folder.
#include "pipeline/quantize.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "core/stopwatch.h"
#include "eval/evaluate.h"
#include "exporters/export.h"
#include "formats/atomic_file.h"
#include "models/execute.h"
#include "models/load.h"
#include "pipeline/boundary.h"
#include "pipeline/describe.h"
#include "pipeline/distilled.h"
#include "pipeline/mixed.h"
#include "pipeline/output_folder.h"
#include "pipeline/round_weights.h"
#include "pipeline/session.h"
#include "pipeline/start_images.h"
#include "quant/ranges.h"
#include "train/image_bank.h"
#include "train/reconstruct.h"
#include "train/trainer.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
Recipe resolve(const QuantizeOptions& options) {
  Recipe recipe = options.recipe;
  if (options.scheme) {
    recipe.quantize.weights.num_bits = options.scheme->weight_bits;
    recipe.quantize.activations.num_bits = options.scheme->activation_bits;
  }
  validate(recipe);
  const bool has_data = !recipe.data.eval_data.empty();
  if (options.min_top1 > 0 && !has_data)
    throw Error(ErrorCode::usage, "min_top1 needs real images to measure with: --eval_data");
  if (has_data) pipeline::require_preset(recipe.data.preset);
  if (!recipe.data.preset.empty())
    std::tie(recipe.quantize.image_lo, recipe.quantize.image_hi) =
        eval::preset(recipe.data.preset).value_range();
  return recipe;
}

class Job {
 public:
  Job(const fs::path& model, const QuantizeOptions& options, const fs::path& output,
      Observer& observer)
      : options_(options), recipe_(resolve(options)), output_(output), observer_(observer) {
    pipeline::start_process(recipe_.process);
    say("loading " + model.string());
    const std::string sha256 = formats::sha256_of_file(model);
    teacher_ = pipeline::load_float(model, recipe_.model, recipe_.process.device);
    models::require_batch_norm(teacher_);
    loading_ = start_.seconds();
    if (!recipe_.data.eval_data.empty()) {
      images_ = eval::open_data(recipe_.data, observer_);
      pipeline::require_input_shape(teacher_, images_->load(0, 1).images, recipe_.data.eval_data);
    }
    if (!recipe_.generate.bank.empty()) open_bank(sha256);
    output_.open("model sha256 " + sha256 + " with preset '" + recipe_.data.preset + "'",
                 options.resume);
    std::optional<MixedResult> mixed;
    if (recipe_.mixed.target_size.amount > 0 || recipe_.mixed.target_bops.amount > 0)
      mixed = pipeline::choose_bits(teacher_, sha256, recipe_, observer_);
    report_ = pipeline::describe_run(model, recipe_, sha256);
    report_.mixed = mixed;
    formats::write_atomically(output_.file("resolved.yaml"), std::string_view(to_yaml(recipe_)));
    resumes_ = options.resume && fs::exists(output_.checkpoint());
    prepared_ = start_.seconds();
  }

  QuantizeReport run() {
    quant::Student student = quant::insert_quantizers(teacher_, recipe_.quantize);
    if (recipe_.quantize.weights.rounding == WeightRounding::hessian && !resumes_)
      pipeline::round_weights(teacher_, student, recipe_, bank_images_, observer_);
    const bool reconstructs = recipe_.reconstruct.iterations > 0;
    // Without iterations a bank still gives ranges, where nothing else has taken them.
    const bool trains = recipe_.finetune.iterations > 0 || (bank_ && !reconstructs);
    train::TrainReport trained;
    if (reconstructs && !resumes_) trained.blocks = reconstruct(student, trains);
    if (trains)
      trained = train(student, std::move(trained.blocks));
    else if (!reconstructs)
      calibrate(student);
    for (const train::BlockReport& block : trained.blocks)
      report_.blocks.push_back({block.name, block.before, block.after, block.iterations});
    report_.kept = pipeline::describe_kept(trained);
    report_.layers = pipeline::describe_layers(student, trained);
    report_.float_tensors = quant::float_tensors(student);
    export_files(student);
    if (images_) {
      report_.teacher = measure(teacher_.graph, teacher_.parameters, "teacher");
      report_.student = measure_student(student);
    }
    report_.seconds = start_.seconds() + std::max(0.0, earlier_seconds_);
    formats::write_atomically(output_.file("report.json"), std::string_view(to_json(report_)));
    formats::write_atomically(output_.file("report.html"), std::string_view(to_html(report_)));
    output_.remove_checkpoint();
    if (report_.student && report_.student->top1 < options_.min_top1)
      throw Error(ErrorCode::accuracy_gate,
                  "top-1 " + std::to_string(report_.student->top1) + " % is below the " +
                      std::to_string(options_.min_top1) +
                      " % that was asked for; the model is saved all the same");
    return report_;
  }

 private:
  // What is shipped is what is measured: the exported file rounds biases to integers, and in few
  // bits that alone moves the answer on a per cent of the images.
  Accuracy measure_student(const quant::Student& student) {
    if (!recipe_.exporting.onnx) return measure(student.graph, student.parameters, "student");
    const models::Model shipped =
        pipeline::load_any(output_.file("model.onnx"), {}, recipe_.process.device);
    return measure(shipped.graph, shipped.parameters, "student");
  }

  void say(const std::string& message) { observer_.on_message(LogLevel::info, message); }

  void open_bank(const std::string& sha256) {
    train::ImageBank bank = train::load_bank(recipe_.generate.bank, teacher_);
    if (bank.metadata["source_sha256"] != sha256)
      observer_.on_message(LogLevel::warning, recipe_.generate.bank +
                                                  " was not made with this model; its images may "
                                                  "say little about it");
    bank_images_ = pipeline::split_bank(bank.images, recipe_);
    bank.images = bank_images_.learn;
    hold_out(bank_images_.held_out);
    if (recipe_.generate.bank_share > 0)
      bank_.emplace(std::move(bank), recipe_.generate.bank_share, recipe_.images,
                    static_cast<std::uint64_t>(recipe_.process.seed));
  }

  generator::Generator make_generator() const {
    return {teacher_, recipe_.generate, static_cast<std::uint64_t>(recipe_.process.seed)};
  }

  // Without training and without a bank. Where the range rule wants images, a generator that has
  // learnt nothing makes them; agreement on its images would tell nothing.
  void calibrate(quant::Student& student) const {
    std::optional<generator::Generator> generator;
    auto step = generator::Generator::kCalibrationSteps;
    quant::calibrate(student, [&] {
      if (!generator) generator.emplace(make_generator());
      return generator->forward(generator->draw(recipe_.finetune.batch_size, step++));
    });
    quant::refresh_weight_grids(student);
  }

  // Ranges and blocks on images that need no generator. Half of a time budget, where training
  // follows, and of that half for making the images.
  std::vector<train::BlockReport> reconstruct(quant::Student& student, bool trains) {
    const double budget = recipe_.process.time_budget.seconds;
    const auto left = [&](double of) { return std::max(1.0, of - start_.seconds()); };
    const double end =
        trains ? budget / 2 : budget - loading_ - (images_ ? timed_evaluation(student) : 0);
    const auto images = pipeline::start_images(teacher_, recipe_, bank_images_,
                                               {.images = recipe_.reconstruct.images,
                                                .views = recipe_.reconstruct.views,
                                                .held_out = pipeline::to_hold_out(recipe_),
                                                .seconds = budget > 0 ? left(end) / 2 : 0},
                                               observer_);
    say("taking activation ranges on them");
    quant::calibrate(student, images.learn, recipe_.reconstruct.batch_size);
    say("reconstructing block by block");
    const auto done = train::reconstruct({.teacher = teacher_,
                                          .student = student,
                                          .images = images.learn,
                                          .options = recipe_.reconstruct,
                                          .seed = static_cast<std::uint64_t>(recipe_.process.seed),
                                          .time_budget = budget > 0 ? left(end) : 0,
                                          .precision = recipe_.finetune.precision},
                                         observer_);
    hold_out(images.held_out);
    if (!trains && held_out_.defined())
      note(train::measure_agreement(teacher_, student, held_out_));
    return done.blocks;
  }

  void hold_out(const at::Tensor& images) {
    if (images.size(0) == 0) return;
    const auto seed = static_cast<std::uint64_t>(recipe_.process.seed);
    held_out_ = pipeline::mixed_images(images.cpu(), recipe_.finetune.check_images, seed)
                    .to(teacher_.parameters.device());
  }

  void note(const train::Agreement& held_out) {
    report_.agreement = held_out.agreement;
    report_.divergence = held_out.kl;
  }

  train::TrainReport train(quant::Student& student, std::vector<train::BlockReport> blocks) {
    const double budget = recipe_.process.time_budget.seconds;
    generator::Generator generator = make_generator();
    const Stopwatch begin;
    const bool reconstructed = recipe_.reconstruct.iterations > 0 && !resumes_;
    const double before = reconstructed ? start_.seconds() - prepared_ : 0;
    const train::TrainReport trained =
        train::run({.teacher = teacher_,
                    .student = student,
                    .generator = generator,
                    .options = recipe_.finetune,
                    .seed = static_cast<std::uint64_t>(recipe_.process.seed),
                    .time_budget = budget > 0 ? std::max(1.0, budget - prepared_) : 0,
                    .checkpoint = output_.checkpoint(),
                    .checkpoint_every = recipe_.process.checkpoint_every,
                    .resume = resumes_,
                    .seconds_after = [&] { return seconds_after(student, generator); },
                    .bank = bank_ ? &*bank_ : nullptr,
                    .reconstruct = recipe_.reconstruct,
                    .reconstructed = reconstructed,
                    .reconstruct_seconds = before,
                    .blocks = std::move(blocks),
                    .held_out = held_out_},
                   observer_);
    earlier_seconds_ = trained.seconds - before - begin.seconds();  // before it was resumed
    report_.iterations = trained.iterations;
    report_.skipped_steps = trained.skipped;
    if (recipe_.process.agreement_images > 0)
      note(
          train::measure_agreement(teacher_, student, generator, recipe_.process.agreement_images));
    return trained;
  }

  // About what agreement, writing and evaluation will take: the first and the last timed on one
  // batch.
  double seconds_after(const quant::Student& student, const generator::Generator& generator) {
    double seconds = loading_;  // writing takes about as long as reading did
    if (const auto images = recipe_.process.agreement_images; images > 0) {
      const Stopwatch begin;
      const auto timed = train::measure_agreement(teacher_, student, generator,
                                                  std::min<std::int64_t>(images, 64));
      seconds += begin.seconds() * static_cast<double>(images) / static_cast<double>(timed.images);
    }
    return seconds + (images_ ? timed_evaluation(student) : 0);
  }

  double timed_evaluation(const quant::Student& student) const {
    DataOptions batch = recipe_.data;
    const auto all = eval::images_to_use(*images_, batch);
    batch.eval_images = std::min(batch.eval_batch_size, all);
    Observer silent;
    const double timed = evaluate(teacher_.graph, teacher_.parameters, batch, silent).seconds +
                         evaluate(student.graph, student.parameters, batch, silent).seconds;
    return timed * static_cast<double>(all) / static_cast<double>(batch.eval_images);
  }

  // Nothing in these files depends on the clock or on an evaluation.
  void export_files(const quant::Student& trained) {
    quant::Student student{trained.graph, trained.parameters.clone(), trained.options};
    pipeline::move_to(student.parameters, Device::cpu);
    const exporters::Metadata metadata{{"tool", "zsq " + report_.tool_version},
                                       {"scheme", report_.scheme},
                                       {"mode", report_.mode},
                                       {"recipe", report_.recipe},
                                       {"seed", std::to_string(report_.seed)},
                                       {"preset", report_.preset},
                                       {"source_sha256", report_.source_sha256}};
    exporters::ExportReport exported;
    if (recipe_.exporting.safetensors) {
      report_.files.push_back(output_.file("model.safetensors"));
      exported = exporters::export_safetensors(student, report_.files.back(), metadata);
    }
    if (recipe_.exporting.onnx) {
      report_.files.push_back(output_.file("model.onnx"));
      exported = exporters::export_onnx(student, report_.files.back(), metadata);
    }
    for (LayerResult& layer : report_.layers)
      for (const exporters::ExecutesAs& row : exported.layers)
        if (row.layer == layer.name) {
          layer.executes_as = row.executes_as;
          layer.reason = row.reason;
        }
    const exporters::SizeReport size = exporters::parameter_bytes(teacher_, student);
    report_.fp32_bytes = size.fp32_bytes;
    report_.quantized_bytes = size.quantized_bytes;
  }

  Accuracy measure(const models::Graph& graph, const models::ParameterStore& parameters,
                   const std::string& who) {
    say("evaluating the " + who + " on " + recipe_.data.eval_data);
    const eval::Result result = evaluate(graph, parameters, recipe_.data, observer_);
    report_.evaluation_seconds += result.seconds;
    return {result.top1, result.top5, result.images};
  }

  eval::Result evaluate(const models::Graph& graph, const models::ParameterStore& parameters,
                        const DataOptions& data, Observer& observer) const {
    return eval::evaluate(
        [&](const at::Tensor& images) { return pipeline::infer(graph, parameters, images); },
        *images_, data, observer);
  }

  Stopwatch start_;
  // Seconds: reading the network; all of the preparation; the run before it was resumed.
  double loading_ = 0, prepared_ = 0, earlier_seconds_ = 0;
  bool resumes_ = false;
  const QuantizeOptions& options_;
  Recipe recipe_;
  pipeline::OutputFolder output_;
  Observer& observer_;
  models::Model teacher_;
  std::unique_ptr<eval::ImageSource> images_;
  pipeline::StartImages bank_images_;  // undefined: no bank
  at::Tensor held_out_;                // undefined: none
  std::optional<train::BankDraws> bank_;
  QuantizeReport report_;
};

}  // namespace

QuantizeReport quantize(const fs::path& model, const QuantizeOptions& options,
                        const fs::path& output, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return Job(model, options, output, observer ? *observer : silent).run(); });
}

}  // namespace zsq
