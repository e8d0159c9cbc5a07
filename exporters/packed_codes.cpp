// SPDX-License-Identifier: Apache-2.0
#include "exporters/packed_codes.h"

#include <ATen/ops/searchsorted.h>

#include "models/load.h"
#include "quant/fold_batch_norm.h"
#include "quant/level_table.h"

namespace zsq::exporters {

std::optional<PackedCodes> pack_codes(const at::Tensor& codes, const at::Tensor& levels) {
  const at::Tensor rows = codes.flatten(1).contiguous();
  const at::Tensor ranks =
      at::searchsorted(levels.contiguous(), rows).clamp_max(levels.size(1) - 1);
  if (!levels.gather(1, ranks).equal(rows)) return std::nullopt;
  // A level that no code has may lie outside.
  const auto tables = quant::distinct_levels(levels.clamp(-128, 127));
  const at::Tensor offsets = quant::per_channel(tables.index.mul(levels.size(1)), codes);
  const at::Tensor bytes = ranks.to(at::kByte).contiguous();
  const bool small = offsets.max().item<std::int64_t>() < 256;
  return PackedCodes{
      formats::pack_u4(codes.sizes().vec(), {bytes.const_data_ptr<std::uint8_t>(),
                                             static_cast<std::size_t>(bytes.numel())}),
      models::to_array(offsets.to(small ? at::kByte : at::kUInt16)),
      models::to_array(tables.levels.to(at::kChar).flatten())};
}

}  // namespace zsq::exporters
