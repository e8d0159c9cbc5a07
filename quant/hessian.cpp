// SPDX-License-Identifier: Apache-2.0
#include "quant/hessian.h"

#include <ATen/core/grad_mode.h>

#include <set>

#include "core/error.h"
#include "core/seed.h"
#include "core/stopwatch.h"
#include "quant/bias_correction.h"
#include "quant/hessian_layer.h"
#include "quant/paired_blocks.h"

namespace zsq::quant {
namespace {

using models::Block;
using models::Graph;
using models::NodeId;
class Walk {
 public:
  Walk(const HessianJob& job, Observer& observer)
      : job_(job),
        observer_(observer),
        pair_(job.teacher, job.student),
        teacher_(pair_.teacher()),
        sites_(weight_sites(job.student)),
        known_(layer_input_moments(job.student, teacher_)) {}

  void run() {
    const auto images = pair_.affordable(job_.images.size(0), job_.memory, observer_);
    for (const auto& batch : job_.images.narrow(0, 0, images).split(job_.batch_size)) {
      float_values_.push_back(batch);
      values_.push_back(batch);
    }
    for (const Block& block : pair_.blocks()) {
      for (std::size_t i = 0; i < sites_.size(); ++i) {
        const NodeId layer = teacher_.graph.id_of(job_.student.graph[sites_[i].layer].name);
        if (layer > block.entry && layer <= block.exit) round(block, i, layer);
      }
      const Graph part = pair_.teachers_part(block.entry, block.exit);
      const Graph students =
          fuse_activations(pair_.students_part(block.entry, pair_.students_node(block.exit)));
      for (auto& values : float_values_) values = run_part(part, teacher_.parameters, values);
      for (auto& values : values_) values = run_part(students, job_.student.parameters, values);
    }
  }

 private:
  // One value a channel; of a tensor without a map each value is one.
  static at::Tensor channel_variance(const Moments& moments) {
    const auto& v = moments.variance;
    return (v.dim() == 4 ? v.mean({0, 2, 3}) : v.flatten()).to(at::kDouble);
  }

  InputMoments input_moments(const Block& block, const WeightSite& site, NodeId layer) const {
    const auto& node = job_.student.graph[site.layer];
    const Graph before = pair_.teachers_part(block.entry, teacher_.graph[layer].inputs[0]);
    const Graph students = pair_.students_part(block.entry, node.inputs[0]);
    InputMomentsSum sum(node, teacher_.parameters.at(site.parameter),
                        job_.student.options.hessian.positions,
                        stream_seed(job_.seed, "hessian", static_cast<std::uint64_t>(layer)));
    for (std::size_t i = 0; i < values_.size(); ++i)
      sum.add(run_part(before, teacher_.parameters, float_values_[i]),
              run_part(students, job_.student.parameters, values_[i]));
    return sum.moments();
  }

  void round(const Block& block, std::size_t index, NodeId layer) {
    if (observer_.stop_requested())
      throw Error(ErrorCode::stopped, "stopped while weights were rounded; nothing is kept");
    const WeightSite& site = sites_[index];
    auto& parameters = job_.student.parameters;
    if (rounded_.insert(site.parameter).second) {  // layers may share their weights
      const auto moments =
          with_variance(input_moments(block, site, layer), channel_variance(known_[index]));
      const auto grid = site.op->grid(parameters.at(site.parameter), parameters);
      const auto rounded =
          round_layer_by_hessian(teacher_.parameters.at(site.parameter), moments, grid,
                                 site.op->spec(), job_.student.options.hessian);
      parameters.set(site.parameter, rounded.latent);
      parameters.set(site.op->scale_name(), rounded.scale);
    }
    correct_bias(job_.student, teacher_, site, known_[index].mean);
    observer_.on_progress({"rounding",
                           static_cast<std::int64_t>(index) + 1,
                           std::ssize(sites_),
                           begin_.seconds(),
                           {}});
  }

  const HessianJob& job_;
  Observer& observer_;
  PairedBlocks pair_;
  const models::Model& teacher_;  // of the pair
  std::vector<WeightSite> sites_;
  std::vector<Moments> known_;                     // of what the layers read
  std::set<std::string> rounded_;                  // parameters
  std::vector<at::Tensor> float_values_, values_;  // at the start of a block, in batches
  Stopwatch begin_;
};

}  // namespace

void round_weights_by_hessian(const HessianJob& job, Observer& observer) {
  const at::NoGradGuard no_grad;
  Walk(job, observer).run();
}

}  // namespace zsq::quant
