#!/usr/bin/env python3
"""Measures what divergence and agreement on held-out synthetic images say about accuracy: the tables in
pipeline/report/experience.cpp.

measure_verdict.py POINTS.json --network NAME MODEL PRESET DATA [--schemes ...] [--recipes ...] [--seeds ...] [--output ...] [--image_size ...]
    quantizes MODEL once for each scheme, recipe and seed, measures it on the real images of DATA, and adds a
    point to POINTS.json: {network, name, kind, outputs, divergence, kinds, agreement, agreements, shares, loss}.
    `divergence` is the geometric mean over the kinds of synthetic images; `shares` how many of them the float
    network decides alike. DATA is what --eval_data takes (`loss` is in points of top-1), or an npz with
    `images` (f32 [N, C, H, W], preprocessed) and `labels`, for which MODEL (ONNX) and its student run in
    onnxruntime. Then `loss` is, for logits (labels [N]), in points of top-1; for one score (labels [N, 1], 0
    or 1), in points of labels on the right side of 0.5; for several (labels [N, K]), in points of F1, the mean
    over the images of 2 |A and B| / (|A| + |B|) of the labels above 0.5 and the right ones, since most of many
    labels are off and on the right side whatever is lost; for values, the squared error by the variance of
    the float network's, in per cent. Points that are there stay.
measure_verdict.py POINTS.json
    prints, for each network and band of divergence, the number of points, and the median and the largest
    loss; and for each kind of output the lowest agreement of a run in the best two bands.

plot_selection.py draws POINTS.json.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

BOUNDS = [0.06, 0.12, 0.25, 0.5, 1, 2, math.inf]
SCHEMES = [f"W{w}A{a}" for w in (8, 6, 5, 4, 3) for a in (8, 6, 5, 4, 3)]


def outputs_in_onnxruntime(path, images):
    import numpy
    import onnxruntime
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name, shape = session.get_inputs()[0].name, session.get_inputs()[0].shape
    if isinstance(shape[1], int) and shape[1] != images.shape[1]:  # channels last
        images = images.transpose(0, 2, 3, 1)
    batches = [session.run(None, {name: images[i:i + 64]})[0] for i in range(0, len(images), 64)]
    return numpy.concatenate(batches).reshape(len(images), -1).astype(numpy.float64)


def mean_f1(seen, right):
    both, all_of_them = (seen & right).sum(1), seen.sum(1) + right.sum(1)
    return ((2 * both + (all_of_them == 0)) / (all_of_them + (all_of_them == 0))).mean()


def loss_of(kind, teacher, student, labels):
    if kind == "logits":
        return 100 * float((teacher.argmax(1) == labels).mean() - (student.argmax(1) == labels).mean())
    if kind == "scores":  # after the sigmoid
        right = labels.reshape(teacher.shape) > 0.5
        if right.shape[1] == 1:
            share = [((outputs > 0.5) == right).mean() for outputs in (teacher, student)]
        else:
            share = [mean_f1(outputs > 0.5, right) for outputs in (teacher, student)]
        return 100 * float(share[0] - share[1])
    return 100 * float(((student - teacher) ** 2).sum() / ((teacher - teacher.mean(0)) ** 2).sum())


def measure(zsq, model, preset, data, scheme, recipe, seed, further):
    stored = data.endswith(".npz")
    with tempfile.TemporaryDirectory() as folder:
        command = [zsq, "quantize", model, "--scheme", scheme, "--recipe", recipe, "--seed", str(seed), "--preset", preset,
                   "-o", f"{folder}/out", "--quiet", *further]
        if not stored:
            command += ["--eval_data", data]
        subprocess.run(command, check=True, capture_output=True)
        report = json.loads(pathlib.Path(folder, "out/report.json").read_text())
        if stored:
            import numpy
            with numpy.load(data) as file:
                images, labels = file["images"], file["labels"]
            loss = loss_of(report["output_kind"], outputs_in_onnxruntime(model, images),
                           outputs_in_onnxruntime(f"{folder}/out/model.onnx", images), labels)
        else:
            loss = report["teacher"]["top1"] - report["student"]["top1"]
    synthetic = report["synthetic"]
    return {"kind": report["output_kind"], "outputs": report["outputs"],
            "divergence": math.exp(statistics.fmean(math.log(max(s["divergence"], 1e-12)) for s in synthetic)),
            "kinds": {s["kind"]: s["divergence"] for s in synthetic}, "agreement": report["agreement"],
            "agreements": {s["kind"]: s["agreement"] for s in synthetic},
            "shares": {s["kind"]: s["largest_share"] for s in synthetic}, "loss": loss}


def print_bands(points):
    for network in dict.fromkeys(p["network"] for p in points):
        own = [p for p in points if p["network"] == network]
        unit = "squared error, % of the variance" if own[0].get("kind") == "values" else "points lost"
        print(f"{network}\n{'below':>9} {'runs':>5} {'median':>7} {'largest':>8}   {unit}")
        below = 0
        for bound in BOUNDS:
            losses = [p["loss"] for p in own if below <= p["divergence"] < bound]
            below = bound
            if losses:
                print(f"{bound:9.2f} {len(losses):5} {statistics.median(losses):7.1f} {max(losses):8.1f}")
    print(f"{'kind':8} {'outputs':>7} {'agreement':>9} {'loss':>6}   of runs below {BOUNDS[1]}, lowest agreement first")
    measured = [p for p in points if "agreements" in p and p["divergence"] < BOUNDS[1]]
    for p in sorted(measured, key=lambda p: (p["kind"], p["outputs"], min(p["agreements"].values()))):
        print(f"{p['kind']:8} {p['outputs']:7} {min(p['agreements'].values()):9.4f} {p['loss']:6.2f}   {p['network']} {p['name']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", type=pathlib.Path)
    parser.add_argument("--network", nargs=4, metavar=("NAME", "MODEL", "PRESET", "DATA"))
    parser.add_argument("--schemes", nargs="+", default=SCHEMES)
    parser.add_argument("--recipes", nargs="+", default=["instant"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--output", help="logits, scores or values, where the end of the file does not tell")
    parser.add_argument("--image_size", help="as 48x192, where the file leaves it open")
    parser.add_argument("--zsq", default="build/bin/zsq")
    options = parser.parse_args()
    points = json.loads(options.points.read_text()) if options.points.exists() else []
    if options.network:
        further = [word for flag, value in (("--output", options.output), ("--image_size", options.image_size)) if value
                   for word in (flag, value)]
        name, model, preset, data = options.network
        done = {(p["network"], p["name"]) for p in points}
        for recipe in options.recipes:
            for scheme in options.schemes:
                for seed in options.seeds:
                    run = f"{recipe}_{scheme.lower()}_s{seed}"
                    if (name, run) in done:
                        continue
                    point = measure(options.zsq, model, preset, data, scheme, recipe, seed, further)
                    points.append({"network": name, "name": run, **point})
                    print(f"{name} {run}: divergence {point['divergence']:.4f}, loss {point['loss']:.2f}", flush=True)
                    options.points.write_text("[\n" + ",\n".join(json.dumps(p) for p in points) + "\n]\n")
    print_bands(points)


if __name__ == "__main__":
    main()
