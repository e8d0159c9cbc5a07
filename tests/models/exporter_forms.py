#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forms of operators (operator_forms.py) through PyTorch's exporters (exporters.py) into zsq; truth is PyTorch's.

  exporter_forms.py COMPARE_FOLDER [--forms NAME...] [--exporters legacy dynamo trace pt2] [--keep FOLDER]
  exporter_forms.py COMPARE_FOLDER --quick     some forms, each through one exporter, all of which have to be equal

Prints how many of each exporter are equal, refused and different, and every file that is not equal. Exits 1 if one is
different or if a message is libtorch's; 77: there is no PyTorch.
"""
import argparse
import collections
import pathlib
import sys
import tempfile

try:
    from with_torch import torch
except ImportError:
    sys.exit(77)

import onnx

import comparing
from exporters import EXPORTERS, SUFFIXES, export
from onnx_drawing import Refused, run
from operator_forms import FORMS, SIDE, network


QUICK = """max_pool_ceil gem avg_pool_divisor_pads prelu gelu_tanh_in_parts se_index eca cbam_space global_context blur_pool
channels_last_norm mixer up_bilinear up_to_other pixel_shuffle deconv_output conv_same group_norm layer_scale
stack_sum gem_parameter softplus threshold_value l2_normalize masked_fill index_channels kernel_merged weight_norm
class_token einsum_attention where_of_two fused_with_softmax""".split()


def write_all(folder, forms, kinds, quick=False):
    """What exporters refuse, by file. quick: one exporter of `kinds` for each form, in turn."""
    refused, every = {}, kinds
    for i, name in enumerate(forms):
        kinds = [every[i % len(every)]] if quick else every
        net, x = network(name), torch.randn(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(7))
        with torch.no_grad():
            y = net(x).numpy()
        for kind in kinds:
            path = folder / f"{name}{SUFFIXES[kind]}"
            why = export(kind, network(name), x, path)
            if why:
                refused[path.name] = why
            else:
                comparing.write(folder, path.name, None, x.numpy(), y)
                if path.suffix == ".onnx" and loses(path, x.numpy(), y):
                    refused[path.name] = "the file computes something else in onnxruntime too"
                    path.unlink()
    return refused


def loses(path, x, y):
    """Whether the exporter dropped something: onnxruntime is the judge."""
    try:
        other = run(onnx.load(path), x)
    except Refused:
        return False
    return bool(abs(other - y).max() > 1e-3 * abs(y).max())


def print_table(results, refused, kinds):
    verdicts = ["equal", "refused", "different", "fault", "crash"]
    print(f"{'exporter':10}" + "".join(f"{v:>11}" for v in verdicts) + f"{'not exported':>14}")
    for kind in kinds:
        counts = collections.Counter(r.verdict for name, r in results.items() if name.endswith(SUFFIXES[kind]))
        none = sum(name.endswith(SUFFIXES[kind]) for name in refused)
        print(f"{kind:10}" + "".join(f"{counts[v]:11}" for v in verdicts) + f"{none:14}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, metavar="COMPARE_FOLDER")
    parser.add_argument("--forms", nargs="+", default=list(FORMS))
    parser.add_argument("--exporters", nargs="+", default=list(EXPORTERS), choices=list(EXPORTERS))
    parser.add_argument("--keep", type=pathlib.Path, help="folder of the files (default: a temporary one)")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    forms = QUICK if options.quick else options.forms
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        refused = write_all(folder, forms, options.exporters, options.quick)
        results = comparing.compare(options.program, folder)
    print_table(results, refused, options.exporters)
    for name, result in results.items():
        if result.verdict != "equal":
            print(f"  {result.verdict} {name}: {result.message[:170] or result.error}")
    for name, why in refused.items():
        print(f"  not exported {name}: {why}")
    counts = collections.Counter(result.verdict for result in results.values())
    wrong = counts["different"] + counts["fault"] + counts["crash"]
    sys.exit(bool(wrong or (options.quick and len(forms) > counts["equal"] + len(refused))))


if __name__ == "__main__":
    main()
