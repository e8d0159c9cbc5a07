#!/usr/bin/env python3
"""Measures what the KL on held-out synthetic images says about accuracy: the table in pipeline/report/verdict.cpp.

measure_verdict.py POINTS.json --network NAME MODEL PRESET DATA [--schemes ...] [--recipes ...] [--seeds ...]
    quantizes MODEL once for each scheme, recipe and seed, measures it on the real images of DATA, and adds a
    point to POINTS.json: {network, name, divergence, kinds, agreement, loss}. `divergence` is the geometric
    mean of the KL on the kinds of synthetic images, `loss` is in points of top-1. Points that are there stay.
measure_verdict.py POINTS.json
    prints, for each network and band of KL, the number of points, and the median and the largest loss.

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


def measure(zsq, model, preset, data, scheme, recipe, seed):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([zsq, "quantize", model, "--scheme", scheme, "--recipe", recipe, "--seed", str(seed), "--preset",
                        preset, "--eval_data", data, "-o", f"{folder}/out", "--quiet"], check=True, capture_output=True)
        report = json.loads(pathlib.Path(folder, "out/report.json").read_text())
    kinds = {kind["kind"]: kind["divergence"] for kind in report["synthetic"]}
    return {"divergence": math.exp(statistics.fmean(math.log(kl) for kl in kinds.values())), "kinds": kinds,
            "agreement": report["agreement"], "loss": report["teacher"]["top1"] - report["student"]["top1"]}


def print_bands(points):
    for network in dict.fromkeys(p["network"] for p in points):
        print(f"{network}\n{'KL below':>9} {'runs':>5} {'median':>7} {'largest':>8}   points of top-1 lost")
        below = 0
        for bound in BOUNDS:
            losses = [p["loss"] for p in points if p["network"] == network and below <= p["divergence"] < bound]
            below = bound
            if losses:
                print(f"{bound:9.2f} {len(losses):5} {statistics.median(losses):7.1f} {max(losses):8.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", type=pathlib.Path)
    parser.add_argument("--network", nargs=4, metavar=("NAME", "MODEL", "PRESET", "DATA"))
    parser.add_argument("--schemes", nargs="+", default=SCHEMES)
    parser.add_argument("--recipes", nargs="+", default=["instant"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--zsq", default="build/bin/zsq")
    options = parser.parse_args()
    points = json.loads(options.points.read_text()) if options.points.exists() else []
    if options.network:
        name, model, preset, data = options.network
        done = {(p["network"], p["name"]) for p in points}
        for recipe in options.recipes:
            for scheme in options.schemes:
                for seed in options.seeds:
                    run = f"{recipe}_{scheme.lower()}_s{seed}"
                    if (name, run) in done:
                        continue
                    point = measure(options.zsq, model, preset, data, scheme, recipe, seed)
                    points.append({"network": name, "name": run, **point})
                    print(f"{name} {run}: KL {point['divergence']:.4f}, loss {point['loss']:.2f}", flush=True)
                    options.points.write_text("[\n" + ",\n".join(json.dumps(p) for p in points) + "\n]\n")
    print_bands(points)


if __name__ == "__main__":
    main()
