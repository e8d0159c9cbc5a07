// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/reconstruct_block.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/error.h"
#include "core/seed.h"
#include "quant/rounding/round_to_levels.h"

namespace zsq::train {
namespace {

// Values of the largest tensor in the graph, for so many images.
std::int64_t longest(const models::Graph& graph, const models::ParameterStore& parameters,
                     std::int64_t images) {
  std::int64_t most = 0;
  for (const auto& shape : models::infer_shapes(graph, parameters))
    most = std::max(
        most, std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
  return most * images;
}

// What soft rounding starts from. Weights with level tables lie on their levels already.
at::Tensor start_of(const quant::WeightSite& site, const models::ParameterStore& student,
                    const models::ParameterStore& teacher) {
  const at::Tensor& latent = student.at(site.parameter);
  const auto grids = quant::level_grids(*site.op, student);
  if (!grids.levels.defined()) return latent;
  const at::NoGradGuard no_grad;
  return quant::inside_cells(teacher.at(site.parameter), latent, grids);
}

}  // namespace

NamedTensors biases_of(const models::Graph& graph, const models::ParameterStore& parameters) {
  NamedTensors biases;
  std::set<std::string> seen;
  for (const auto& node : graph.nodes)
    for (const auto& [role, name] : node.params)
      if ((role == "beta" || role == "bias") && seen.insert(name).second)
        biases.emplace_back(name, parameters.at(name));
  return biases;
}

at::Tensor mean_squared_error(const at::Tensor& value, const at::Tensor& target) {
  return at::mse_loss(value.to(at::kFloat), target.to(at::kFloat));
}

BlockReconstruction::BlockReconstruction(quant::Student& student, const models::Graph& part,
                                         const models::ParameterStore& teacher,
                                         const std::set<std::string>& settled,
                                         const ReconstructOptions& options, std::int64_t batch,
                                         std::uint64_t seed, Precision precision,
                                         parallel::Communicator& ranks)
    : student_(student),
      options_(options),
      ranks_(ranks),
      rows_(parallel::rows_of(ranks, batch)),
      precision_(precision),
      chances_(std::make_shared<Chances>(
          options.qdrop_probability, longest(part, student.parameters, batch),
          stream_seed(seed, "drop", 0), student.parameters.device(), rows_.first)),
      graph_(drop_quantizers(part, chances_)),
      draws_(at::detail::createCPUGenerator(stream_seed(seed, "draws", 0))) {
  const quant::Student block{part, student.parameters, student.options};
  NamedTensors logits;
  std::map<std::string, std::pair<const quant::WeightQuantizer*, models::Custom>> seen;
  for (const auto& site : quant::weight_sites(block)) {
    if (settled.contains(site.parameter)) continue;
    auto& [op, rounding] = seen[site.parameter];
    if (!op) {
      const auto soft = std::make_shared<quant::SoftRounding>(
          *site.op, start_of(site, student.parameters, teacher), student.parameters);
      roundings_.emplace_back(site.parameter, soft);
      logits.emplace_back(site.parameter, soft->logits());
      op = site.op;
      rounding.op = soft;
    }
    if (op == site.op) graph_[site.quantizer].op = rounding;  // else at other bits: follows
  }
  adam_.emplace(logits, 0.9, 0.999);
  auto biases = options.bias_lr > 0 ? biases_of(part, student.parameters) : NamedTensors();
  std::erase_if(biases, [&](const auto& bias) { return settled.contains(bias.first); });
  auto scales = learnable_scales(block, LearnableScales::all);
  std::erase_if(scales, [&](const std::string& name) { return settled.contains(name); });
  biases_.emplace(biases, 0.9, 0.999);
  biases_near_.emplace(biases_->parameters());
  for (const auto& bias : biases_->parameters()) bias.requires_grad_(true);
  scales_.emplace(student.parameters, scales);
}

BlockReconstruction::~BlockReconstruction() {
  for (const auto& bias : biases_->parameters()) bias.requires_grad_(false);
}

at::Tensor BlockReconstruction::loss(const BlockValues& values, double share, double error_scale) {
  const auto drawn = at::randint(values.float_input.size(0), {rows_.total}, draws_, at::kLong);
  const auto device = student_.parameters.device();
  const auto on_host = rows_.of(drawn), on_device = on_host.to(device);
  const auto pick = [&](const at::Tensor& t) {  // what lies in a file is on the host
    return t.index_select(0, t.is_cpu() ? on_host : on_device).to(device).to(at::kFloat);
  };
  const auto quantized = pick(values.student_input);
  const auto input = at::where(chances_->like(quantized), pick(values.float_input), quantized)
                         .contiguous(at::MemoryFormat::ChannelsLast);
  const auto output = models::execute(graph_, student_.parameters, input, nullptr, precision_);
  auto error = mean_squared_error(output, pick(values.float_output)).div(error_scale);
  if (share < options_.warmup || roundings_.empty()) return error;
  const double late = (share - options_.warmup) / (1 - options_.warmup);
  const double sharpness = std::lerp(options_.beta_start, options_.beta_end, std::min(1.0, late));
  std::int64_t weights = 0;
  at::Tensor undecided;
  for (const auto& [name, soft] : roundings_) {
    const auto n = soft->logits().numel();
    const auto term = soft->rounding_regularizer(sharpness).mul(static_cast<double>(n));
    undecided = undecided.defined() ? undecided.add(term) : term;
    weights += n;
  }
  return error.add(undecided, options_.regularizer_weight / static_cast<double>(weights));
}

double BlockReconstruction::step(const BlockValues& values, double share, double advance,
                                 double error_scale) {
  auto loss_now = loss(values, share, error_scale);
  if (!rows_.whole()) loss_now = loss_now.mul(rows_.share());
  const auto &scales = scales_->scales(), &biases = biases_->parameters();
  auto variables = adam_->parameters();
  const auto n = std::ssize(variables);
  variables.insert(variables.end(), scales.begin(), scales.end());
  variables.insert(variables.end(), biases.begin(), biases.end());
  auto gradients = torch::autograd::grad({loss_now}, variables);
  gradients.push_back(loss_now.detach());
  gradients = parallel::summed(ranks_, std::move(gradients));
  const double value = gradients.back().item<double>();
  gradients.pop_back();
  if (!std::isfinite(value))
    throw Error(ErrorCode::numeric_failure,
                "the error of a block is no longer finite; lower reconstruct.rounding_lr or "
                "reconstruct.scale_lr");
  const auto of_scales = gradients.begin() + n, of_biases = of_scales + std::ssize(scales);
  if (n > 0) adam_->step({gradients.begin(), of_scales}, options_.rounding_lr * advance);
  step_scales({of_scales, of_biases}, {of_biases, gradients.end()}, share, advance);
  return value;
}

// A run that starts them late has fewer steps for them, which are longer.
void BlockReconstruction::step_scales(const std::vector<at::Tensor>& of_scales,
                                      const std::vector<at::Tensor>& of_biases, double share,
                                      double advance) {
  const double left = 1 - options_.scale_start, begun = (share - options_.scale_start) / left;
  if (begun < 0) return;
  const double pace = advance / left * (1 + std::cos(std::numbers::pi * std::min(1.0, begun))) / 2;
  scales_->step(of_scales, options_.scale_lr * pace, options_.scale_lr);
  if (of_biases.empty()) return;
  biases_->step(of_biases, options_.bias_lr * pace);
  biases_near_->hold(options_.bias_lr);
}

void BlockReconstruction::decide() {
  const at::NoGradGuard no_grad;
  for (const auto& [parameter, soft] : roundings_)
    student_.parameters.set(parameter, soft->decided(student_.parameters).detach());
}

}  // namespace zsq::train
