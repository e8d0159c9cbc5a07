// SPDX-License-Identifier: Apache-2.0
// Block after block, a student learns its rounding and its scales from what the float network gives
// at the end of each block (BRECQ, Li et al. 2102.05426, with QDrop's dropping and Genie-M's
// steps). Each block sees what the blocks before it, already quantized, pass on. Prints nothing.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/observer.h"
#include "models/precision.h"
#include "parallel/communicator.h"
#include "quant/student.h"
#include "train/reconstruct_options.h"

namespace zsq::train {

// Squared error of a block's output, by the squared output of the float network, over all images;
// inputs as the quantized blocks before it give them.
struct BlockReport {
  std::string name;  // the node at its end
  double before = 0, after = 0;
  std::int64_t iterations = 0;
};
struct ReconstructJob {
  const models::Model& teacher;
  quant::Student& student;  // calibrated; its weights have ranges that stay
  at::Tensor images;        // f32 [N, C, H, W]
  ReconstructOptions options;
  std::uint64_t seed = 0;
  double time_budget = 0;  // seconds; 0: none
  Precision precision = Precision::fp32;
  // Where values lie that options.memory does not hold: files without a name.
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  // Blocks of an earlier run: the student has the parameters that it had when that run reported
  // them, and the result is the same as of an unbroken run (but for a time budget).
  std::vector<BlockReport> done = {};
  // After each further block, with the reports of all that are done.
  std::function<void(const std::vector<BlockReport>&)> on_block_done = {};
  // They share the images of each step, all with equal jobs and all images.
  parallel::Communicator& ranks = parallel::current();
};

struct ReconstructReport {
  std::vector<BlockReport> blocks;
  double seconds = 0;
};

// The student is changed in place: its latent weights lie in the middle of the cells of their
// codes; scales and, with bias_lr, biases have moved; all else stays. A block that ends with a
// larger error than it had is put back. With a time budget a block's schedule runs by the clock
// once that is faster. A parameter that blocks share learns in the first of them. Error(stopped)
// if the observer asks for it: a block may be learned in part then. Error(bad_input) where values
// need a file and the folder or its disk has no room for it.
ReconstructReport reconstruct(const ReconstructJob& job, Observer& observer);

}  // namespace zsq::train
