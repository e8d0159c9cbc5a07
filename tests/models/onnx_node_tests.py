#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx's own backend node tests through zsq: equal, refused or different, of the operators that it reads.

  onnx_node_tests.py COMPARE_FOLDER ZSQ [--keep FOLDER] [--only WORD]

A node test has one node, inputs and outputs. The first floating input becomes the image batch [N, C, H, W]: as it is if
it has four dimensions, else through a Reshape that keeps the first dimension; other inputs become initializers. The
first output is flattened to [N, all]. Files whose operator mixes images, or knows their number, have a fixed batch and
".fixed" in their names. Not applicable are tests without such an input, whose output has no batch or is not of
floats, and those that onnxruntime does not take in this form. Truth is the expected output of onnx's test, with onnxruntime's digits, for some
tests have four of them. Each test runs at its own opset and at every older version of its operator where onnxruntime gives that same output.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper

import comparing
from onnx_drawing import IR_OF, LAST_OPSET, Refused, run


class NotApplicable(Exception):
    pass


def known_operators(zsq):
    lists = json.loads(subprocess.run([zsq, "inspect", "--list_operators", "--format", "json"], check=True,
                                      capture_output=True, text=True).stdout)
    return set(lists["onnx"]), set(lists["onnx_constants"])


def versions(operator, own):
    """Its own opset, and the newest opset of each older version."""
    since = sorted({s.since_version for s in defs.get_all_schemas_with_history() if s.name == operator and not s.domain})
    older = [later - 1 for _, later in zip(since, since[1:]) if 7 <= later - 1 < own]
    return [own, *older]


def as_image(shape):
    """Of the same batch, four dimensions."""
    if len(shape) == 4:
        return list(shape)
    if len(shape) < 2:
        raise NotApplicable("fewer than two dimensions")
    rest = list(shape[1:]) + [1, 1]
    return [shape[0], *rest[:2], int(np.prod(rest[2:]))]


def arrays_of(case):
    """The node, its inputs by name and its first output, if all of them are arrays of the right kind."""
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    node = onnx.NodeProto()
    node.CopyFrom(graph.node[0])
    node.name = "tested"
    if len(graph.node) != 1 or node.domain:
        raise NotApplicable("not one node")
    if isinstance(outputs[0], list) or any(isinstance(array, list) for array in inputs):
        raise NotApplicable("sequences")
    arrays = {value.name: np.asarray(array) for value, array in zip(graph.input, inputs) if value.name in node.input}
    if not all(array.dtype.kind in "fiub" for array in arrays.values()):
        raise NotApplicable("an input of another kind")
    y = np.asarray(outputs[0])
    if y.dtype != np.float32:
        raise NotApplicable("the output is not of floats")
    return node, arrays, y


def wrapped(case, opset, fixed):
    """(model, input, output) as a network from images to [N, all]."""
    node, arrays, y = arrays_of(case)
    name = next((n for n in node.input if n in arrays and arrays[n].dtype == np.float32 and arrays[n].ndim > 1), None)
    if name is None:
        raise NotApplicable("no input of floats with two dimensions or more")
    x = arrays[name]
    if y.ndim < 2 or y.shape[0] != x.shape[0] or 0 in x.shape or 0 in y.shape:
        raise NotApplicable("the output has no batch")
    alike = [n for n, a in arrays.items() if a.dtype == np.float32 and a.shape == x.shape]
    images = np.concatenate([arrays[n] for n in alike], 1)
    shape, nodes, source = as_image(images.shape), [], "images"
    constants = [numpy_helper.from_array(a, n) for n, a in arrays.items() if n not in alike]
    if images.ndim != 4:
        constants.append(numpy_helper.from_array(np.array([0, *images.shape[1:]], np.int64), "in_shape"))
        nodes.append(helper.make_node("Reshape", [source, "in_shape"], ["reshaped"]))
        source = "reshaped"
    if len(alike) == 1:
        node.input[:] = [source if n == alike[0] else n for n in node.input]
    else:
        count = {"num_outputs": len(alike)} if opset >= 18 else {}
        nodes.append(helper.make_node("Split", [source], alike, axis=1, **count))
    nodes.append(node)
    last = node.output[0]
    if y.ndim != 2:
        nodes.append(helper.make_node("Flatten", [last], ["flat"], axis=1))
        last = "flat"
    made = helper.make_graph(
        nodes, case.name, [helper.make_tensor_value_info("images", TensorProto.FLOAT, [shape[0] if fixed else "N", *shape[1:]])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)], constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_OF[opset])
    return model, images.reshape(shape), y.reshape(len(y), -1)


def same(a, b, tolerance=1e-3):
    return a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance * 1e-1, equal_nan=True)


def mixes(model, x, y):
    """Whether an image's output depends on the others."""
    try:
        other = np.full_like(x[:1], .25)
        together = run(model, np.concatenate([x[:1], other]))
        return not same(together, np.concatenate([y[:1], run(model, other)]))
    except (Refused, ValueError):
        return True


def written_at(case, opset, folder):
    """The name of the file: with the batch open where that computes the same, else of the test's own batch."""
    model, x, y = wrapped(case, opset, False)
    open_too = same(run(model, x), y)
    if open_too and mixes(model, x, y):
        model, x, y = wrapped(case, opset, True)
        open_too = False
    computed = run(model, x)
    if not same(computed, y):
        raise NotApplicable("onnxruntime gives another output")
    name = f"{case.name}.{opset}{'' if open_too else '.fixed'}.onnx"
    comparing.write(folder, name, model.SerializeToString(), x, computed)
    return name


def prepared(case, folder):
    """Names of the files that were written, and why the test's own version is not among them."""
    own = min(LAST_OPSET, next(o.version for o in case.model.opset_import if not o.domain))
    written, why = [], None
    for opset in versions(case.model.graph.node[0].op_type, own):
        try:
            written.append(written_at(case, opset, folder))
        except (Refused, NotApplicable) as error:
            if opset == own:
                why = "onnxruntime refuses" if isinstance(error, Refused) else str(error)
                if isinstance(error, NotApplicable):
                    break
    return written, why


def collected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        return collect_testcases(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, metavar="COMPARE_FOLDER")
    parser.add_argument("zsq", metavar="ZSQ")
    parser.add_argument("--keep", type=pathlib.Path, help="folder of the files (default: a temporary one)")
    parser.add_argument("--only", default="", help="of tests whose names hold this")
    options = parser.parse_args()
    known, on_constants = known_operators(options.zsq)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        reasons, tests, unknown = collections.Counter(), 0, collections.Counter()
        for case in collected():
            if options.only not in case.name or case.name.endswith("_expanded") or "_expanded_ver" in case.name:
                continue
            kind = case.model.graph.node[0].op_type
            if kind not in known:
                unknown["on constants only" if kind in on_constants else "not read"] += 1
                continue
            written, why = prepared(case, folder)
            tests += bool(written)
            if not written:
                reasons[why] += 1
        print(f"{tests} tests, not applicable: {dict(reasons)}, operators: {dict(unknown)}")
        results = comparing.compare(options.program, folder)
        for name, result in results.items():  # the batch's statistics are asked for, the running ones are used
            if "_training_mode" in name and "training mode" in result.message:
                result.verdict = "otherwise"
        counts = comparing.print_summary(results)
        print(f"computed otherwise, with a warning: {sum(r.verdict == 'otherwise' for r in results.values())}")
    sys.exit(bool(counts["different"] + counts["fault"] + counts["crash"]))


if __name__ == "__main__":
    main()
