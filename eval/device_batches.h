// SPDX-License-Identifier: Apache-2.0
// Batches of a loader on the device of the network. On a GPU the next batch is decoded and uploaded
// while the network runs on this one; on a CPU batches are handed on as they are.
#pragma once
#include <optional>

#include "eval/loader.h"
#include "models/side_stream.h"

namespace zsq::eval {

class DeviceBatches {
 public:
  DeviceBatches(const ImageSource& source, std::int64_t images, const DataOptions& options,
                c10::Device device);

  // The next batch, its images on the device, to be used until the call after. Throws what
  // Loader::next() throws.
  const Batch& next();
  // To be called when all work on the batch is queued and none of it waited for.
  void fetch_ahead();

 private:
  Loader loader_;
  c10::Device device_;
  std::int64_t left_;  // images that next() has not asked the loader for
  std::optional<models::SideStream> uploads_;
  c10::Event uploaded_;  // the last upload has been made
  std::optional<Batch> ahead_;
  Batch given_;
};

}  // namespace zsq::eval
