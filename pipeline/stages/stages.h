// SPDX-License-Identifier: Apache-2.0
// The stages of a run between the float network and the files, in the order of docs/method.md. Each
// is a function over the student and over a struct of what it is configured with.
#pragma once
#include <functional>
#include <optional>

#include "eval/evaluate.h"
#include "pipeline/output_folder.h"
#include "pipeline/quantize.h"
#include "quant/rounding/registry.h"
#include "train/images/image_bank.h"
#include "train/images/system_noise.h"
#include "train/trainer.h"

namespace zsq::pipeline {

// What every stage knows.
struct StageContext {
  const models::Model& teacher;
  std::uint64_t seed = 0;
  Observer& observer;

  void say(const std::string& message) const { observer.on_message(LogLevel::info, message); }
};

// Called when `parts` layers or blocks of a stage are finished, with the student as it is then.
using PartDone = std::function<void(std::int64_t parts)>;

// Activation ranges by quantize.activations.range, then bias correction where the student's options
// ask for it. Has no parts: a run that is resumed does it again.
struct CalibrateStage {
  // Where the rule wants images: f32 [N, C, H, W], or undefined for dead leaves, of which images
  // first to first + n - 1 are asked for.
  at::Tensor bank = {};
  std::function<at::Tensor(std::int64_t first, std::int64_t n)> dead_leaves;
  std::int64_t batch_size = 16;
};
void calibrate(const StageContext& context, const CalibrateStage& stage, quant::Student& student);

// Rounding by what each layer reads of the images. Resumed, layers in blocks that were finished are
// skipped.
struct RoundStage {
  const quant::RoundingMethod& method;
  at::Tensor images;            // f32 [N, C, H, W]
  std::int64_t memory = 2048;   // MiB for the values between blocks
  CalibrateStage ranges;        // taken again once biases were corrected
  std::int64_t parts_done = 0;  // blocks of an earlier run
  PartDone on_part_done;
};
void round_weights(const StageContext& context, const RoundStage& stage, quant::Student& student);

// Channel correction (quant/calibration/channel_correction.h) on these images. Has no parts.
struct CorrectStage {
  at::Tensor images;           // f32 [N, C, H, W]
  std::int64_t memory = 2048;  // MiB for the values between blocks
};
void correct_channels(const StageContext& context, const CorrectStage& stage,
                      quant::Student& student);

// Block reconstruction, with ranges from its images. Resumed, it goes on after the last of `blocks`
// and adds to them.
struct ReconstructStage {
  const ReconstructOptions& options;
  at::Tensor images;  // f32 [N, C, H, W]
  Precision precision = Precision::fp32;
  double seconds = 0;            // what it may take; 0: any
  std::filesystem::path folder;  // for values that reconstruct.memory does not hold
  std::vector<BlockResult>& blocks;
  PartDone on_part_done;
};
// How many views of each of so many images it should have: reconstruct.augmentations_per_image, or
// as many as reconstruct.memory holds the values of, at least one.
std::int64_t affordable_views(const StageContext& context, const ReconstructOptions& options,
                              const quant::Student& student, std::int64_t images);
void reconstruct(const StageContext& context, const ReconstructStage& stage,
                 quant::Student& student);

// Fine-tuning. Resumed, it goes on from its own checkpoint.
struct FineTuneStage {
  const TrainOptions& options;
  const GeneratorOptions& generator;
  const train::BankDraws* bank = nullptr;
  const train::SystemNoise* noise = nullptr;
  bool mirror = true;       // every second one of finetune.teacher_views
  at::Tensor held_out;      // f32 [N, C, H, W] for validation; undefined: made by the generator
  bool calibrated = false;  // ranges stay; otherwise they are taken at the end of the warm-up
  double seconds = 0;       // what it may take; 0: any
  std::function<double()> seconds_after;  // what has to follow within the budget
  std::filesystem::path checkpoint;
  std::int64_t checkpoint_every = 0;
  bool resume = false;
  std::function<void(std::int64_t iteration, const at::Tensor& images)> on_images;  // may be empty
};
train::TrainReport fine_tune(const StageContext& context, const FineTuneStage& stage,
                             quant::Student& student);

// The files, and what the report says of them; float_network: as it was read, for its size. Nothing
// in these depends on the clock or on an evaluation, so that a run that is resumed writes them
// again.
void write_files(const models::Model& float_network, const ExportSettings& settings,
                 const OutputFolder& output, const quant::Student& student, QuantizeReport& report);

// Top-1 and top-5 of teacher and student on real images.
struct EvaluateStage {
  const eval::ImageSource* images = nullptr;  // null: nothing is measured
  const DataOptions& data;
  // What is shipped is what is measured: the exported file rounds biases to integers, which alone
  // moves a prediction in a hundred at few bits. Empty: the student itself.
  std::filesystem::path exported = {};
  Device device = Device::cpu;
};
void evaluate(const StageContext& context, const EvaluateStage& stage,
              const quant::Student& student, QuantizeReport& report);
// About how long that will take, from one batch.
double seconds_of_evaluation(const StageContext& context, const EvaluateStage& stage,
                             const quant::Student& student);

}  // namespace zsq::pipeline
