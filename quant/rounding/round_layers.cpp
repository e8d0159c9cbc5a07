// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/round_layers.h"

#include <ATen/core/grad_mode.h>

#include <set>

#include "core/error.h"
#include "core/seed.h"
#include "core/stopwatch.h"
#include "quant/calibration/bias_correction.h"
#include "quant/level_table.h"
#include "quant/paired_blocks.h"

namespace zsq::quant {
namespace {

constexpr std::int64_t kPositions = 1024;  // of each image of a layer, at most

using models::Block;
using models::Graph;
using models::NodeId;
class RoundingWalk {
 public:
  RoundingWalk(const RoundingJob& job, Observer& observer)
      : job_(job),
        observer_(observer),
        pair_(job.teacher, job.student),
        teacher_(pair_.teacher()),
        sites_(weight_sites(job.student)),
        known_(infer_layer_inputs(job.student, teacher_)),
        values_(pair_, job.student,
                job.images.narrow(0, 0, pair_.affordable(job.images.size(0), job.memory, observer)),
                job.batch_size, pair_.type_of_values(job.images.size(0))) {}

  void run() {
    const auto& blocks = pair_.blocks();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const bool done = i < job_.blocks_done;
      for_each_layer(blocks[i], [&](std::size_t site, NodeId layer) {
        if (done)
          rounded_.insert(sites_[site].parameter);
        else
          round(blocks[i], site, layer);
      });
      if (!done && job_.on_block_done) job_.on_block_done(i + 1);
      if (i + 1 < blocks.size()) values_.hand_on(blocks[i]);
    }
  }

  void visit(const std::function<void(std::size_t, const InputMoments&)>& visit) {
    for (const Block& block : pair_.blocks()) {
      for_each_layer(block, [&](std::size_t site, NodeId layer) {
        stop_if_asked(site);
        visit(site, input_moments(block, site, layer, /*alone=*/true));
      });
      values_.hand_on_float(block);
    }
  }

 private:
  // f(index into sites_, node of the teacher)
  template <class F>
  void for_each_layer(const Block& block, const F& f) const {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const NodeId layer = teacher_.graph.id_of(job_.student.graph[sites_[i].layer].name);
      if (layer > block.entry && layer <= block.exit) f(i, layer);
    }
  }

  // `alone`: nothing before it is quantized.
  InputMoments input_moments(const Block& block, std::size_t index, NodeId layer,
                             bool alone = false) const {
    const WeightSite& site = sites_[index];
    const auto& node = job_.student.graph[site.layer];
    const Graph before = pair_.teachers_part(block.entry, teacher_.graph[layer].inputs[0]);
    const Graph students = pair_.students_part(block.entry, node.inputs[0]);
    InputMomentsSum sum(node, teacher_.parameters.at(site.parameter), kPositions,
                        stream_seed(job_.seed, "hessian", static_cast<std::uint64_t>(layer)));
    for (std::size_t i = 0; i < values_.of_float().size(); ++i) {
      const auto x = run_part(before, teacher_.parameters, values_.of_float()[i]);
      sum.add(x, alone ? x : run_part(students, job_.student.parameters, values_.of_student()[i]));
    }
    const auto known = channel_means(node, known_[index].variance);
    return with_variance(sum.moments(), known.to(at::kDouble));
  }

  void stop_if_asked(std::size_t index) const {
    if (observer_.stop_requested())
      throw Error(ErrorCode::stopped, "stopped while weights were rounded, at layer " +
                                          std::to_string(index + 1) + " of " +
                                          std::to_string(sites_.size()));
  }

  void round(const Block& block, std::size_t index, NodeId layer) {
    stop_if_asked(index);
    const WeightSite& site = sites_[index];
    if (rounded_.insert(site.parameter).second)
      round_site(job_.student, teacher_, site, input_moments(block, index, layer), job_.method);
    if (job_.student.options.bias_correction == BiasCorrection::bn_statistics)
      correct_bias(job_.student, teacher_, site, known_[index]);
    observer_.on_progress({"rounding",
                           static_cast<std::int64_t>(index) + 1,
                           std::ssize(sites_),
                           begin_.seconds(),
                           {}});
  }

  const RoundingJob& job_;
  Observer& observer_;
  PairedBlocks pair_;
  const models::Model& teacher_;  // of the pair
  std::vector<WeightSite> sites_;
  std::vector<LayerInput> known_;  // of what the layers read
  PairedValues values_;
  std::set<std::string> rounded_;  // parameters
  Stopwatch begin_;
};

}  // namespace

void round_layers(const RoundingJob& job, Observer& observer) {
  const at::NoGradGuard no_grad;
  RoundingWalk(job, observer).run();
}

void visit_input_moments(const RoundingJob& job, Observer& observer,
                         const std::function<void(std::size_t, const InputMoments&)>& visit) {
  const at::NoGradGuard no_grad;
  RoundingWalk(job, observer).visit(visit);
}

void round_site(Student& student, const models::Model& teacher, const WeightSite& site,
                const InputMoments& moments, const RoundingMethod& method) {
  auto& parameters = student.parameters;
  const auto rounded =
      method.round_layer(teacher.parameters.at(site.parameter), moments,
                         site.op->grid(parameters.at(site.parameter), parameters), site.op->spec(),
                         student.options.gptq, level_grids(*site.op, parameters).levels);
  parameters.set(site.parameter, rounded.latent);
  parameters.set(site.op->scale_name(), rounded.scale);
}

}  // namespace zsq::quant
