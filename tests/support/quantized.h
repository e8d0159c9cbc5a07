// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "quant/rewrites/equalize.h"
#include "quant/student.h"

namespace zsq::test {

// A student of the network as a file has it.
inline quant::Student quantized(const models::Model& network, const QuantOptions& options) {
  return quant::insert_quantizers(quant::equalize(network, options), options);
}

}  // namespace zsq::test
