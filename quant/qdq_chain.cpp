// SPDX-License-Identifier: Apache-2.0
#include "quant/qdq_chain.h"

#include <ATen/ops/scalar_tensor.h>

#include <bit>

#include "quant/student.h"

namespace zsq::quant {

models::QuantizeChainFactory quantize_chain_factory() {
  return [](const std::string& node_name, const models::QuantizeChain& chain,
            models::ParameterStore& parameters) -> std::shared_ptr<const models::CustomOp> {
    QuantizerSpec spec;
    spec.num_bits = std::bit_width(static_cast<std::uint64_t>(chain.qmax - chain.qmin));
    spec.qmin = chain.qmin;
    spec.qmax = chain.qmax;
    auto op = std::make_shared<ActivationQuantizer>(node_name, spec);
    const auto value = [](double v) { return at::scalar_tensor(v, at::kFloat); };
    parameters.set(op->scale_name(), value(chain.scale));
    parameters.set(op->zero_point_name(), value(static_cast<double>(chain.zero_point)));
    return op;
  };
}

}  // namespace zsq::quant
