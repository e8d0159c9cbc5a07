// SPDX-License-Identifier: Apache-2.0
#include "eval/device_batches.h"

#include <utility>

namespace zsq::eval {

DeviceBatches::DeviceBatches(const ImageSource& source, std::int64_t images,
                             const DataOptions& options, c10::Device device)
    : loader_(source, images, options, device.is_cuda()),
      device_(device),
      left_(images),
      uploaded_(device.type()) {
  if (device.is_cuda()) uploads_.emplace(device);
}

const Batch& DeviceBatches::next() {
  if (!uploads_) return loader_.next();
  if (!ahead_) fetch_ahead();
  if (!ahead_) return loader_.next();  // throws: there is none
  given_ = *std::exchange(ahead_, std::nullopt);
  uploads_->join();
  given_.images.record_stream(uploads_->current());
  return given_;
}

void DeviceBatches::fetch_ahead() {
  if (!uploads_ || ahead_ || left_ == 0) return;
  uploaded_.synchronize();  // the loader fills the memory of that batch anew
  const Batch& batch = loader_.next();
  left_ -= batch.labels.size(0);
  const auto here = uploads_->enter();
  ahead_ = {batch.images.to(device_, /*non_blocking=*/true), batch.labels.clone()};
  uploaded_.record(here.current_stream());
}

}  // namespace zsq::eval
