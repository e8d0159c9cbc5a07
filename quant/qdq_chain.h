// SPDX-License-Identifier: Apache-2.0
// Lets models::load read exported files: a QuantizeLinear -> [clamp] -> DequantizeLinear chain
// becomes an ActivationQuantizer whose scale and zero point are in the model's ParameterStore.
#pragma once
#include "models/load.h"

namespace zsq::quant {

models::QuantizeChainFactory quantize_chain_factory();

}  // namespace zsq::quant
