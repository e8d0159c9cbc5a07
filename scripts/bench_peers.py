#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other post-training quantizers make of a classifier, beside zsq: top-1 in a runtime at its defaults, seconds and
peak memory of quantizing, and how many real images that took. The table of README.md, "Other tools".

  .deps/python/bin/python scripts/bench_peers.py efficientnet_lite0.onnx imagenet/val --preset efficientnet_lite0

Every third photograph of DATA (a folder with a folder for each class), --calibration of them at most, calibrates the tools
that need images; all rows are measured on the others. Each tool runs in a process of its own with two threads; pinned
packages that .deps lacks are installed into a temporary folder first. Takes 20 minutes on two cores; --rows picks some.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy as np
import onnx

import bench_runtimes
import target_table

NNCF = """nncf==3.4.0 networkx==3.6.1 openvino-telemetry==2025.2.0 psutil==7.2.2 pydot==4.0.1 pyparsing==3.3.3 rich==15.0.0
markdown-it-py==4.3.0 mdurl==0.1.2 Pygments==2.21.0 scikit-learn==1.9.1 scipy==1.17.1 joblib==1.6.0 threadpoolctl==3.8.0
tabulate==0.10.0 natsort==8.4.0 ninja==1.13.2""".split()
GPTQ = "instant+gptq+tables"


class Images:
    """What onnxruntime's calibration reads."""

    def __init__(self, name, images):
        self.batches = iter([{name: image[None]} for image in images])

    def get_next(self):
        return next(self.batches, None)


def with_onnxruntime(source, target, images, weights="QInt8", activations="QUInt8", method="MinMax"):
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = f"{target}.prepared.onnx"
    if "4" in weights:  # integers of 4 bits came with opset 21
        newer = f"{target}.opset21.onnx"
        onnx.save(onnx.version_converter.convert_version(onnx.load(source), 21), newer)
        source = newer
    quant_pre_process(str(source), prepared, skip_symbolic_shape=True)
    name = onnx.load(prepared).graph.input[0].name
    quantization.quantize_static(
        prepared, str(target), Images(name, images), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
        weight_type=getattr(quantization.QuantType, weights), activation_type=getattr(quantization.QuantType, activations),
        calibrate_method=getattr(quantization.CalibrationMethod, method))


def with_nncf(source, target, images, runtime):
    import nncf
    import openvino
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, QuantizationParameters

    if runtime == "openvino":
        model = openvino.convert_model(str(source))
        name = 0
    else:
        model = onnx.load(source)
        name = model.graph.input[0].name
    per_tensor = AdvancedQuantizationParameters(activations_quantization_params=QuantizationParameters(per_channel=False))
    found = nncf.quantize(model, nncf.Dataset([image[None] for image in images], lambda x: {name: x}),
                          subset_size=len(images), advanced_parameters=None if runtime == "openvino" else per_tensor)
    if runtime == "openvino":
        openvino.save_model(found, str(target))
    else:
        onnx.save(found, str(target))


# name: (bits, runtime, images needed, function or zsq's recipe, arguments)
ROWS = {
    "onnxruntime quantize_static, MinMax": ("W8A8", "onnxruntime", True, with_onnxruntime, {}),
    "onnxruntime quantize_static, percentile": ("W8A8", "onnxruntime", True, with_onnxruntime, {"method": "Percentile"}),
    "NNCF": ("W8A8", "openvino", True, with_nncf, {"runtime": "openvino"}),
    "NNCF, activations per tensor": ("W8A8", "onnxruntime", True, with_nncf, {"runtime": "onnxruntime"}),
    "zsq instant": ("W8A8", "onnxruntime", False, "instant", {}),
    "zsq instant, for OpenVINO": ("W8A8", "openvino", False, "instant", {}),
    "onnxruntime quantize_static, int4 weights": ("W4A8", "onnxruntime", True, with_onnxruntime, {"weights": "QInt4"}),
    f"zsq {GPTQ}": ("W4A8", "onnxruntime", False, GPTQ, {}),
    "onnxruntime quantize_static, int4": ("W4A4", "onnxruntime", True, with_onnxruntime,
                                          {"weights": "QInt4", "activations": "QUInt4"}),
    f"zsq {GPTQ}+channel_correction": ("W4A4", "onnxruntime", False, GPTQ + "+channel_correction", {}),
}


