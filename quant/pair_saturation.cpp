// SPDX-License-Identifier: Apache-2.0
#include "quant/pair_saturation.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cuda_kernels/cpu_loops.h"
#include "quant/pair_bound.h"

namespace zsq::quant {
namespace {

using models::NodeId;

// Two neighbours of one output channel that can saturate: rows of the unfolded input, and codes.
struct Neighbours {
  std::int64_t first, second;
  float first_code, second_code;
};

// What is lost when two products are cut off, added for `n` positions.
ZSQ_VECTORIZED void add_lost(const float* first, const float* second, const Neighbours& pair,
                             std::int64_t n, float* lost) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = first[i] * pair.first_code + second[i] * pair.second_code;
    const float cut = sum > 32767.0f ? 32767.0f : sum < -32768.0f ? -32768.0f : sum;
    lost[i] += cut - sum;
  }
}

// inputs: the layer's result, its input. Gives the result plus what saturation changes.
class PairSaturation : public models::CustomOp {
 public:
  PairSaturation(const ActivationQuantizer& input, const models::Conv2d* conv,
                 const at::Tensor& codes, at::Tensor scale)
      : input_(input.scale_name()),
        zero_point_(input.zero_point_name()),
        scale_(std::move(scale)),
        kernel_{1, 1} {
    if (conv) conv_ = *conv;
    if (codes.dim() == 4) kernel_ = {codes.size(2), codes.size(3)};
    const at::Tensor pairs = to_pairs(codes.cpu().to(at::kFloat));
    const std::int64_t channels = pairs.size(0), count = pairs.size(2);
    const std::int64_t inputs = codes.size(1), groups = conv ? conv->groups : 1;
    const std::int64_t positions = kernel_[0] * kernel_[1];
    const std::int64_t largest = input.spec().qmax;
    const auto code = pairs.accessor<float, 3>();
    pairs_.resize(static_cast<std::size_t>(channels));
    for (std::int64_t c = 0; c < channels; ++c) {
      // Code k of a row is channel k % inputs at kernel position k / inputs; im2col has channels
      // outermost.
      const std::int64_t group = c / (channels / groups);
      const auto row = [&](std::int64_t k) {
        return (group * inputs + k % inputs) * positions + k / inputs;
      };
      for (std::int64_t j = 0; j < count; ++j) {
        const float a = code[c][0][j], b = code[c][1][j];
        if (a * b > 0 && (std::abs(a) + std::abs(b)) * static_cast<float>(largest) > 32767)
          pairs_[static_cast<std::size_t>(c)].push_back({row(2 * j), row(2 * j + 1), a, b});
      }
    }
  }

  std::string kind() const override { return "pair_saturation"; }

  std::int64_t channels() const {
    return std::count_if(pairs_.begin(), pairs_.end(), [](const auto& p) { return !p.empty(); });
  }

  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore& parameters) const override {
    const at::Tensor& y = inputs[0];
    const at::Tensor &step = parameters.at(input_), &zero = parameters.at(zero_point_);
    const at::Tensor codes = ((inputs[1] / step).round() + zero).cpu().contiguous();
    const auto zero_code = zero.item<float>();
    const bool map = codes.dim() == 4;
    // Linear layers: rows of features.
    const at::Tensor rows = map ? codes : codes.flatten(0, -2).unsqueeze(0).transpose(1, 2);
    at::Tensor lost = at::zeros(
        map ? y.sizes().vec()
            : std::vector<std::int64_t>{1, static_cast<std::int64_t>(pairs_.size()), rows.size(2)});
    for (std::int64_t n = 0; n < rows.size(0); ++n)
      lose(map ? unfolded(rows[n], zero_code) : rows[n].contiguous(), lost[n]);
    if (!map) lost = lost[0].t().reshape(y.sizes());
    std::vector<std::int64_t> shape(static_cast<std::size_t>(y.dim()), 1);
    shape[map ? 1 : y.dim() - 1] = -1;
    const at::Tensor scale =
        scale_.dim() ? scale_.to(y.device()).view(shape) : scale_.to(y.device());
    return y + lost.to(y.device()) * scale * step;
  }

 private:
  // [C, H, W] -> [C kh kw, positions]; pads hold the code of 0.
  at::Tensor unfolded(const at::Tensor& image, float zero_code) const {
    const auto& [top, left, bottom, right] = conv_.pads;
    const at::Tensor padded =
        at::constant_pad_nd(image.unsqueeze(0), {left, right, top, bottom}, zero_code);
    return at::im2col(padded, kernel_, conv_.dilation, {0, 0}, conv_.stride)[0].contiguous();
  }

  // rows [K, L]; lost [channels, ...] of L values each.
  void lose(const at::Tensor& rows, const at::Tensor& lost) const {
    const std::int64_t n = rows.size(1);
    const float* x = rows.const_data_ptr<float>();
    float* out = lost.mutable_data_ptr<float>();
    at::parallel_for(0, std::ssize(pairs_), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c)
        for (const Neighbours& pair : pairs_[static_cast<std::size_t>(c)])
          add_lost(x + pair.first * n, x + pair.second * n, pair, n, out + c * n);
    });
  }

  std::string input_, zero_point_;
  at::Tensor scale_;
  models::Conv2d conv_;
  models::Pair kernel_;
  std::vector<std::vector<Neighbours>> pairs_;  // by output channel
};

// Null if the layer cannot saturate.
std::shared_ptr<PairSaturation> saturation_of(const models::Graph& graph,
                                              const models::ParameterStore& parameters,
                                              const Int8Scales& scales, const models::Node& layer) {
  const auto* conv = models::get_if<models::Conv2d>(layer);
  const auto weight_name = layer.params.find("weight");
  if ((!conv && !models::is<models::Linear>(layer)) || weight_name == layer.params.end())
    return nullptr;
  const auto scale = scales.find(weight_name->second);
  const ActivationQuantizer* input = activation_quantizer(graph[layer.inputs[0]]);
  if (!input || input->spec().qmin < 0 || scale == scales.end()) return nullptr;
  const at::Tensor weight = parameters.at(weight_name->second).cpu();
  if (conv && conv->groups == weight.size(0) && weight.size(1) == 1) return nullptr;
  const at::Tensor step = scale->second.cpu();
  const at::Tensor codes = (weight / along_rows(step, weight.dim())).round();
  auto op = std::make_shared<PairSaturation>(*input, conv, codes,
                                             step.numel() > 1 ? step : step.reshape({}));
  return op->channels() > 0 ? op : nullptr;
}

}  // namespace

SaturatingNetwork with_pair_saturation(const models::Graph& graph,
                                       const models::ParameterStore& parameters,
                                       const Int8Scales& scales) {
  SaturatingNetwork result;
  result.graph.input_shape = graph.input_shape;
  result.graph.signature = graph.signature;
  std::vector<NodeId> ids;
  for (models::Node node : graph.nodes) {
    const auto op = saturation_of(graph, parameters, scales, node);
    for (NodeId& input : node.inputs) input = ids[static_cast<std::size_t>(input)];
    const NodeId input = node.inputs.empty() ? -1 : node.inputs[0];
    const std::string name = node.name;
    ids.push_back(result.graph.add(std::move(node)));
    if (!op) continue;
    ++result.layers;
    result.channels += op->channels();
    ids.back() = result.graph.add({name + ".saturated", models::Custom{op}, {ids.back(), input}});
  }
  result.graph.input = ids[static_cast<std::size_t>(graph.input)];
  result.graph.output = ids[static_cast<std::size_t>(graph.output)];
  return result;
}

}  // namespace zsq::quant
