# SPDX-License-Identifier: Apache-2.0
"""Runs one exported file in one runtime, for `zsq check`, which carries this text inside.

usage: run_exported.py JOB. The file JOB is JSON with the key "result", the file to write:
  {"result"}: which runtimes this Python has
  {"result", "runtime", "file", "layout", "images", "outputs", "threads"}: feeds the images one at a
      time and stores what the file gives. "exact_outputs" (onnxruntime): the same once more with
      8-bit products that cannot saturate. "seconds": times the file on the first image, in turns
      with the file "float" (of the layout "float_layout") if that is given.
"""
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import sys
import time

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

# Name: package of the version, module.
RUNTIMES = {"onnxruntime": ("onnxruntime", "onnxruntime"), "openvino": ("openvino", "openvino"),
            "litert": ("ai-edge-litert", "ai_edge_litert"), "tflite": ("tflite-runtime", "tflite_runtime"),
            "ncnn": ("ncnn", "ncnn")}
ROUNDS = 8


def installed():
    found = {}
    if importlib.util.find_spec("numpy") is None:  # every runtime takes arrays of it
        return found
    for name, (package, module) in RUNTIMES.items():
        if importlib.util.find_spec(module) is None:
            continue
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # under another name, as onnxruntime-gpu
            found[name] = str(getattr(importlib.import_module(module), "__version__", ""))
    return found


def onnxruntime(path, threads, exact=False):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda image: session.run(None, {name: image})


def openvino(path, threads):
    import openvino

    request = openvino.Core().compile_model(
        path, "CPU", {"INFERENCE_NUM_THREADS": threads}).create_infer_request()
    return lambda image: list(request.infer(image).values())


def litert(path, threads):
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        from tflite_runtime.interpreter import Interpreter

    interpreter = Interpreter(path, num_threads=threads)
    interpreter.allocate_tensors()
    source, result = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def run(image):
        interpreter.set_tensor(source, image)
        interpreter.invoke()
        return [interpreter.get_tensor(result)]

    return run


def ncnn(path, threads):
    import ncnn
    import numpy as np

    net = ncnn.Net()
    net.opt.num_threads = threads
    if net.load_param(path) or net.load_model(path[:-len(".param")] + ".bin"):
        raise RuntimeError("ncnn cannot load " + path)

    def run(image):
        extractor = net.create_extractor()
        # A copy of ncnn's own: its layers that work in place crash on memory of numpy's.
        extractor.input("input", ncnn.Mat(np.ascontiguousarray(image[0])).clone())
        status, result = extractor.extract("logits")
        if status:
            raise RuntimeError(f"ncnn says {status}")
        return [np.array(result)]

    return run


OPEN = {"onnxruntime": onnxruntime, "openvino": openvino, "litert": litert, "tflite": litert, "ncnn": ncnn}


def in_layout(image, layout):
    """Of one image [1, C, H, W], whose height is 1 if it is a signal, what a file of that layout takes."""
    import numpy as np

    if layout == "nhwc":
        return np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    return {"nchw": image, "ncl": image[:, :, 0], "chw": image[0]}[layout]


def outputs(run, images, path):
    import numpy as np

    rows = [np.concatenate([np.array(one, dtype=np.float32).ravel() for one in run(image)]) for image in images]
    np.save(path, np.stack(rows))


def in_turns(runs, seconds):
    """Median ms of each; a round of a run lasts seconds / ROUNDS, so that no thread of another still spins."""
    times = [[] for _ in runs]
    for run in runs:
        run()
    for _ in range(ROUNDS):
        for run, spent in zip(runs, times):
            run()
            end = time.perf_counter() + seconds / ROUNDS
            while True:
                begin = time.perf_counter()
                run()
                now = time.perf_counter()
                spent.append((now - begin) * 1e3)
                if now > end:
                    break
    return [statistics.median(spent) for spent in times]


def run_job(job):
    import numpy as np

    stored = np.load(job["images"])
    images = [in_layout(stored[i:i + 1], job["layout"]) for i in range(len(stored))]
    name = job["runtime"]
    run = OPEN[name](job["file"], job["threads"])
    outputs(run, images, job["outputs"])
    if "exact_outputs" in job:
        outputs(OPEN[name](job["file"], job["threads"], exact=True), images, job["exact_outputs"])
    result = {}
    if job.get("seconds"):
        timed = [lambda: run(images[0])]
        if job.get("float"):
            try:
                first = in_layout(stored[:1], job["float_layout"])
                in_float = OPEN[name](job["float"], job["threads"])
                in_float(first)
                timed.append(lambda: in_float(first))
            except Exception as error:  # the quantized file is timed all the same
                result["float_error"] = str(error)
        result.update(zip(("ms", "float_ms"), in_turns(timed, job["seconds"])))
    return result


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        job = json.load(text)
    result = run_job(job) if "runtime" in job else {"python": platform.python_version(), "runtimes": installed()}
    with open(job["result"], "w", encoding="utf-8") as text:
        json.dump(result, text)


if __name__ == "__main__":
    main()
