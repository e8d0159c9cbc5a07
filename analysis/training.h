// SPDX-License-Identifier: Apache-2.0
// The training of a student, seen from beside it: the iterations of train/step.h in their schedule,
// with a look before and after each step of the student. No checkpoint, bank or time budget.
#pragma once
#include <functional>

#include "analysis/student_function.h"
#include "core/observer.h"
#include "generator/generator.h"
#include "train/options.h"

namespace zsq::analysis {

struct TrainingSetup {
  const models::Model& teacher;
  QuantOptions quantize;
  GeneratorOptions generator;
  TrainOptions finetune;
  std::uint64_t seed = 0;
};

// `step`: of the student, from 0; `steps`: how many there will be.
using Look = std::function<void(std::int64_t step, std::int64_t steps, const Sample& sample)>;

class Training {
 public:
  explicit Training(const TrainingSetup& setup);

  // Warm-up of the generator, activation ranges, steps of the student. Once. Error(stopped) where
  // the observer asks for it.
  void run(Observer& observer, const Look& before_step = {}, const Look& after_step = {});

  const quant::Student& student() const { return student_; }
  const generator::Generator& generator() const { return generator_; }
  const TrainOptions& options() const { return setup_.finetune; }
  // Images of the generator that no step has seen.
  Sample held_out(std::int64_t images) const;

 private:
  TrainingSetup setup_;
  quant::Student student_;
  generator::Generator generator_;
};

// With the teacher's logits.
Sample sample_of(const models::Model& teacher, const at::Tensor& images, const at::Tensor& targets);

}  // namespace zsq::analysis
