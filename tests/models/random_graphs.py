#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small ONNX networks of every known operator: zsq computes what onnxruntime does, or refuses by name.

  random_graphs.py COMPARE_FOLDER [--count 2000] [--seed 1] [--keep FOLDER]

COMPARE_FOLDER is the program of compare_folder.cpp. Truth is onnxruntime with its optimisations off; networks that it
refuses are drawn again, and so are those whose output changes much with the last bits of the input. A network that
comes out different is cut down while it stays so, and the smallest file is kept. Exits 1 if there is one, if a message
is libtorch's, or if more than --most_refused of all are refused.
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np
from onnx import helper

import comparing
import drawn_operators
from minimizing import minimized
from onnx_drawing import LAST_OPSET, Drawing, Refused, run

STEPS, WEIGHTS = zip(*drawn_operators.STEPS.items())
PROBABILITIES = np.array(WEIGHTS) / sum(WEIGHTS)
CHANGE = 1e-6  # of the input, relative
SENSITIVE = 2e-5  # of the output then, relative to its largest value: too much to compare
LEAST = 1e-3  # largest value of an output: below it there is nothing but rounding


def end(net, plain):
    """The network's last nodes, to [N, classes]; plain: a Flatten at most."""
    if plain:
        if len(net.shape) != 2:
            net.step(lambda n: n.add("Flatten", [n.x]), ranks=(2,))
        return
    if len(net.shape) == 4 and net.coin(.5):
        net.step(drawn_operators.global_pool)
    if len(net.shape) == 3 and net.coin(.4):
        net.step(lambda n: n.reduced("ReduceMean", [1], False))
    if len(net.shape) != 2:
        net.step(lambda n: n.add("Flatten", [n.x]), ranks=(2,))
    if len(net.shape) == 2 and net.coin(.7):
        net.step(drawn_operators.gemm if net.coin() else drawn_operators.matmul_constant, ranks=(2,))
    if net.coin(.3):
        last = net.choose(["Softmax", "Sigmoid", "LogSoftmax"])
        net.step(lambda n: n.add(last, [n.x], **({} if last == "Sigmoid" else n.some(axis=1))), ranks=(2,))


def sensitive(model, x, y, rng):
    """Whether the last bits of the input decide."""
    scale = float(np.abs(np.nan_to_num(y)).max())
    changed = run(model, (x * (1 + CHANGE * rng.standard_normal(x.shape))).astype(np.float32))
    return scale < LEAST or (np.isnan(changed) != np.isnan(y)).any() or \
        float(np.abs(np.nan_to_num(changed - y)).max()) > SENSITIVE * scale


def draw_step(net, tries=8):
    """Whether the network's values are NaN now."""
    for _ in range(tries):
        y = net.step(STEPS[net.rng.choice(len(STEPS), p=PROBABILITIES)])
        if y is not None:
            return bool(np.isnan(y).any())
    return False


def drawn(seed):
    """(model, input, output) of one network, or None where chance made nothing that can be compared."""
    rng = np.random.default_rng(seed)
    opset = int(rng.integers(7, LAST_OPSET + 1)) if rng.random() < .7 else int(rng.choice([9, 11, 13, 17, 18]))
    last = rng.random() < .12
    channels = int(rng.choice([1, 3, 4] if last else [1, 2, 3, 4, 4, 6, 8]))
    sides = [int(rng.integers(1, 9)), int(rng.integers(2, 9))] if not last else [int(v) for v in rng.integers(5, 9, 2)]
    net = Drawing(rng, opset, [2 if rng.random() < .7 else 3, channels, *sides], last, rng.random() < .15)
    if last:
        net.step(lambda n: n.add("Transpose", [n.x], perm=[0, 3, 1, 2]))
    undefined = False  # a NaN ends the network: what a maximum makes of it is nowhere said
    for _ in range(net.whole(1, 6)):
        undefined = undefined or draw_step(net)
    end(net, undefined)
    if len(net.shape) != 2 or not net.nodes:
        return None
    model = net.model(net.x, net.shape if net.coin(.6) else None)
    y = run(model, net.input)
    return None if sensitive(model, net.input, y, rng) else (model, net.input, y)


def draw(folder, count, seed):
    number = 0
    while count:
        number += 1
        try:
            case = drawn([seed, number])
        except Refused:
            case = None
        if case:
            count -= 1
            comparing.write(folder, f"g{seed}_{number:05}.onnx", case[0].SerializeToString(), case[1], case[2])


def describe(model):
    lines = [f"    opset {model.opset_import[0].version}"]
    for node in model.graph.node:
        attributes = ", ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute if a.name != "value")
        lines.append(f"    {node.op_type}({', '.join(node.input)}) {attributes} -> {', '.join(node.output)}")
    lines += [f"    {c.name}: {list(c.dims)}" for c in model.graph.initializer]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, metavar="COMPARE_FOLDER")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="folder of the smallest files that are different")
    parser.add_argument("--work", type=pathlib.Path, help="folder of all files (default: a temporary one)")
    parser.add_argument("--most_refused", type=float, default=.4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        draw(folder, options.count, options.seed)
        results = comparing.compare(options.program, folder)
        counts = comparing.print_summary(results)
        bad = [name for name, r in results.items() if r.verdict in ("different", "fault", "crash")]
        keep = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="random_graphs_"))
        for name in bad:
            keep.mkdir(parents=True, exist_ok=True)
            x = np.load((folder / name).with_suffix(".npz"))["input"]
            model, result = minimized(options.program, (folder / name).read_bytes(), x, results[name], keep / name)
            print(f"{keep / name}: {result.verdict} {result.error:.1e} {result.message}\n{describe(model)}")
    sys.exit(bool(bad) or counts["refused"] > options.most_refused * options.count)


if __name__ == "__main__":
    main()
