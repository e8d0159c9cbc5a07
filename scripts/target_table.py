#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a finished run is in each target's file: a row for each target and runtime with top-1, the largest
difference of a logit to zsq's own evaluation of the run, the share of convolutions and linear layers that
the runtime itself says it executes in integers, and latency beside the float network in the same runtime, measured in turns
(the float network of LiteRT, which reads no ONNX, is that of onnxruntime).

  .deps/python/bin/python scripts/target_table.py resnet20.onnx out out_tensorrt out_ncnn \\
      --data cifar-10-batches-bin/test_batch.bin --images 1000

RUNs are output folders of `zsq quantize`; a target is exported from the first that can hold it (`zsq export`),
and left out with zsq's reason if none can. A difference is in codes of the last layer's input: that many of them, at
the layer's largest weight, would make it. Images are prepared as model.onnx records it, from a CIFAR-10
binary file or a folder with a folder for each class.
"""
import argparse
import collections
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy as np
import onnx
from onnx import numpy_helper

import bench_runtimes
import litert_layers
import ncnn_files

TARGETS = ("onnxruntime", "openvino", "tensorrt", "generic", "qcdq", "tflite", "ncnn")
NO_LIMIT = "1e9"  # of `zsq run --compare`, which is asked for the difference alone


def float_in_onnxruntime(_, options):
    """LiteRT reads no ONNX, and nothing writes a .tflite of the float network."""
    return bench_runtimes.OnnxRuntime(str(options.float), options.threads)


def float_in_ncnn(file, options):
    """The same layers with float weights: ncnn reads no ONNX either."""
    in_float = file.with_name("float.param")
    ncnn_files.write_in_float(file, in_float)
    return bench_runtimes.Ncnn(in_float, options.threads)


# Of targets whose files one runtime alone reads; `in_float` gives what it is compared with.
OwnRuntime = collections.namedtuple("OwnRuntime", "suffix runtime in_float")
OWN_RUNTIMES = {"tflite": OwnRuntime(".tflite", bench_runtimes.LiteRt, float_in_onnxruntime),
                "ncnn": OwnRuntime(".param", bench_runtimes.Ncnn, float_in_ncnn)}


class Zsq:
    def __init__(self, program):
        self.program = program

    def json(self, *words):
        done = subprocess.run([self.program, *map(str, words), "--format", "json", "--quiet"],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)

    def export(self, runs, target, file):
        reasons = []
        for run in runs:
            try:
                self.json("export", run, "--target", target, "-o", file)
                return run
            except RuntimeError as error:
                reasons.append(str(error).splitlines()[0])
        raise RuntimeError("; ".join(reasons))

    def largest_difference(self, run, images, logits, folder):
        path = pathlib.Path(folder) / "logits.npz"
        np.savez(path, input=images, output=logits)
        report = self.json("run", run, "--npz", path, "--compare", "--tolerance", NO_LIMIT)
        return report["relative_error"] * np.abs(logits).max()


def preprocessing_of(run):
    metadata = {entry.key: entry.value for entry in onnx.load(run / "model.onnx").metadata_props}
    return json.loads(metadata["zsq.preprocessing"])


def normalised(pixels, keys):
    low, high = keys["value_range"]
    values = low + pixels.astype(np.float64) / 255 * (high - low)
    values = (values - np.array(keys["mean"])) / np.array(keys["std"])
    return values.astype(np.float32).transpose(2, 0, 1)


def read_cifar(path, count, keys):
    records = np.fromfile(path, np.uint8).reshape(-1, 3073)[:count]
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.stack([normalised(image, keys) for image in pixels]), records[:, 0].astype(np.int64)


def fitted(image, keys):
    """As eval/preprocess.cpp does with Pillow's resizer."""
    from PIL import Image

    height, width = keys["size"]
    kernel = getattr(Image.Resampling, keys["interpolation"].upper())
    if keys["crop_order"] == "crop_then_resize":
        fraction = min(height, width) / keys["resize"] if keys.get("resize") else keys["crop_fraction"]
        scale = fraction * min(image.height / height, image.width / width)
        rows, columns = (max(1, int(side * scale + 1e-9)) for side in (height, width))
        left, top = (image.width - columns + 1) // 2, (image.height - rows + 1) // 2
        return image.crop((left, top, left + columns, top + rows)).resize((width, height), kernel)
    if keys["crop_order"] != "resize_then_crop":
        sys.exit(f"target_table: data.crop_order {keys['crop_order']} is not known here")
    short = keys.get("resize") or int(min(height, width) / keys["crop_fraction"])
    image = image.resize([side * short // min(image.size) for side in image.size], kernel)
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def read_folder(path, count, keys):
    from PIL import Image

    listed = path / "synsets.txt"
    classes = listed.read_text().split() if listed.exists() else sorted(
        p.name for p in path.iterdir() if p.is_dir())
    files = [(file, label) for label, name in enumerate(classes) if (path / name).is_dir()
             for file in sorted((path / name).iterdir())][:count]
    images = [normalised(np.asarray(fitted(Image.open(file).convert("RGB"), keys)), keys) for file, _ in files]
    return np.stack(images), np.array([label for _, label in files])


def step_of_last_layer(run):
    """What one code of the last linear layer's input is worth in a logit, at most."""
    graph = onnx.load(run / "model.onnx").graph
    arrays = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    maker = {output: node for node in graph.node for output in node.output}
    layer = [node for node in graph.node if node.op_type in ("Gemm", "Conv")][-1]
    x, weight = (maker[name] for name in layer.input[:2])
    codes, scale, zero = (arrays[name].astype(np.float64) for name in weight.input)
    steps = np.abs((codes.reshape(len(codes), -1) - zero[:, None]) * scale[:, None]).max()
    return float(arrays[x.input[1]]) * steps


def integer_share(runtime, file, folder):
    if runtime == "litert":
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        interpreter = Interpreter(
            str(file), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        interpreter.allocate_tensors()
        layers = litert_layers.in_int8(interpreter)
    elif runtime == "ncnn":
        layers = [layer.in_int8 for layer in ncnn_files.read(file) if layer.type in ncnn_files.WITH_WEIGHTS]
    elif runtime == "openvino":
        import openvino

        ran = [(str(info["layerType"].astype(str)), str(info["runtimePrecision"].astype(str)) in ("i8", "u8"))
               for info in (node.get_rt_info() for node in openvino.Core().compile_model(
                   str(file), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).get_runtime_model().get_ordered_ops())]
        layers = [integer for kind, integer in ran if kind in ("Convolution", "FullyConnected", "MatMul")]
    else:
        options = bench_runtimes.ort.SessionOptions()
        options.optimized_model_filepath = str(pathlib.Path(folder) / "optimized.onnx")
        bench_runtimes.ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        kinds = [node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node]
        layers = [kind.startswith("Q") for kind in kinds
                  if kind.removeprefix("QLinear").removeprefix("Fused") in ("Conv", "Gemm", "QGemm", "MatMul")]
    return sum(layers) / len(layers)


def rows_of(zsq, options, images, labels, folder):
    runtimes = bench_runtimes.runtimes([])
    floats = {runtime.name: runtime(str(options.float), options.threads) for runtime in runtimes}
    for name, session in floats.items():
        top1 = np.mean(np.concatenate([bench_runtimes.classes(session, images)]) == labels)
        yield ["float", name, f"{100 * top1:.2f}", "", "", "", "", ""]
    for target in options.targets:
        own = OWN_RUNTIMES.get(target)
        file = pathlib.Path(folder) / f"{target}{own.suffix if own else '.onnx'}"
        try:
            run = zsq.export(options.runs, target, file)
            if own:
                floats[own.runtime.name] = own.in_float(file, options)
        except (ImportError, RuntimeError) as error:
            print(f"target_table: without {target}: {error}", file=sys.stderr)
            continue
        for runtime in [own.runtime] if own else runtimes:
            yield [target, runtime.name, *measure(zsq, runtime, floats[runtime.name], run, file, images, labels,
                                                  options, folder)]


def measure(zsq, runtime, float_session, run, file, images, labels, options, folder):
    try:
        session = runtime(str(file), options.threads)
        logits = np.concatenate([session.run(images[i:i + 16]).copy() for i in range(0, len(images), 16)])
    except Exception as error:  # whatever a runtime throws is its answer
        return ["not loaded: " + str(error).strip().splitlines()[-1][:60], "", "", "", "", ""]
    few = slice(0, options.compared)
    difference = zsq.largest_difference(run, images[few], logits[few], folder)
    times = bench_runtimes.time_rounds([float_session, session], images[:1], options.rounds, options.seconds)
    float_ms, ms = map(min, times)
    return [f"{100 * np.mean(logits.argmax(1) == labels):.2f}",
            f"{difference / step_of_last_layer(run):.2f}",
            f"{100 * integer_share(runtime.name, file, folder):.0f}%", f"{ms:.3f}", f"{float_ms:.3f}", f"{float_ms / ms:.2f}x"]


def print_lines(head, rows):
    """Row by row: a runtime without fast kernels takes minutes for one."""
    for line in itertools.chain([head, ["---"] * len(head)], rows):
        print("| " + " | ".join(line) + " |", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("float", type=pathlib.Path, help="the float network, .onnx")
    parser.add_argument("runs", type=pathlib.Path, nargs="+", metavar="RUN")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=TARGETS)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--compared", type=int, default=100, help="images whose logits are compared with zsq's")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=0.15, help="of a round of one model")
    parser.add_argument("--zsq", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/bin/zsq"))
    return parser.parse_args()


def main():
    options = arguments()
    keys = preprocessing_of(options.runs[0])
    read = read_folder if options.data.is_dir() else read_cifar
    images, labels = read(options.data, options.images, keys)
    with tempfile.TemporaryDirectory() as folder:
        print_lines(["target", "runtime", "top-1", "codes off", "in integers", "ms", "float ms", "speedup"],
                    rows_of(Zsq(options.zsq), options, images, labels, folder))


if __name__ == "__main__":
    main()
