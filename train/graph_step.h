// SPDX-License-Identifier: Apache-2.0
// The two halves of an iteration as recordings (cuda_kernels/device_graph.h): on a GPU that is
// fast for the network, launching some thousands of kernels takes longer than running them.
//
// Each half runs as it is a few times, then is recorded, and from then on replayed. Every number
// that changes from one iteration to the next reaches a recording through memory: the draw, which
// is made as ever and copied into place, and the batch, which is copied from where the generator's
// recording leaves it. Rates are constants of a recording; at a milestone, where they drop, both
// halves are recorded anew. Results are those of Step.
//
// The generator learns from the teacher alone, so its next step needs nothing of the student's. On
// a GPU the student's half runs on a stream of its own, at the same time as the generator's next
// half:
//   current stream      G(0)   | G(1) ...      | G(2) ...
//   student's stream           copy S(0) ...   copy S(1) ...
// The copy waits for the generator's half and for the student's before, the generator's next half
// for the copy.
#pragma once
#include "core/observer.h"
#include "cuda_kernels/device_graph.h"
#include "models/side_stream.h"
#include "train/step.h"

namespace zsq::train {

class GraphStep {
 public:
  using MakeGraph = std::function<std::unique_ptr<cuda_kernels::DeviceGraph>()>;

  // `make_graph` null: every call goes to `step` as it is. What cannot be recorded is a line to the
  // observer, and then every call goes there too.
  GraphStep(Step& step, MakeGraph make_graph, Observer& observer)
      : step_(step), make_graph_(std::move(make_graph)), observer_(observer) {}

  // As Step's. The tensors of a result are overwritten by the next call of the same half. The
  // student's may still be computed, to be read by on_student_stream() or after join().
  Batch generator_step(std::uint64_t iteration, double factor);
  StudentStep student_step(const Batch& batch, double factor);
  // f() launched after the student's step, on its stream.
  void on_student_stream(const std::function<void()>& f) const;
  // What the current stream is given from now on runs after the student's steps. To be called
  // before anything but the next steps reads or changes what they do. The host does not wait.
  void join() const {
    if (student_stream_) student_stream_->join();
  }

 private:
  static constexpr int kWarmUps = 3;
  struct Half {
    std::unique_ptr<cuda_kernels::DeviceGraph> graph;
    int warm_ups = 0;
    std::optional<double> factor;  // of the recording
  };
  void run(Half& half, double factor, const std::function<void()>& body);
  void take(const Batch& batch);
  void back_to_one_stream() {
    join();
    student_stream_.reset();
  }

  Step& step_;
  MakeGraph make_graph_;
  Observer& observer_;
  generator::LatentBatch draw_;  // what the recordings read ...
  Batch batch_;
  Batch made_;  // ... and what they write
  StudentStep answered_;
  std::optional<models::SideStream> student_stream_;  // on a GPU, while there are recordings
  Half generator_, student_;                          // last: they let go of their memory first
};

}  // namespace zsq::train