def run_measured(command, environment):
    """(seconds, peak memory in GiB, error) of a process."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    process.returncode = os.waitstatus_to_exitcode(status)
    error = (lines or ["no message"])[-1][:150] if process.returncode else None
    return time.perf_counter() - begin, usage.ru_maxrss / 2**20, error


def top1(runtime, file, images, labels):
    session = {"onnxruntime": bench_runtimes.OnnxRuntime, "openvino": bench_runtimes.OpenVino}[runtime](str(file), 2)
    return 100 * np.mean([session.run(image[None])[0].argmax() == label for image, label in zip(images, labels)])


def instructions():
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return next((name for flag, name in (("amx_int8", "AMX"), ("avx512_vnni", "AVX-512 VNNI"), ("avx_vnni", "AVX VNNI"),
                                         ("avx2", "AVX2 without VNNI")) if flag in flags), "no AVX2")


def worker(name, source, target, images):
    _, _, _, function, arguments = ROWS[name]
    function(source, target, list(np.load(images)), **arguments)


def commands_of(name, options, folder):
    """(the commands that make the file, in order; the file)"""
    bits, runtime, _, how, _ = ROWS[name]
    if callable(how):
        target = folder / ("peer.xml" if runtime == "openvino" else "peer.onnx")
        return [sys.executable, __file__, str(options.model), "-", "--worker", name, str(target),
                str(folder / "calibration.npy")], target
    out = folder / f"{list(ROWS).index(name)}"
    return [options.zsq, "quantize", str(options.model), "--recipe", how, "--scheme", bits, "--preset", options.preset, "--quiet",
            "--set", f"quantize.target={runtime}", "-o", str(out)], out / "model.onnx"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--preset", default="torchvision")
    parser.add_argument("--calibration", type=int, default=100)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--zsq", default="build/bin/zsq")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)  # row, target, calibration images
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker[0], options.model, *options.worker[1:])
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        environment = dict(os.environ, OMP_NUM_THREADS="2")
        if any(row.startswith("NNCF") for row in options.rows):
            subprocess.run([os.environ.get("PYTHON", "python3"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                            "--only-binary", ":all:", "--target", str(folder / "packages"), *NNCF], check=True)
            environment["PYTHONPATH"] = str(folder / "packages")
        plain = folder / "preset"
        subprocess.run([options.zsq, "quantize", str(options.model), "--recipe", "instant", "--preset", options.preset, "--quiet",
                        "--scheme", "W8A8", "--set", "process.agreement_images=0", "-o", str(plain)], check=True)
        images, labels = target_table.read_folder(options.data, None, target_table.preprocessing_of(plain))
        third = np.arange(len(images)) % 3 == 0
        chosen = images[third][:options.calibration]
        images, labels = images[~third], labels[~third]
        np.save(folder / "calibration.npy", chosen)
        print(f"{options.model.name}, {len(images)} photographs, {len(chosen)} others for calibration; {bench_runtimes.processor()}, {instructions()}")
        print(f"{'tool':46} {'bits':5} {'images':>6} {'runtime':12} {'top-1':>6} {'seconds':>8} {'GiB':>5}")
        for runtime in dict.fromkeys(ROWS[row][1] for row in options.rows):
            print(f"{'float':46} {'':5} {'':6} {runtime:12} {top1(runtime, options.model, images, labels):6.2f}", flush=True)
        for row in options.rows:
            bits, runtime, needs, _, _ = ROWS[row]
            command, target = commands_of(row, options, folder)
            seconds, memory, error = run_measured(command, environment)
            if not error:
                try:
                    found = f"{top1(runtime, target, images, labels):6.2f}"
                except Exception as raised:  # whatever the runtime throws
                    error = str(raised).splitlines()[0][:150]
            print(f"{row:46} {bits:5} {len(chosen) if needs else 0:6} {runtime:12} "
                  + (error or f"{found} {seconds:8.0f} {memory:5.1f}"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
