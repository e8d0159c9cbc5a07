// SPDX-License-Identifier: Apache-2.0
#include "train/graph_step.h"

namespace zsq::train {
namespace {

// The value, in the memory that a recording reads.
void put(at::Tensor& place, const at::Tensor& value) {
  if (place.defined())
    place.copy_(value);
  else
    place = value.clone();
}

}  // namespace

void GraphStep::run(Half& half, double factor, const std::function<void()>& body) {
  if (!half.graph) half.graph = make_graph_();
  if (half.warm_ups < kWarmUps) {
    ++half.warm_ups;
    return half.graph->warm_up(body);
  }
  if (half.factor != factor) {
    try {
      half.graph->record(body);
    } catch (const std::exception& error) {
      observer_.on_message(LogLevel::info,
                           std::string("finetune.cuda_graphs is not used: ") + error.what());
      make_graph_ = nullptr;
      generator_ = {};
      student_ = {};
      return body();
    }
    half.factor = factor;
  }
  half.graph->replay();
}

Batch GraphStep::generator_step(std::uint64_t iteration, double factor) {
  if (!make_graph_) return step_.generator_step(iteration, factor);
  const auto draw = step_.draw(iteration);
  put(draw_.labels, draw.labels);
  put(draw_.weights, draw.weights);
  put(draw_.noise, draw.noise);
  put(draw_.targets, draw.targets);
  run(generator_, factor, [this, factor] { made_ = step_.generator_step(draw_, factor); });
  if (!make_graph_) back_to_one_stream();
  return made_;
}

void GraphStep::take(const Batch& batch) {
  put(batch_.images, batch.images);
  put(batch_.logits, batch.logits);
  if (batch.targets.defined()) put(batch_.targets, batch.targets);
  batch_.features.resize(batch.features.size());
  for (std::size_t i = 0; i < batch.features.size(); ++i)
    put(batch_.features[i], batch.features[i]);
}

void GraphStep::on_student_stream(const std::function<void()>& f) const {
  if (!student_stream_) return f();
  const auto here = student_stream_->enter();
  f();
}

StudentStep GraphStep::student_step(const Batch& batch, double factor) {
  if (!make_graph_) return step_.student_step(batch, factor);
  if (!student_stream_ && batch.images.is_cuda()) student_stream_.emplace(batch.images.device());
  if (student_stream_) student_stream_->wait_for_current();
  on_student_stream([&] { take(batch); });
  // Now: the memory of `batch`, which libtorch may hand out again, waits for no more than the copy.
  join();
  on_student_stream([&] {
    run(student_, factor, [this, factor] { answered_ = step_.student_step(batch_, factor); });
  });
  if (!make_graph_) back_to_one_stream();
  return answered_;
}

}  // namespace zsq::train
