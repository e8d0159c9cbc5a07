// SPDX-License-Identifier: Apache-2.0
// One iteration of the method and all the state that it changes. While a Step lives, f32 products
// on GPUs are those of its precision (models/float32_products.h).
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "losses/losses.h"
#include "losses/registry.h"
#include "models/float32_products.h"
#include "parallel/ranks.h"
#include "train/convolution_rehearsal.h"
#include "train/optimizers.h"
#include "train/options.h"
#include "train/report.h"
#include "train/scale_steps.h"
#include "train/teacher_pass.h"
#include "train/weight_steps.h"

namespace zsq::train {

class BankDraws;
class SystemNoise;

// What a generator step hands to the student step. No tensor of it carries a gradient. Where it
// lies on a GPU, reading a number of it waits for the GPU; the steps themselves never do.
struct Batch {
  at::Tensor images, logits;  // logits: the teacher's
  at::Tensor loss;            // [], of the generator; undefined like `skipped` if none learned
  at::Tensor skipped;         // bool []: the gradient was not finite; nothing was changed
  std::vector<at::Tensor> features = {};  // the teacher's values at Step::feature_nodes()
  at::Tensor targets = {};                // f32 [N, classes], where a term of the loss wants them
  at::Tensor statistics = {};             // []: the loss's BatchNorm-statistics term, unweighted
};

struct StudentStep {
  at::Tensor loss, agreement;  // []; share of the batch where student and teacher choose one class
  at::Tensor skipped;          // bool []
};

// The parts of an iteration, in their order; a loss belongs to the forward part before it.
enum class Part {
  generator_forward,
  teacher_forward,
  teacher_backward,
  generator_backward,
  generator_update,
  student_forward,
  student_backward,
  student_update,
};
constexpr std::size_t kParts = 8;

class Step {
 public:
  // Takes a deep copy of the student's parameters into `student`, so that nothing is shared with
  // the teacher, and lets them require gradients for as long as it lives. Several ranks share each
  // batch: images and predictions of a Batch are those of this rank's rows, losses and steps those
  // of the whole.
  Step(const models::Model& teacher, quant::Student& student, generator::Generator& generator,
       const TrainOptions& options, parallel::Communicator& ranks = parallel::alone());
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Steps 1 and 2 of the iteration: draw, make images, let the generator learn. `factor` multiplies
  // all rates.
  Batch generator_step(std::uint64_t iteration, double factor) {
    return generator_step(draw(iteration), factor);
  }
  // This rank's rows: all ranks draw the whole batch alike.
  generator::LatentBatch draw(std::uint64_t iteration) const {
    const auto whole = generator_.draw(options_.batch_size, iteration);
    return rows_.whole() ? whole : whole.rows(rows_.first, rows_.count);
  }
  const parallel::Rows& rows() const { return rows_; }
  Batch generator_step(const generator::LatentBatch& draw, double factor);
  // Steps 3 and 4 on the same images.
  StudentStep student_step(const Batch& batch, double factor);
  // Makes a batch and learns from it, to time both, and then has everything as it was: seconds of
  // `make_batch` and of a student step.
  std::pair<double, double> rehearse(const std::function<Batch()>& make_batch);

  // Without a call: channels_last, and cuDNN as the process has it.
  void use(const ConvolutionSettings& settings);

  void calibrate(const BankDraws* bank = nullptr, const SystemNoise* noise = nullptr);
  // Once there are ranges; calibrate() and load() do it themselves.
  void learnable_scales();

  // Rows that a student step takes at once, for a batch in parts (train/student_step.cpp).
  void take_at_once(std::int64_t rows) { rows_at_once_ = rows; }

  // Called at the end of every part from now on, to time them.
  void on_part_done(std::function<void(Part)> callback) { part_done_ = std::move(callback); }

  const WeightSteps& weight_steps() const { return weights_; }
  // Of the teacher; empty if no term of the loss compares features.
  const std::vector<models::NodeId>& feature_nodes() const { return feature_nodes_; }
  // The student's parameters were replaced: its optimizers begin anew.
  void restart_student();
  // Everything that an unbroken run would carry into its next iteration, as handles.
  NamedTensors state() const;
  // Takes such a state back; Error(bad_input) names what does not fit.
  // `calibrated`: it was written after the activation ranges had been taken.
  void load(const NamedTensors& state, bool calibrated);

 private:
  struct GeneratorPass {
    Batch batch;
    std::vector<at::Tensor> gradients;
  };
  std::vector<at::Tensor> of_all_ranks(std::vector<at::Tensor> gradients,
                                       std::vector<at::Tensor*> numbers) const;
  struct StudentPass {
    at::Tensor loss, agreement, skipped;
    std::vector<at::Tensor> weight_gradients, affine_gradients, scale_gradients;
  };
  GeneratorPass generator_pass(const generator::LatentBatch& draw) const;
  struct Seen {
    at::Tensor loss, agreement;  // means over the rows
  };
  Seen look(const Batch& rows, const models::ParameterStore& parameters) const;
  StudentPass student_pass(const Batch& batch) const;
  void add_second_pass(const at::Tensor& images, const models::ParameterStore& parameters,
                       losses::TermInputs& inputs) const;
  std::vector<at::Tensor> student_state() const;
  void done(Part part) const {
    if (part_done_) part_done_(part);
  }

  models::Float32Products products_;
  std::optional<CudnnBenchmark> benchmark_;
  bool row_major_ = false;  // images, and so what is computed of them
  const models::Model& teacher_;
  quant::Student& student_;
  generator::Generator& generator_;
  TrainOptions options_;
  parallel::Communicator& ranks_;
  parallel::Rows rows_;
  models::Graph student_graph_;  // fused, for execution with its weights quantized beforehand
  std::vector<quant::WeightSite> weight_sites_;
  TeacherPass teacher_pass_;
  // In the teacher's graph, in its pass and in the fused student.
  std::vector<models::NodeId> feature_nodes_, teacher_feature_nodes_, student_feature_nodes_;
  at::Tensor classifier_;  // of the teacher, where a term of the loss needs it
  std::vector<losses::RunningMoments> running_;
  Adam adam_;
  std::unique_ptr<StepRule> affine_;
  WeightSteps weights_;
  std::optional<ScaleSteps> scales_;  // once there are activation scales
  std::int64_t rows_at_once_;         // through the student; a larger batch goes in parts
  std::function<void(Part)> part_done_;
};

}  // namespace zsq::train
