// SPDX-License-Identifier: Apache-2.0
#include "eval/loader.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace zsq::eval {
namespace {

at::Tensor empty_batch(const at::Tensor& one, std::int64_t count, bool page_locked) {
  std::vector<std::int64_t> shape = one.sizes().vec();
  shape[0] = count;
  return at::empty(shape, one.options().pinned_memory(page_locked));
}

// Not copy_(), which for an image would start a team of OpenMP threads per loading thread.
void put(const at::Tensor& one, const at::Tensor& batch, std::int64_t index) {
  if (one.nbytes() * static_cast<std::size_t>(batch.size(0)) != batch.nbytes())
    throw Error(ErrorCode::internal, "the images of one source differ in shape");
  std::memcpy(static_cast<char*>(batch.data_ptr()) + static_cast<std::size_t>(index) * one.nbytes(),
              one.contiguous().const_data_ptr(), one.nbytes());
}

}  // namespace

Loader::Loader(const ImageSource& source, std::int64_t images, const DataOptions& options,
               bool page_locked)
    : source_(source),
      images_(images),
      batch_size_(options.eval_batch_size),
      page_locked_(page_locked) {
  const std::int64_t threads =
      options.eval_threads > 0 ? options.eval_threads : at::get_num_threads();
  for (std::int64_t i = 0; i < std::min(threads, images); ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

const Batch& Loader::next() {
  std::unique_lock lock(mutex_);
  if (batches_given_ * batch_size_ >= images_)
    throw Error(ErrorCode::internal, "no batch after the last one");
  filled_.wait(lock, [&] { return !slots_.empty() && slots_.front().missing == 0; });
  Slot slot = std::move(slots_.front());
  slots_.pop_front();
  ++batches_given_;
  spare_ = std::exchange(given_, std::move(slot.batch));
  room_.notify_all();
  if (slot.error) std::rethrow_exception(slot.error);
  return given_;
}

// True as well where nothing is left to start.
bool Loader::may_start() const {
  return next_image_ >= images_ || next_image_ / batch_size_ < batches_given_ + kAhead;
}

// Adding and removing slots at the ends of a deque leaves the others in place.
Loader::Slot& Loader::slot_of(std::int64_t image) {
  const auto index = static_cast<std::size_t>(image / batch_size_ - batches_given_);
  if (index == slots_.size()) {
    Slot& slot = slots_.emplace_back();
    slot.missing = std::min(batch_size_, images_ - image);
    if (slot.missing == batch_size_) slot.batch = std::exchange(spare_, {});
  }
  return slots_[index];
}

void Loader::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (room_.wait(lock, stop, [this] { return may_start(); }) && next_image_ < images_ &&
         !stop.stop_requested()) {
    const std::int64_t image = next_image_++;
    Slot& slot = slot_of(image);
    lock.unlock();
    std::exception_ptr error;
    try {
      load(slot, image);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && (!slot.error || image < slot.failed_image)) {
      slot.error = error;
      slot.failed_image = image;
    }
    if (--slot.missing == 0) filled_.notify_one();
  }
}

void Loader::load(Slot& slot, std::int64_t image) {
  const Batch one = source_.load(image, 1);
  {
    const std::lock_guard lock(mutex_);
    if (!slot.batch.images.defined()) {
      const std::int64_t count = std::min(batch_size_, images_ - image / batch_size_ * batch_size_);
      slot.batch.labels = empty_batch(one.labels, count, false);
      slot.batch.images = empty_batch(one.images, count, page_locked_);
    }
  }
  put(one.images, slot.batch.images, image % batch_size_);
  put(one.labels, slot.batch.labels, image % batch_size_);
}

}  // namespace zsq::eval
