// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/reconstruct.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/seed.h"
#include "core/stopwatch.h"
#include "parallel/ranks.h"
#include "quant/data_free/entry_statistics.h"
#include "quant/paired_blocks.h"
#include "train/reconstruction/reconstruct_block.h"
#include "train/reconstruction/tensor_in_file.h"

namespace zsq::train {
namespace {

using models::Block;
using models::Graph;

class Reconstruction {
 public:
  Reconstruction(const ReconstructJob& job, Observer& observer)
      : job_(job),
        observer_(observer),
        pair_(job.teacher, job.student),
        teacher_(pair_.teacher()),
        blocks_(pair_.blocks()),
        kept_as_(pair_.room(job.options.memory, at::kFloat) < job.images.size(0) ? at::kBFloat16
                                                                                 : at::kFloat),
        batch_(std::min(job.options.batch_size, job.images.size(0))) {
    if (job.options.entry_statistics) entries_.emplace(teacher_, blocks_);
  }

  ReconstructReport operator()() {
    begin_alike();
    tell_of_files();
    BlockValues values;
    values.float_input = values.student_input = job_.images;
    const auto costs = job_.time_budget > 0 ? seconds_of_blocks() : std::vector<double>();
    report_.blocks = job_.done;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (entries_)
        entries_->impose(blocks_[i].entry, values.float_input.split(batch_),
                         values.student_input.split(batch_));
      if (i < job_.done.size()) {
        hand_on(i, values);
        continue;
      }
      const double left = costs.empty() ? 0 : std::accumulate(costs.begin() + i, costs.end(), 0.0);
      const double time =
          costs.empty() ? 0 : std::max(0.0, job_.time_budget - begin_.seconds()) * costs[i] / left;
      take(i, values, time);
      parallel::require_same(job_.ranks, all_parameters(),
                             "block " + std::to_string(i + 1) + " of the reconstruction");
      if (job_.on_block_done) job_.on_block_done(report_.blocks);
    }
    report_.seconds = begin_.seconds();
    return report_;
  }

 private:
  NamedTensors all_parameters() const {
    NamedTensors named;
    for (const auto& name : job_.student.parameters.names())
      named.emplace_back(name, job_.student.parameters.at(name));
    return named;
  }

  // Broadcasts rank 0's state, because CPUs round differently.
  void begin_alike() const { parallel::take_from_first(job_.ranks, tensors_of(all_parameters())); }

  Graph teachers_part(const Block& block) const {
    return pair_.teachers_part(block.entry, block.exit);
  }
  Graph students_part(const Block& block) const {
    return pair_.students_part(block.entry, pair_.students_node(block.exit));
  }

  // Of a batch in the float network.
  std::vector<double> seconds_of_blocks() const {
    const at::NoGradGuard no_grad;
    std::vector<double> seconds;
    auto value = job_.images.narrow(0, 0, batch_);
    for (const Block& block : blocks_) {
      const Stopwatch begin;
      value = quant::run_part(teachers_part(block), teacher_.parameters, value, job_.precision);
      seconds.push_back(begin.seconds());
    }
    return seconds;
  }

  std::int64_t bytes_of(const Block& block) const {
    return pair_.bytes(block, kept_as_) * job_.images.size(0);
  }
  bool needs_file(const Block& block) const { return bytes_of(block) > job_.options.memory << 20; }

  void tell_of_files() const {
    std::int64_t blocks = 0, most = 0;
    for (const Block& block : blocks_) {
      blocks += needs_file(block);
      most = std::max(most, (bytes_of(block) >> 20) + 1);
    }
    if (blocks == 0) return;
    const auto memory = std::to_string(most);
    observer_.on_message(LogLevel::info,
                         std::to_string(blocks) + " of " + std::to_string(blocks_.size()) +
                             " blocks have values of up to " + memory +
                             " MiB, which lie in a file in '" + job_.folder.string() +
                             "'; reconstruct.memory=" + memory + " keeps them in memory");
  }

