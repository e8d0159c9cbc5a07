// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/image_conv.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/image_taps_cpu.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor plain_conv(const at::Tensor& x, const at::Tensor& weight,
                      const std::optional<at::Tensor>& bias, std::int64_t stride,
                      std::int64_t padding, at::ScalarType work) {
  return at::conv2d(x.to(work), weight.to(work),
                    bias ? std::optional(bias->to(work)) : std::nullopt, stride, padding);
}

// A few images, so that their taps stay in the cache between the product and the sums.
struct Block {
  TapSizes sizes;
  std::int64_t first;  // image
};

// f(number, block) for all blocks, in parallel; their number does not depend on the threads.
template <class F>
void for_each_block(TapSizes sizes, const F& f) {
  constexpr std::int64_t kPixels = 8192;
  const std::int64_t images = std::exchange(
      sizes.images, std::max<std::int64_t>(1, kPixels / (sizes.rows * sizes.columns)));
  const std::int64_t blocks = (images + sizes.images - 1) / sizes.images;
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (std::int64_t i = begin; i < end; ++i) {
      Block block{sizes, i * sizes.images};
      block.sizes.images = std::min(sizes.images, images - block.first);
      f(i, block);
    }
  });
}

// Maps [N, C, H, W] channels_last as [pixels, C]; those of a block.
at::Tensor pixels(const at::Tensor& maps) {
  return maps.permute({0, 2, 3, 1}).reshape({-1, maps.size(1)});
}
at::Tensor pixels_of(const at::Tensor& all, const Block& block) {
  const std::int64_t image = block.sizes.rows * block.sizes.columns;
  return all.narrow(0, block.first * image, block.sizes.images * image);
}

// The image f32 [N, H, W, channels] in a block.
std::int64_t offset_of(const Block& block) {
  return block.first * block.sizes.height * block.sizes.width * block.sizes.channels;
}

// The image that the taps `matrix` [channels K K, C] x maps add up to.
at::Tensor fold_products(const at::Tensor& matrix, const at::Tensor& maps, const TapSizes& sizes,
                         const float* bias) {
  const at::Tensor all = pixels(maps);
  at::Tensor image = at::empty({sizes.images, sizes.channels, sizes.height, sizes.width},
                               maps.options().dtype(at::kFloat), at::MemoryFormat::ChannelsLast);
  float* out = image.mutable_data_ptr<float>();
  for_each_block(sizes, [&](std::int64_t, const Block& block) {
    const at::Tensor taps = at::mm(matrix, pixels_of(all, block).t());
    with_element_type(taps, [&](auto type) {
      fold_taps(elements<decltype(type)>(taps), block.sizes, bias, out + offset_of(block));
    });
  });
  return image;
}

// weight [D, C, K, K] as the taps of the maps after y, whose order is mirrored: [D K K, C].
at::Tensor output_taps(const at::Tensor& weight, at::ScalarType work) {
  return weight.flip({2, 3}).permute({0, 2, 3, 1}).reshape({-1, weight.size(1)}).to(work);
}

