// SPDX-License-Identifier: Apache-2.0
#include "parallel/communicator.h"

#include <utility>

namespace zsq::parallel {
namespace {

class Alone : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce_sum(const at::Tensor&) override {}
  void broadcast(const at::Tensor&, int) override {}
};

Communicator*& now() {
  static Communicator* communicator = &alone();
  return communicator;
}

}  // namespace

Communicator& alone() {
  static Alone communicator;
  return communicator;
}

Communicator& current() { return *now(); }

Communicator& set_current(Communicator& communicator) {
  return *std::exchange(now(), &communicator);
}

}  // namespace zsq::parallel
