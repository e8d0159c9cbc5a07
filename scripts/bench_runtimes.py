#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a float network beside quantized ones in the runtimes that ship them, in turns.

Each MODEL is an .onnx file or an output folder of `zsq quantize`. All models of a batch size run one
after the other, round by round, so that what else the machine does meets all of them; a round of a
model lasts --seconds. Agreement is the share of images on which a model names the same class as the
float network in the same runtime.

  .deps/python/bin/python scripts/bench_runtimes.py float.onnx out_w8a8 out_w4a4 --static --threads 2

--record writes latency.json into each output folder, which `zsq report` then shows.
--static adds onnxruntime's own quantize_static file (QDQ, int8 weights per channel without zero points,
uint8 activations) as a baseline, calibrated on the first 16 of --images. Without --images, normal noise
serves for all of it, and agreement then says little.
"""
import argparse
import contextlib
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy as np
import onnx
import onnxruntime as ort

CALIBRATION_IMAGES = 16
ort.set_default_logger_severity(3)


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, path, threads):
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.input = self.session.get_inputs()[0].name

    def run(self, images):
        return self.session.run(None, {self.input: images})[0]


class OpenVino:
    name = "openvino"

    def __init__(self, path, threads):
        import openvino

        # Where the CPU has bfloat16, "float" would mean that.
        options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                   "INFERENCE_PRECISION_HINT": "f32"}
        self.request = openvino.Core().compile_model(path, "CPU", options).create_infer_request()

    def run(self, images):
        return next(iter(self.request.infer(images, share_inputs=True).values()))


class LiteRt:
    """Files of `zsq export --target tflite`: channels last."""
    name = "litert"

    def __init__(self, path, threads):
        from ai_edge_litert.interpreter import Interpreter

        self.interpreter = Interpreter(path, num_threads=threads)
        self.input, self.output = (details()[0]["index"] for details in (
            self.interpreter.get_input_details, self.interpreter.get_output_details))
        self.shape = None

    def run(self, images):
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        if images.shape != self.shape:
            self.shape = images.shape
            self.interpreter.resize_tensor_input(self.input, images.shape)
            self.interpreter.allocate_tensors()
        self.interpreter.set_tensor(self.input, images)
        self.interpreter.invoke()
        return self.interpreter.get_tensor(self.output)


class Ncnn:
    """Runs the .param file that `zsq export --target ncnn` writes, image by image."""
    name = "ncnn"

    def __init__(self, path, threads, **options):
        import ncnn

        self.ncnn, self.net = ncnn, ncnn.Net()
        self.net.opt.num_threads = threads
        # Where the CPU has half precision, "float" would mean that.
        for option in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage", "bf16_packed"):
            setattr(self.net.opt, "use_" + option, False)
        for option, value in options.items():
            setattr(self.net.opt, option, value)
        weights = pathlib.Path(path).with_suffix(".bin")
        if self.net.load_param(str(path)) or self.net.load_model(str(weights)):
            raise RuntimeError(f"ncnn cannot load {path} and {weights}")

    def run(self, images):
        return np.stack([self.logits(image) for image in images])

    def logits(self, image):
        extractor = self.net.create_extractor()
        # A copy of ncnn's own: its layers that work in place crash on memory of numpy's.
        extractor.input("input", self.ncnn.Mat(np.ascontiguousarray(image)).clone())
        status, result = extractor.extract("logits")
        if status:
            raise RuntimeError(f"ncnn says {status}")
        return np.array(result)


def runtimes(wanted):
    """Those that are installed; one that is asked for by name must be."""
    found = []
    for runtime, module in ((OnnxRuntime, "onnxruntime"), (OpenVino, "openvino")):
        if wanted and runtime.name not in wanted:
            continue
        try:
            __import__(module)
            found.append(runtime)
        except ImportError as error:
            if wanted:
                sys.exit(f"bench_runtimes: {error}; run scripts/install_deps.sh")
            print(f"bench_runtimes: without {runtime.name}: {error}", file=sys.stderr)
    return found


def load_images(path, shape, least):
    """f32 [N, *shape] with N >= least: as given, repeated where there are fewer; or noise."""
    if not path:
        return np.random.default_rng(0).standard_normal([max(least, 64), *shape], dtype=np.float32)
    stored = np.load(path)
    if hasattr(stored, "files"):
        stored = stored["images" if "images" in stored.files else stored.files[0]]
    if list(stored.shape[1:]) != list(shape):
        sys.exit(f"bench_runtimes: {path} holds {list(stored.shape)}, the network takes [N, {shape}]")
    return np.ascontiguousarray(stored, dtype=np.float32)


def first(images, count):
    return np.concatenate([images] * -(-count // len(images)))[:count]


def quantize_static(source, target, images):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType
    from onnxruntime.quantization import quantize_static as quantize
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self, name):
            self.batches = iter([{name: image[None]} for image in images])

        def get_next(self):
            return next(self.batches, None)

    prepared = str(target) + ".prepared.onnx"
    quant_pre_process(str(source), prepared, skip_symbolic_shape=True)
    name = onnx.load(prepared).graph.input[0].name
    quantize(prepared, str(target), Reader(name), quant_format=QuantFormat.QDQ, per_channel=True,
             weight_type=QuantType.QInt8, activation_type=QuantType.QUInt8)


def time_rounds(sessions, images, rounds, seconds):
    """ms an image, a list for each session; about `seconds` a round and session."""
    times, repeats = [[] for _ in sessions], []
    for session in sessions:
        session.run(images)
        begin = time.perf_counter()
        session.run(images)
        repeats.append(max(1, round(seconds / (time.perf_counter() - begin))))
    for _ in range(rounds):
        for spent, session, repeat in zip(times, sessions, repeats):
            begin = time.perf_counter()
            for _ in range(repeat):
                session.run(images)
            spent.append((time.perf_counter() - begin) / repeat / len(images) * 1e3)
    return times


def classes(session, images):
    return np.concatenate([session.run(images[i:i + 16]).argmax(1) for i in range(0, len(images), 16)])


def measure(runtime, models, images, options):
    sessions = [runtime(str(path), options.threads) for _, path in models]
    named = [classes(session, images) for session in sessions]
    rows = [{"runtime": runtime.name, "model": name, "path": str(path), "latency": [],
             "agreement": float(np.mean(answers == named[0]))}
            for (name, path), answers in zip(models, named)]
    for batch in options.batch:
        times = time_rounds(sessions, first(images, batch), options.rounds, options.seconds)
        for row, spent in zip(rows, times):
            least = min(spent)
            row["latency"].append({"batch": batch, "min_ms": least, "median_ms": statistics.median(spent),
                                   "images_per_second": 1e3 / least, "speedup": min(times[0]) / least})
    return rows


def table(rows):
    """Columns as wide as what is in them; numbers to the right."""
    batches = [timed["batch"] for timed in rows[0]["latency"]]
    head = ["runtime", "model"]
    for batch in batches:
        head += [f"b{batch} min ms", "median", "images/s", "speedup"]
    lines = [head + ["agreement"]]
    for row in rows:
        cells = [row["runtime"], row["model"]]
        for t in row["latency"]:
            cells += [f"{t['min_ms']:.3f}", f"{t['median_ms']:.3f}", f"{t['images_per_second']:.0f}",
                      f"{t['speedup']:.2f}x"]
        lines.append(cells + [f"{100 * row['agreement']:.1f}%"])
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) if c < 2 else cell.rjust(w)
                               for c, (cell, w) in enumerate(zip(line, widths))).rstrip()
                     for line in lines)


def processor():
    names = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return names[0] if names else platform.processor()


def latency_record(path, rows, options):
    """What latency.json holds of the model at `path`; the first one of each runtime is the float network."""
    timed = []
    for runtime in dict.fromkeys(row["runtime"] for row in rows):
        own = [row for row in rows if row["runtime"] == runtime]
        found = next(row for row in own if row["path"] == str(path))
        timed += [{"runtime": runtime, "batch": now["batch"], "float_ms": full["min_ms"], "ms": now["min_ms"]}
                  for full, now in zip(own[0]["latency"], found["latency"])]
    return {"machine": processor(), "threads": options.threads, "rounds": options.rounds, "rows": timed}


def record(folders, rows, options):
    for folder in folders:
        half = folder / "latency.json.tmp"
        half.write_text(json.dumps(latency_record(folder / "model.onnx", rows, options), indent=1) + "\n")
        half.replace(folder / "latency.json")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("float", type=pathlib.Path, help="float network, .onnx")
    parser.add_argument("models", type=pathlib.Path, nargs="*", help=".onnx files or output folders")
    parser.add_argument("--static", action="store_true", help="also onnxruntime's own static quantization")
    parser.add_argument("--images", help=".npy or .npz, f32 [N, C, H, W], preprocessed")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=0.15, help="of a round of one model")
    parser.add_argument("--runtime", nargs="+", choices=[OnnxRuntime.name, OpenVino.name], default=[])
    parser.add_argument("--record", action="store_true", help="latency.json in each output folder")
    parser.add_argument("--format", choices=["human", "json"], default="human")
    return parser.parse_args()


def main():
    options = arguments()
    models = [("float", options.float)]
    for path in options.models:
        models.append((path.name if path.is_dir() else path.stem,
                       path / "model.onnx" if path.is_dir() else path))
    for _, path in models:
        if not path.is_file():
            sys.exit(f"bench_runtimes: {path} is no file; expected .onnx files or folders with model.onnx")
    dims = onnx.load(str(options.float)).graph.input[0].type.tensor_type.shape.dim
    shape = [dim.dim_value for dim in dims][1:]
    if len(shape) != 3 or not all(shape):
        sys.exit(f"bench_runtimes: the network takes {shape}, expected fixed [channels, height, width]")
    images = load_images(options.images, shape, max(options.batch))
    with tempfile.TemporaryDirectory() as folder:
        if options.static:
            own = pathlib.Path(folder) / "static.onnx"
            with contextlib.redirect_stdout(sys.stderr):
                quantize_static(options.float, own, first(images, CALIBRATION_IMAGES))
            models.insert(1, ("quantize_static", own))
        rows = [row for runtime in runtimes(options.runtime) for row in measure(runtime, models, images, options)]
    if options.record:
        record([path for path in options.models if path.is_dir()], rows, options)
    if options.format == "json":
        json.dump({"threads": options.threads, "rounds": options.rounds, "images": options.images or "noise",
                   "models": rows}, sys.stdout, indent=1)
        print()
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
