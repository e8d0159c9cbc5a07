// SPDX-License-Identifier: Apache-2.0
// Remembers the state in which a student had the lowest KL to the teacher, on images that nothing
// learns from, so that a run can end with it. No real image has a part in it.
#pragma once
#include "parallel/ranks.h"
#include "train/optimizers.h"
#include "train/report.h"

namespace zsq::train {

// A line for the log; `iterations`: of the whole run.
std::string in_words(const BestCheckpoint& seen, std::int64_t iterations);

class BestState {
 public:
  // All ranks measure; what rank 0 finds decides.
  BestState(const models::Model& teacher, quant::Student& student,
            parallel::Communicator& ranks = parallel::alone())
      : teacher_(teacher), student_(student), ranks_(ranks) {}

  // What it is measured on, f32 [N, C, H, W].
  void hold_out(const at::Tensor& images) {
    images_ = images.contiguous(at::MemoryFormat::ChannelsLast);
  }
  bool has_images() const { return images_.defined(); }
  bool started() const { return report_.checks > 0; }

  // Measures the student as it is after `iteration`, and copies its parameters where the KL is
  // smaller than all before.
  void check(std::int64_t iteration);
  // Copies them back, in place; seen() tells of which iteration they are.
  void put_back() const;
  const BestCheckpoint& seen() const { return report_; }

  // By names that begin with "best/"; nothing before there are images.
  NamedTensors state() const;
  // Takes them out of a checkpoint's tensors; gives the rest.
  NamedTensors load(const NamedTensors& saved);

 private:
  const models::Model& teacher_;
  quant::Student& student_;
  parallel::Communicator& ranks_;
  at::Tensor images_, expected_;  // expected: the teacher's logits, once asked for
  NamedTensors best_;             // the student's parameters
  BestCheckpoint report_;
};

}  // namespace zsq::train
