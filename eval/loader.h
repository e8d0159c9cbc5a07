// SPDX-License-Identifier: Apache-2.0
// Images are read, decoded and preprocessed while the network runs on those before them.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "eval/evaluate.h"

namespace zsq::eval {

// The first `images` images of a source in batches, in order, loaded by data.eval_threads threads
// that take one image at a time. At most kAhead batches lie here, full or being filled, besides the
// one that was given out last, whatever the number of threads: memory is (kAhead + 1) batches plus
// one image per thread.
class Loader {
 public:
  static constexpr std::int64_t kAhead = 2;

  // page_locked: the memory of batches, so that a GPU can be given them without a wait.
  Loader(const ImageSource& source, std::int64_t images, const DataOptions& options,
         bool page_locked = false);

  // The next batch, to be used until the call after: its memory is then filled anew. Waits until it
  // is complete. What the source threw on loading it is thrown here,
  // where several images failed that of the first. Error(internal) past the last image.
  const Batch& next();

 private:
  struct Slot {
    Batch batch;
    std::int64_t missing = 0;  // images
    std::int64_t failed_image = 0;
    std::exception_ptr error;
  };

  void work(const std::stop_token& stop);
  bool may_start() const;
  Slot& slot_of(std::int64_t image);
  void load(Slot& slot, std::int64_t image);

  const ImageSource& source_;
  const std::int64_t images_, batch_size_;
  const bool page_locked_;
  std::mutex mutex_;  // of all below
  std::condition_variable_any room_, filled_;
  std::int64_t next_image_ = 0, batches_given_ = 0;
  std::deque<Slot> slots_;
  Batch given_, spare_;
  std::vector<std::jthread> threads_;  // the last member: they end before what they use
};

}  // namespace zsq::eval
