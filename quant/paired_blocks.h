// SPDX-License-Identifier: Apache-2.0
// A float network and its student, cut into the same blocks (models/blocks.h). Runs both networks
// block by block, caching the activations in between.
#pragma once
#include "core/observer.h"
#include "models/blocks.h"
#include "quant/student.h"

namespace zsq::quant {

class PairedBlocks {
 public:
  // Keeps references. `teacher`: as the student was made from it (quant/student.h).
  PairedBlocks(const models::Model& teacher, const Student& student);

  const models::Model& teacher() const { return teacher_; }
  const std::vector<models::Block>& blocks() const { return blocks_; }

  // What lies after `entry` up to `exit`, both nodes of the teacher. The student's counterpart may
  // end before a node of its own: `students_exit`.
  models::Graph teachers_part(models::NodeId entry, models::NodeId exit) const;
  models::Graph students_part(models::NodeId entry, models::NodeId students_exit) const;
  models::NodeId students_node(models::NodeId teachers) const;

  // What the values of one image take that are of this type at both ends of the block, of student
  // and teacher.
  std::int64_t bytes(const models::Block& block, at::ScalarType type) const;
  // How many images have room in `memory` MiB with these values of any block, at least 1.
  std::int64_t room(std::int64_t memory, at::ScalarType type) const;
  // For PairedValues, where the values at the exit of a block take the place of those at its entry.
  // f32, or f16 where those of so many images take more than 256 MiB in f32: the errors of many
  // values cancel out in what is measured on them.
  at::ScalarType type_of_values(std::int64_t images) const;
  // How many of `images` have room in that type; a warning if not all of them have.
  std::int64_t affordable(std::int64_t images, std::int64_t memory, Observer& observer) const;

 private:
  double widest() const;  // values of both networks at an end of a block

  const Student& student_;
  const models::Model& teacher_;
  std::vector<models::Block> blocks_;
  std::vector<models::Shape> shapes_;
};

// The values of images at the entry of a block, in batches: of the float network and of the
// student. They go through block after block and lie in `type` in between; batches with a value
// that is too large for f16 stay f32.
class PairedValues {
 public:
  // At the entry of the first block. Keeps references to blocks and student.
  PairedValues(const PairedBlocks& blocks, const Student& student, const at::Tensor& images,
               std::int64_t batch_size, at::ScalarType type);

  const std::vector<at::Tensor>& of_float() const { return of_float_; }
  const std::vector<at::Tensor>& of_student() const { return of_student_; }

  // Through a block, as the student is now.
  void hand_on(const models::Block& block);
  // The float network's alone.
  void hand_on_float(const models::Block& block);

 private:
  const PairedBlocks& blocks_;
  const Student& student_;
  at::ScalarType type_;
  std::vector<at::Tensor> of_float_, of_student_;
};

// The value of a part for a value at its entry, whatever the latter's shape; f16 is made f32.
at::Tensor run_part(const models::Graph& part, const models::ParameterStore& parameters,
                    const at::Tensor& input, Precision precision = Precision::fp32);

}  // namespace zsq::quant
