#!/usr/bin/env python3
"""What an H100 needs at least for each kernel of cuda_kernels/: an expectation, nothing is measured.

kernel_roofline.py [--bandwidth 3.35] [--flops 67] [--bf16]: prints, for the tensors of two networks, the bytes that a
kernel reads and writes, its arithmetic, and the larger of the two times: bytes at the bandwidth (TB/s), and arithmetic
at half the rate that is stated for fp32 (TFLOP/s), which counts a fused multiply-add as two, while the kernels are
compiled without; at a quarter for what is in double. Launches and the sums of partial sums are left out. Tensors that
fit into the last-level cache (50 MB) can be faster.
"""
import argparse
import math

# Operations per element. A division counts as what it compiles to.
DIVISION, AFFINE, CLAMP, EXPONENTIAL = 8, 2, 2, 40
ENCODE = DIVISION + 2 + CLAMP  # a code: divide, round, add the zero point, clamp
VALUE = ENCODE + 2             # and back
SLOPE = ENCODE + 4             # of the scale
RATIO = ENCODE + DIVISION + 8  # of a step to the next threshold

# Elements of one tensor, of the first stage (where activations are largest), of all weights, of the logits.
NETWORKS = {"ResNet-20, batch 200": {"activation": 200 * 16 * 32 * 32, "weight": 270_896, "logit": 200 * 10},
            "ResNet-50, batch 64": {"activation": 64 * 256 * 56 * 56, "weight": 25_502_912, "logit": 64 * 1000}}

# (kernel, kind of element, tensors read, tensors written, operations per element, in double)
KERNELS = [
    ("`bn_clip_fake_quant` forward", "activation", 1, 1, AFFINE + CLAMP + VALUE, False),
    ("`bn_clip_fake_quant` backward", "activation", 2, 1, AFFINE + CLAMP + ENCODE + 8, False),
    ("`bn_clip_fake_quant` backward, learned scale", "activation", 2, 1, AFFINE + CLAMP + ENCODE + SLOPE + 10, False),
    ("`bn_clip_moments` forward", "activation", 1, 1, AFFINE + CLAMP + 4, False),
    ("`bn_clip_moments` backward", "activation", 2, 1, AFFINE + 8, False),
    ("`bn_leaky_relu` forward, after its moments", "activation", 1, 1, AFFINE + 2, False),
    ("`bn_leaky_relu` backward, both passes", "activation", 4, 1, 2 * AFFINE + 16, False),
    ("`channel_moments` forward", "activation", 1, 0, 4, False),
    ("`channel_moments` backward", "activation", 1, 1, 3, False),
    ("`fake_quant` forward", "activation", 1, 1, VALUE, False),
    ("`fake_quant` backward", "activation", 2, 1, ENCODE, False),
    ("`scale_gradient`", "activation", 2, 1, SLOPE + 2, False),
    ("`layer_grids` of all layers", "weight", 1, 0, 2, False),
    ("`fake_quant_layers` forward", "weight", 1, 1, VALUE, False),
    ("`fake_quant_layers` backward", "weight", 2, 1, ENCODE, False),
    ("`inundate_`, plan and two counts", "weight", 5, 1, RATIO + 12, False),
    ("`inundate_`, update", "weight", 3, 2, 2 * ENCODE + 10, False),
    ("`kl_divergence`, three passes", "logit", 6, 1, 4 * EXPONENTIAL + 20, True),
]


def expected(elements, read, written, operations, double, size, bandwidth, flops):
    """(bytes, operations, microseconds) of a kernel over that many elements of `size` bytes."""
    moved, work = elements * (read + written) * size, elements * operations
    rate = flops / (4 if double else 2)
    return moved, work, max(moved / (bandwidth * 1e12), work / (rate * 1e12)) * 1e6


def shown(number):
    """Three digits with a prefix."""
    power = min(3, int(math.log10(number) // 3))
    return f"{number / 1000 ** power:.3g}{['', ' k', ' M', ' G'][power]}"


def table(bandwidth, flops, bf16):
    lines = ["| kernel | read; written | " + " | ".join(f"{name}: bytes | FLOP | µs" for name in NETWORKS) + " |",
             "| --- | --- |" + " ---: | ---: | ---: |" * len(NETWORKS)]
    for name, kind, read, written, operations, double in KERNELS:
        cells = [name, f"{read}; {written}"]
        size = 2 if bf16 and kind == "activation" else 4
        for network in NETWORKS.values():
            moved, work, time = expected(network[kind], read, written, operations, double, size, bandwidth, flops)
            cells += [shown(moved), shown(work), f"{time:.3g}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bandwidth", type=float, default=3.35, help="TB/s")
    parser.add_argument("--flops", type=float, default=67, help="TFLOP/s in fp32")
    parser.add_argument("--bf16", action="store_true", help="activations in bf16")
    args = parser.parse_args()
    print(table(args.bandwidth, args.flops, args.bf16))


if __name__ == "__main__":
    main()
