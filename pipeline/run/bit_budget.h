// SPDX-License-Identifier: Apache-2.0
// The budgets that bits of layers are chosen under (recipe keys mixed.*).
#pragma once
#include <memory>

#include "pipeline/results.h"
#include "quant/bit_allocation/sensitivity.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// Costs are whole numbers, of bytes, of bit operations, or of a decimal fraction of a table's unit.
class BitBudget {
 public:
  virtual ~BitBudget() = default;

  std::int64_t limit() const { return limit_; }
  // Of all layers.
  virtual std::int64_t cost(const quant::Student& student) const = 0;
  // What of this depends on one layer.
  virtual std::int64_t cost(const quant::LayerSensitivity& layer, std::int64_t weight_bits,
                            std::int64_t input_bits) const = 0;
  // Whether inputs get bits of their own, too.
  virtual bool chooses_inputs() const = 0;
  virtual std::string words(std::int64_t amount) const = 0;
  // What the report says of a choice that costs `used`.
  virtual MixedResult result(std::int64_t used) const = 0;

 protected:
  std::int64_t limit_ = 0;
};

// The one that the recipe gives:
//   target_size  bytes of parameters as report.json counts them (exporters::parameter_bytes);
//                per cent: of FP32
//   target_bops  sum over layers of MACs x weight bits x input bits; per cent: of all layers at 8
//                bits. A layer whose input stays float counts 32 bits for it.
//   target_cost  sum over all layers of mixed.cost_table's cost at the layer's weight bits; per
//                cent: of all layers that may change at mixed.max_bits. Costs count with 15 digits
//                of the largest possible sum.
// Error(usage) names the smallest budget if the given one cannot be met; Error(bad_input) what is
// wrong with the table (pipeline/run/cost_table.h). Keeps references to both arguments.
std::unique_ptr<BitBudget> bit_budget(const models::Model& teacher, const Recipe& recipe);

// The student with these bits in every layer that may change (0: as the recipe has them). Only bits
// matter here, so the quickest rules serve.
quant::Student student_of_bits(const models::Model& teacher, const Recipe& recipe,
                               std::int64_t weight_bits, std::int64_t input_bits);

}  // namespace zsq::pipeline
