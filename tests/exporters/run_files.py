# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX files in onnxruntime as a user would.

usage: run_files.py result.npz images.npz model.onnx...
images.npz: `images` f32 [N, C, H, W], which a file with channels last gets as [N, H, W, C].
result.npz: the output of each file under its place in the list. Prints a line for each: names of
input and output, and the operators that onnxruntime really runs.
"""
import os
import sys
import tempfile

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy as np
import onnx
import onnxruntime as ort


def run(path, images):
    onnx.checker.check_model(path, full_check=True)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = os.path.join(folder, "optimized.onnx")
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        operators = [n.op_type for n in onnx.load(options.optimized_model_filepath).graph.node]
    given, result = session.get_inputs()[0], session.get_outputs()[0]
    if list(given.shape[1:]) != list(images.shape[1:]):
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    output = session.run([result.name], {given.name: images})[0]
    assert list(output.shape[1:]) == list(result.shape[1:]), (output.shape, result.shape)
    print(given.name, result.name, *operators)
    return output


def main(result_path, images_path, *models):
    images = np.load(images_path)["images"]
    np.savez(result_path, **{str(i): run(model, images) for i, model in enumerate(models)})


if __name__ == "__main__":
    main(*sys.argv[1:])
