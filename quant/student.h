// SPDX-License-Identifier: Apache-2.0
// A student is a Graph like the teacher's, with quantizers as nodes, and parameters of its own.
//   weights:      Parameter -> WeightQuantizer -> Conv2d.inputs[1]
//   activations:  x -> ActivationQuantizer -> consumers
// A quantizer's scale and zero point are parameters scale_name() and zero_point_name() (f32, [] per
// tensor or [C] per channel) of the student's store. After an operator that passes values on
// unchanged (MaxPool, Flatten, ...) a runtime wants the same grid again: that quantizer shares the
// names of the one before it and changes nothing. Layers that share a weight, at the same bits,
// share its quantizer. ONNX semantics:
//   q = clamp(round_half_even(x / scale) + zero_point, qmin, qmax),   x^ = (q - zero_point) * scale
#pragma once
#include "cuda_kernels/fake_quant.h"
#include "cuda_kernels/weight_range.h"
#include "models/graph.h"
#include "quant/number_format.h"
#include "quant/options.h"

namespace zsq::quant {

// Weights: qmin = -2^(b-1), qmax = 2^(b-1) - 1, but symmetric ones of 8 bits -127 to 127, so that
// the codes of a channel with their signs changed fit into int8 too. Activations: qmin = 0, qmax =
// 2^b - 1; symmetric ones qmin = -2^(b-1), qmax = 2^(b-1) - 1.
struct QuantizerSpec {
  std::int64_t num_bits = 8, qmin = 0, qmax = 255;
  bool symmetric = false;
  cuda_kernels::Surrogate surrogate = cuda_kernels::Surrogate::clipped;
  NumberFormat format = NumberFormat::uniform;
  // Weights: what |c1| + |c2| of two neighbouring codes of one sign may be (quant/pair_bound.h);
  // 0: anything.
  std::int64_t pair_bound = 0;
};
QuantizerSpec weight_spec(std::int64_t num_bits, bool symmetric, Mode mode);
QuantizerSpec level_table_spec(std::int64_t num_bits, Mode mode);
QuantizerSpec activation_spec(std::int64_t num_bits, Mode mode, bool symmetric = false);

class Quantizer : public models::CustomOp {
 public:
  Quantizer(std::string name, QuantizerSpec spec) : name_(std::move(name)), spec_(spec) {}
  const QuantizerSpec& spec() const { return spec_; }
  const std::string& name() const { return name_; }
  std::string scale_name() const { return name_ + ".scale"; }
  std::string zero_point_name() const { return name_ + ".zero_point"; }
  std::string levels_name() const { return name_ + ".levels"; }  // of weights with level tables

 protected:
  std::string name_;
  QuantizerSpec spec_;
};

// Passes x through unchanged until its scale is in the store (before calibration).
class ActivationQuantizer : public Quantizer {
 public:
  using Quantizer::Quantizer;
  std::string kind() const override { return "activation_quantizer"; }
  at::Tensor forward(const std::vector<at::Tensor>&, const models::ParameterStore&) const override;
};

// With range_every_step the grid comes from the weight itself (min/max) at each call and the stored
// scale is ignored; refresh_weight_grids() writes it to the store.
class WeightQuantizer : public Quantizer {
 public:
  WeightQuantizer(std::string name, QuantizerSpec spec, bool per_channel, bool range_every_step)
      : Quantizer(std::move(name), spec),
        per_channel_(per_channel),
        every_step_(range_every_step) {}
  std::string kind() const override { return "weight_quantizer"; }
  bool per_channel() const { return per_channel_; }
  bool range_every_step() const { return every_step_; }
  // The grid that forward() uses for this weight.
  cuda_kernels::Grid grid(const at::Tensor& weight, const models::ParameterStore& parameters) const;
  at::Tensor forward(const std::vector<at::Tensor>&, const models::ParameterStore&) const override;

 private:
  bool per_channel_, every_step_;
};

struct Student {
  models::Graph graph;
  models::ParameterStore parameters;
  QuantOptions options;
};

// The rewrite Graph -> Graph plus weight grids, then options.weights.rounding and
// options.bias_correction on the parameters; activation scales come from calibrate(). `model` is a
// float network after quant::equalize(), which whoever compares the student with it has as well.
// Placement by options.mode and options.target; Error(unsupported_model) names an operator that
// cannot be placed.
Student insert_quantizers(models::Model model, const QuantOptions& options);

// The same function, faster: BatchNorm -> [Add ->] [Clip ->] ActivationQuantizer chains without
// another consumer become one Custom node ("bn_clip_fake_quant") with the quantizer's name, and
// quantizers that repeat the grid before them go. For execution only; parameters stay where they
// are.
models::Graph fuse_activations(const models::Graph& student);

// A weight quantizer, the Parameter it acts on and the layer it feeds.
struct WeightSite {
  models::NodeId quantizer, layer;
  std::string parameter;  // name of the latent weight
  const WeightQuantizer* op;
};
std::vector<WeightSite> weight_sites(const Student& student);
std::vector<models::NodeId> activation_sites(const models::Graph& graph);
// The node's quantizer; null if it is something else.
const ActivationQuantizer* activation_quantizer(const models::Node& node);

// Recomputes "<node>.scale/.zero_point" of weight quantizers that take their range every step.
void refresh_weight_grids(Student& student);

// The tensors that stay float at inference, in words ("network input", "sum without ReLU", ...),
// and by name the operators that have no integer form ("norm1 (LayerNorm)").
std::vector<std::string> float_tensors(const Student& student);

}  // namespace zsq::quant