  at::Tensor room_for(const Block& block, at::IntArrayRef shape) const {
    if (needs_file(block)) return tensor_in_file(job_.folder, shape, kept_as_);
    return at::empty(shape, job_.images.options().dtype(kept_as_));
  }

  // A block, or the student's counterpart of one, for all images, batch by batch.
  at::Tensor run_all(const Block& block, const Graph& part,
                     const models::ParameterStore& parameters, const at::Tensor& inputs) const {
    const at::NoGradGuard no_grad;
    at::Tensor outputs;
    for (std::int64_t first = 0; first < inputs.size(0); first += batch_) {
      const auto n = std::min(batch_, inputs.size(0) - first);
      const auto input = inputs.narrow(0, first, n).to(job_.images.device()).to(at::kFloat);
      const auto output = quant::run_part(part, parameters, input, job_.precision);
      if (!outputs.defined()) {
        auto shape = output.sizes().vec();
        shape[0] = inputs.size(0);
        outputs = room_for(block, shape);
      }
      outputs.narrow(0, first, n).copy_(output);
    }
    return outputs;
  }

  // Through a block that is done.
  void hand_on(std::size_t index, BlockValues& values) {
    const Block& block = blocks_[index];
    const Graph part = students_part(block);
    auto output = run_all(block, quant::fuse_activations(part), job_.student.parameters,
                          values.student_input);
    values = {std::move(output),
              run_all(block, teachers_part(block), teacher_.parameters, values.float_input),
              {}};
    settle(part);
  }

  void take(std::size_t index, BlockValues& values, double time) {
    const Stopwatch begin;
    const Block& block = blocks_[index];
    const Graph part = students_part(block), fused = quant::fuse_activations(part);
    auto& parameters = job_.student.parameters;
    values.float_output =
        run_all(block, teachers_part(block), teacher_.parameters, values.float_input);
    const auto students = [&] { return run_all(block, fused, parameters, values.student_input); };
    auto output = students();
    const double before = parallel::agreed(job_.ranks, error_of(output, values.float_output));
    const auto saved = copy_of(part, parameters);
    BlockReport report{teacher_.graph[block.exit].name, before, before};
    if (before > 0) {
      output.reset();
      const auto scale = parallel::agreed(job_.ranks, before * power_of(values.float_output));
      report.iterations = learn(index, part, values, scale, time - 2 * begin.seconds());
      output = students();
      report.after = parallel::agreed(job_.ranks, error_of(output, values.float_output));
      if (!(report.after < before)) {
        for (const auto& [name, tensor] : saved) parameters.set(name, tensor);
        output.reset();
        output = students();
        report.after = before;
      }
    }
    report_.blocks.push_back(std::move(report));
    settle(part);
    values = {std::move(output), std::move(values.float_output), {}};
  }

  // Trains the block; gives the number of steps.
  std::int64_t learn(std::size_t index, const Graph& part, const BlockValues& values, double scale,
                     double time) {
    const auto& options = job_.options;
    BlockReconstruction block(job_.student, part, teacher_.parameters, settled_, options, batch_,
                              stream_seed(job_.seed, "reconstruct", index), job_.precision,
                              job_.ranks);
    if (!block.learns()) return 0;
    const BlockValues inputs{models::as_images(values.student_input),
                             models::as_images(values.float_input), values.float_output};
    const Stopwatch begin;
    std::int64_t done = 0;
    const double one = 1 / static_cast<double>(options.iterations);
    const double longest = std::max(one, 0.02);  // where the clock sets the pace
    double share = 0, advance = one;
    for (; share < 1; ++done) {
      if (parallel::on_any(job_.ranks, observer_.stop_requested()))
        throw Error(ErrorCode::stopped, "stopped at block " + std::to_string(index + 1) + " of " +
                                            std::to_string(blocks_.size()) +
                                            " of the reconstruction");
      const double loss = block.step(inputs, share, std::min(advance, longest), scale);
      double now = static_cast<double>(done + 1) * one;
      if (job_.time_budget > 0) now = std::max(now, time > 0 ? begin.seconds() / time : 1);
      advance = now - std::exchange(share, now);
      observer_.on_progress({"reconstruct",
                             static_cast<std::int64_t>(index) * options.iterations + done + 1,
                             std::ssize(blocks_) * options.iterations,
                             begin_.seconds(),
                             {{"block", static_cast<double>(index + 1)}, {"loss", loss}}});
    }
    block.decide();
    return done;
  }