struct ToImage : torch::autograd::Function<ToImage> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, std::int64_t padding) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["padding"] = padding;
    return fold_products(output_taps(weight, x.scalar_type()), x, sizes_of(x, weight, padding),
                         bias.const_data_ptr<float>());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order("conv_to_image");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const TapSizes sizes = sizes_of(x, weight, ctx->saved_data["padding"].toInt());
    const at::Tensor dy = grads[0].contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor matrix = output_taps(weight, x.scalar_type()), all = pixels(x);
    const at::Tensor dx = at::empty_like(x), dx_pixels = pixels(dx);
    const float* image = dy.const_data_ptr<float>();
    std::vector<at::Tensor> dmatrix(static_cast<std::size_t>(sizes.images));
    for_each_block(sizes, [&](std::int64_t i, const Block& block) {
      const at::Tensor inputs = pixels_of(all, block);
      at::Tensor taps = at::empty({matrix.size(0), inputs.size(0)}, matrix.options());
      with_element_type(taps, [&](auto type) {
        unfold_taps(image + offset_of(block), block.sizes, mutable_elements<decltype(type)>(taps));
      });
      at::Tensor to = pixels_of(dx_pixels, block);
      at::mm_out(to, taps.t(), matrix);
      dmatrix[static_cast<std::size_t>(i)] = at::mm(taps, inputs).to(at::kFloat);
    });
    at::Tensor sum = dmatrix[0];  // in the order of the blocks, whichever was ready first
    for (std::size_t i = 1; i < dmatrix.size() && dmatrix[i].defined(); ++i) sum.add_(dmatrix[i]);
    const std::int64_t k = sizes.kernel;
    const at::Tensor dweight =
        sum.view({sizes.channels, k, k, -1}).permute({0, 3, 1, 2}).flip({2, 3});
    return {dx, dweight, dy.sum({0, 2, 3}), {}};
  }

  static TapSizes sizes_of(const at::Tensor& x, const at::Tensor& weight, std::int64_t padding) {
    const std::int64_t kernel = weight.size(2), grows = 2 * padding - kernel + 1;
    return {weight.size(0), kernel,    /*stride=*/1,      kernel - 1 - padding, x.size(0),
            x.size(2),      x.size(3), x.size(2) + grows, x.size(3) + grows};
  }
};

struct FromImage : torch::autograd::Function<FromImage> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, std::int64_t stride,
                            std::int64_t padding, at::ScalarType work) {
    ctx->save_for_backward({weight});
    ctx->saved_data["sizes"] = std::vector<std::int64_t>{stride, padding, x.size(2), x.size(3)};
    return plain_conv(x, weight, bias, stride, padding, work);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order("conv_from_image");
    const at::Tensor weight = ctx->get_saved_variables()[0];
    const auto given = ctx->saved_data["sizes"].toIntVector();
    const at::Tensor dy = grads[0].contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor matrix =
        weight.permute({1, 2, 3, 0}).reshape({-1, weight.size(0)}).to(dy.scalar_type());
    const TapSizes sizes{weight.size(1), weight.size(2), given[0], given[1], dy.size(0),
                         dy.size(2),     dy.size(3),     given[2], given[3]};
    return {fold_products(matrix, dy, sizes, nullptr), {}, {}, {}, {}, {}};
  }
};

void check_weight(const char* op, const at::Tensor& x, const at::Tensor& weight) {
  if (x.dim() != 4 || x.numel() == 0)
    fail(op, "x", describe(x), "[N, C, H, W] with at least one element");
  const std::int64_t kernel = weight.dim() == 4 ? weight.size(2) : 0;
  check_like(op, "weight", weight, x,
             {weight.dim() == 4 ? weight.size(0) : 0, x.size(1), kernel, kernel});
}

}  // namespace

at::Tensor conv_to_image(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         std::int64_t padding) {
  constexpr const char* op = "conv_to_image";
  check_activation(op, "x", x);
  check_weight(op, x, weight);
  check_like(op, "bias", bias, x, {weight.size(0)});
  if (x.is_cuda()) return plain_conv(x, weight, bias, 1, padding, x.scalar_type()).to(at::kFloat);
  return ToImage::apply(x.contiguous(at::MemoryFormat::ChannelsLast), weight, bias, padding);
}

at::Tensor conv_from_image(const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias, std::int64_t stride,
                           std::int64_t padding, at::ScalarType work) {
  constexpr const char* op = "conv_from_image";
  check_float(op, "x", x);
  check_weight(op, x, weight);
  if (weight.requires_grad() || (bias && bias->requires_grad()))
    fail(op, "weight", "a tensor that learns", "one that stays");
  if (x.is_cuda()) return plain_conv(x, weight, bias, stride, padding, work);
  return FromImage::apply(x, weight, bias, stride, padding, work);
}

}  // namespace zsq::cuda_kernels
