# SPDX-License-Identifier: Apache-2.0
"""Cuts a network of ONNX down while the program's verdict on it stays the same."""
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

import comparing
from onnx_drawing import Refused, pruned, run, session_of, with_output


def copied(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def tails(model, x):
    """Networks that begin at a later tensor, which gets the values that it has here."""
    every = copied(model)
    names = [name for node in model.graph.node for name in node.output]
    del every.graph.output[:]
    every.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    try:
        session = session_of(every)
        kept = [o.name for o in session.get_outputs()]
        values = dict(zip(kept, session.run(None, {"input": x})))
    except Exception:  # some outputs are not floats, or sequences: they cannot all be had at once
        return
    for name in reversed(names):
        value = values.get(name)
        if not isinstance(value, np.ndarray) or value.dtype != np.float32 or value.ndim != 4 or len(value) != len(x):
            continue
        tail = copied(model)
        tail.graph.input[0].CopyFrom(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *value.shape[1:]]))
        for node in tail.graph.node:
            node.output[:] = [f"old_{o}" if o == name else o for o in node.output]
        tail = pruned(tail)
        if not any("input" in node.input for node in tail.graph.node):
            yield tail, value


def bypassed(model):
    for i, node in enumerate(model.graph.node):
        if not node.input:
            continue
        for source in node.input:
            smaller = copied(model)
            del smaller.graph.node[i]
            for other in smaller.graph.node:
                other.input[:] = [source if name == node.output[0] else name for name in other.input]
            if model.graph.output[0].name != node.output[0]:
                yield pruned(smaller)


def without_attributes(model):
    for i, node in enumerate(model.graph.node):
        for j, _ in enumerate(node.attribute):
            smaller = copied(model)
            del smaller.graph.node[i].attribute[j]
            yield smaller


def heads(model):
    for node in model.graph.node[:-1]:
        yield with_output(model, node.output[0])


def candidates(model, x):
    """From the smallest on."""
    for smaller in heads(model):
        yield smaller, x
    yield from tails(model, x)
    for smaller in [*bypassed(model), *without_attributes(model)]:
        yield smaller, x


def first_alike(program, model, x, verdict):
    """The first candidate with the same verdict, with its input and result."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, written = pathlib.Path(temporary), {}
        for i, (smaller, inputs) in enumerate(candidates(model, x)):
            if len(smaller.graph.node) > len(model.graph.node) or not smaller.graph.node:
                continue
            try:
                y = run(smaller, inputs)
            except Refused:
                continue
            if y.dtype == np.float32 and np.isfinite(y).all():
                name = f"c{i:05}.onnx"
                comparing.write(folder, name, smaller.SerializeToString(), inputs, y)
                written[name] = smaller, inputs
        results = comparing.compare(program, folder) if written else {}
        alike = [name for name in sorted(results) if results[name].verdict == verdict]
        return (*written[alike[0]], results[alike[0]]) if alike else None


def minimized(program, content, x, result, path, rounds=12):
    """(model, result) of the smallest, which is written to `path` with its truth beside it."""
    model = onnx.load_from_string(content)
    seen = 0
    while seen < rounds and (found := first_alike(program, model, x, result.verdict)):
        smaller, x, result = found
        if smaller.SerializeToString() == model.SerializeToString():
            break
        model, seen = smaller, seen + 1
    comparing.write(path.parent, path.name, model.SerializeToString(), x, run(model, x))
    return model, result