  // Mean over all values; in batches, since all of them in f32 may need too much memory.
  template <class F>
  double mean_of(const at::Tensor& values, const F& f) const {
    double sum = 0;
    for (std::int64_t first = 0; first < values.size(0); first += batch_) {
      const auto n = std::min(batch_, values.size(0) - first);
      sum += static_cast<double>(n) * f(first, n).template item<double>();
    }
    return sum / static_cast<double>(values.size(0));
  }
  double power_of(const at::Tensor& t) const {
    return mean_of(t, [&](auto first, auto n) {
      return t.narrow(0, first, n).to(at::kFloat).square().mean();
    });
  }
  double error_of(const at::Tensor& output, const at::Tensor& target) const {
    const double power = power_of(target);
    if (!(power > 0)) return 0;
    return mean_of(target,
                   [&](auto first, auto n) {
                     return mean_squared_error(output.narrow(0, first, n),
                                               target.narrow(0, first, n));
                   }) /
           power;
  }

  // What may change of a part: its scales and biases, and its latent weights in the middle of their
  // cells.
  NamedTensors copy_of(const Graph& part, const models::ParameterStore& parameters) const {
    NamedTensors copies;
    const quant::Student block{part, parameters, {}};
    for (const auto& site : quant::weight_sites(block))
      if (!settled_.contains(site.parameter))
        copies.emplace_back(site.parameter,
                            site.op->forward({parameters.at(site.parameter).detach()}, parameters));
    for (const auto& name : scales_and_biases(part))
      if (!settled_.contains(name)) copies.emplace_back(name, parameters.at(name).detach().clone());
    return copies;
  }

  std::vector<std::string> scales_and_biases(const Graph& part) const {
    std::vector<std::string> names;
    const quant::Student block{part, job_.student.parameters, {}};
    for (const auto& site : quant::weight_sites(block)) names.push_back(site.op->scale_name());
    for (const auto& [name, bias] : biases_of(part, block.parameters)) names.push_back(name);
    for (const auto id : quant::activation_sites(part))
      names.push_back(quant::activation_quantizer(part[id])->scale_name());
    return names;
  }

  // From here on all that the part has stays.
  void settle(const Graph& part) {
    for (const auto& site : quant::weight_sites({part, job_.student.parameters, {}}))
      settled_.insert(site.parameter);
    for (auto& name : scales_and_biases(part)) settled_.insert(std::move(name));
  }

  const ReconstructJob& job_;
  Observer& observer_;
  quant::PairedBlocks pair_;
  const models::Model& teacher_;  // of the pair
  const std::vector<Block>& blocks_;
  at::ScalarType kept_as_;  // values at the ends of blocks
  std::int64_t batch_;
  std::optional<quant::EntryStatistics> entries_;
  std::set<std::string> settled_;  // parameters
  ReconstructReport report_;
  Stopwatch begin_;
};

}  // namespace

ReconstructReport reconstruct(const ReconstructJob& job, Observer& observer) {
  if (job.time_budget > 0 && parallel::several(job.ranks))
    throw Error(ErrorCode::usage, "several ranks cannot share blocks by the clock; set iterations");
  return Reconstruction(job, observer)();
}

}  // namespace zsq::train
