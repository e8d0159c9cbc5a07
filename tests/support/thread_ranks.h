// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process, so that what is split can be compared with what is whole without
// a launcher.
#pragma once
#include <ATen/core/grad_mode.h>

#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "parallel/communicator.h"

namespace zsq::test {

class ThreadRanks {
 public:
  explicit ThreadRanks(int size)
      : tensors_(static_cast<std::size_t>(size)), barrier_(size, AtMeeting{*this}) {}

  // f on every rank at once. The first rank's exception comes out here; the others, which wait for
  // that rank, are let go.
  void run(const std::function<void(parallel::Communicator&)>& f) {
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> errors(tensors_.size());
    for (std::size_t rank = 0; rank < tensors_.size(); ++rank)
      threads.emplace_back([&, rank] {
        Rank own(*this, static_cast<int>(rank));
        try {
          f(own);
        } catch (const LetGo&) {
        } catch (...) {
          errors[rank] = std::current_exception();
        }
        if (errors[rank]) one_has_failed_ = true;
        barrier_.arrive_and_drop();
      });
    for (auto& thread : threads) thread.join();
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
  }

 private:
  struct LetGo {};
  // When all have come or left: a rank that leaves later does not spoil what was complete.
  struct AtMeeting {
    ThreadRanks& all;
    void operator()() noexcept { all.broken_ = all.one_has_failed_.load(); }
  };

  class Rank : public parallel::Communicator {
   public:
    Rank(ThreadRanks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(all_.tensors_.size()); }
    void all_reduce_sum(const at::Tensor& tensor) override {
      const at::NoGradGuard no_grad;
      all_.tensors_[static_cast<std::size_t>(rank_)] = tensor;
      all_.wait();
      auto sum = all_.tensors_[0].clone();
      for (std::size_t i = 1; i < all_.tensors_.size(); ++i) sum.add_(all_.tensors_[i]);
      all_.wait();
      tensor.copy_(sum);
    }
    void broadcast(const at::Tensor& tensor, int root) override {
      const at::NoGradGuard no_grad;
      if (rank_ == root) all_.tensors_[0] = tensor;
      all_.wait();
      const auto value = all_.tensors_[0].clone();
      all_.wait();
      tensor.copy_(value);
    }

   private:
    ThreadRanks& all_;
    int rank_;
  };

  void wait() {
    barrier_.arrive_and_wait();
    if (broken_) throw LetGo{};
  }

  std::vector<at::Tensor> tensors_;
  std::atomic<bool> one_has_failed_ = false;
  bool broken_ = false;
  std::barrier<AtMeeting> barrier_;
};

}  // namespace zsq::test
