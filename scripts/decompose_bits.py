#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which part of a network costs what when it alone has few bits: a Markdown table.

  .deps/python/bin/python scripts/decompose_bits.py MODEL [--bits 4] [--recipe instant] [--group NAME=REGEX ...]
      [--eval_data FOLDER] [--out FOLDER] [-- FLAGS]

Each row is one run of `zsq quantize` with 8 bits except for what the row names, which has --bits: all weights, all
activations, both inputs of additions, and for each group (layers whose name matches the expression) its weights
and its inputs. KL is to the float network on the two kinds of held-out synthetic images; top-1, where real images
are given, is of the exported file. FLAGS go to `zsq inspect` and `zsq quantize`. Runs that are there are not
repeated.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ZSQ = ROOT / "build/bin/zsq"


def layers_of(args):
    told = subprocess.run([ZSQ, "inspect", args.model, *args.flags, "--scheme", "W8A8", "--format", "json"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return [layer["name"] for layer in json.loads(told)["layers"] if layer["weight_bits"] > 0]


def rows_of(args):
    """(title, scheme, settings) of each run."""
    b = args.bits
    yield "nothing", "W8A8", []
    yield "all weights", f"W{b}A8", []
    yield "all activations but additions", f"W8A{b}", []
    yield "additions", "W8A8", [f"quantize.add_bits={b}"]
    yield "weights and activations", f"W{b}A{b}", []
    layers = layers_of(args)
    inner = layers[1:-1]
    for group in args.group:
        name, expression = group.split("=", 1)
        chosen = [layer for layer in inner if re.search(expression, layer)]
        if not chosen:
            raise SystemExit(f"decompose: no layer matches '{expression}'; there are {', '.join(inner[:5])}, ...")
        rest = ",".join(f"{layer}=8" for layer in inner if layer not in chosen)
        yield f"{name}: weights", f"W{b}A8", [f"quantize.weights.layer_bits={rest}"]
        yield f"{name}: inputs", f"W8A{b}", [f"quantize.activations.layer_bits={rest}"]


def run(args, title, scheme, settings):
    folder = args.out / re.sub(r"[^a-z0-9]+", "_", f"{args.recipe} {args.bits} {title}".lower())
    report = folder / "report.json"
    if not report.exists():
        command = [ZSQ, "quantize", args.model, "--recipe", args.recipe, "--scheme", scheme, "-o", folder, "--quiet"]
        for setting in settings:
            command += ["--set", setting]
        if args.eval_data:
            command += ["--eval_data", args.eval_data]
        subprocess.run([*command, *args.flags], check=True, stdout=subprocess.DEVNULL)
    return json.loads(report.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--recipe", default="instant")
    parser.add_argument("--group", action="append", default=[], metavar="NAME=REGEX")
    parser.add_argument("--eval_data")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out/decompose")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:end])
    args.flags = words[end + 1:]
    print(f"| {args.bits} bits, the rest 8 | KL dead leaves | KL optimised | top-1 |\n| --- | --- | --- | --- |")
    for title, scheme, settings in rows_of(args):
        report = run(args, title, scheme, settings)
        kl = {result["kind"]: result["divergence"] for result in report["synthetic"]}
        top1 = report["student"]["top1"] if report.get("student") else None
        print(f"| {title} | {kl['dead_leaves']:.4f} | {kl['optimised']:.4f} | "
              f"{'' if top1 is None else format(top1, '.2f')} |", flush=True)


if __name__ == "__main__":
    main()
