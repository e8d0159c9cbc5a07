#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How good W4A4 becomes in a given time: the default recipe at several budgets beside the efforts, as SVG and a table.

quality_over_time.py FILE.json --network NAME MODEL PRESET DATA [--runs minute minutes 1min 3min 10min] [--seeds 0 1 2]
    quantizes MODEL with each run and seed and measures it on the real images DATA: seconds of the command, KL to float and
    top-1, which FILE.json keeps. A run that it holds already is not repeated, so that a stopped command goes on. A run is
    the name of an --effort, or a --time_budget of the default recipe. It must have the machine for itself.
quality_over_time.py FILE.json --draw FILE.svg
    draws two diagrams for each network, KL and top-1 against seconds. Points are means of the seeds, bars reach from the
    best to the worst. Prints the same as a Markdown table.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile
import time

from plot_growth import BOTTOM, DARK, DATA as BLUE, GUIDE as GREY, HEIGHT, INK, LEFT, RIGHT, TOP, WIDTH, text, ticks

EFFORTS = ("seconds", "minute", "minutes")


def measure(zsq, network, run, seed, scheme):
    _, model, preset, data = network
    with tempfile.TemporaryDirectory() as folder:
        chosen = ["--effort", run] if run in EFFORTS else ["--time_budget", run]
        begin = time.monotonic()
        subprocess.run([zsq, "quantize", model, "--scheme", scheme, "--preset", preset, "--seed", str(seed), *chosen,
                        "--quiet", "-o", folder + "/out"], check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
        said = subprocess.run([zsq, "eval", folder + "/out", "--against", model, "--preset", preset, "--data", data,
                               "--format", "json", "--quiet"], check=True, capture_output=True)
    result = json.loads(said.stdout)
    return {"run": run, "seed": seed, "seconds": round(seconds, 1), "kl": result["divergence"], "top1": result["top1"]}


def groups(rows):
    """Rows of each run, the fastest run first."""
    of_runs = {}
    for row in rows:
        of_runs.setdefault(row["run"], []).append(row)
    return sorted(of_runs.items(), key=lambda item: mean(item[1], "seconds"))


def mean(rows, key):
    return statistics.mean(row[key] for row in rows)


class Diagram:
    """`key` of the runs of one network against seconds."""

    def __init__(self, rows, key, title):
        self.runs, self.key, self.title = groups(rows), key, title
        seconds, values = [row["seconds"] for row in rows], [row[key] for row in rows]
        self.x_range = (min(seconds) / 1.3, max(seconds) * 1.3)
        margin = 0.1 * (max(values) - min(values)) or 1
        self.y_range = (min(values) - margin, max(values) + margin)

    def place(self, x, y):
        def share(value, low, high):
            return (value - low) / (high - low)
        return (LEFT + share(math.log(x), *map(math.log, self.x_range)) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - share(y, *self.y_range) * (HEIGHT - TOP - BOTTOM))

    def y_ticks(self):
        low, high = self.y_range
        step = next(s for s in ticks(0.001, 100) if (high - low) / s <= 6)
        return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]

    def draw(self):
        bottom = HEIGHT - BOTTOM
        yield text(WIDTH / 2, 18, self.title, size=13)
        yield text((WIDTH + LEFT) / 2, HEIGHT - 8, "seconds")
        yield f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="{INK}"/>'
        for y in self.y_ticks():
            height = self.place(self.x_range[0], y)[1]
            yield f'<path d="M{LEFT} {height:.1f}h-4" stroke="{INK}"/>'
            yield text(LEFT - 8, height + 4, f"{y:.4g}", "end")
        for x in ticks(*self.x_range):
            at = self.place(x, self.y_range[0])[0]
            yield f'<path d="M{at:.1f} {bottom}v4" stroke="{INK}"/>'
            yield text(at, bottom + 18, f"{x:g}")
        line = []
        for run, rows in self.runs:
            colour = GREY if run in EFFORTS else BLUE
            x, y = self.place(mean(rows, "seconds"), mean(rows, self.key))
            ends = [self.place(1, end(row[self.key] for row in rows))[1] for end in (min, max)]
            yield f'<path d="M{x:.1f} {ends[0]:.1f}V{ends[1]:.1f}" stroke="{colour}"/>'
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" stroke="{colour}"/>'
            left = x > WIDTH - 90
            name, down = (run, -6) if run in EFFORTS else (f"auto {run}", 14)
            yield text(x + (-7 if left else 7), y + down, name, "end" if left else "start", 10)
            if run not in EFFORTS:
                line.append(f"{x:.1f} {y:.1f}")
        if line:
            yield f'<path d="M{"L".join(line)}" fill="none" stroke="{BLUE}" stroke-width="2"/>'


def svg(networks):
    parts = []
    for row, (name, rows) in enumerate(networks.items()):
        for column, diagram in enumerate((Diagram(rows, "kl", f"{name}: KL to float"),
                                          Diagram(rows, "top1", f"{name}: top-1, %"))):
            parts += [f'<g transform="translate({column * WIDTH} {row * HEIGHT})">', *diagram.draw(), "</g>"]
    width, height = 2 * WIDTH, len(networks) * HEIGHT
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" font-family="sans-serif">', DARK,
                      f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>", ""])


def table(networks):
    yield "| network | run | seeds | seconds | KL, mean (worst) | top-1, mean (worst), % |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for name, rows in networks.items():
        for run, of_run in groups(rows):
            kl, top1 = ([row[key] for row in of_run] for key in ("kl", "top1"))
            yield f"| {name} | {f'`--effort {run}`' if run in EFFORTS else f'`auto`, {run}'} | {len(of_run)} | " \
                  f"{mean(of_run, 'seconds'):.0f} | {statistics.mean(kl):.4f} ({max(kl):.4f}) | " \
                  f"{statistics.mean(top1):.2f} ({min(top1):.2f}) |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--network", nargs=4, metavar=("NAME", "MODEL", "PRESET", "DATA"))
    parser.add_argument("--runs", nargs="+", default=["minute", "minutes", "1min", "3min", "10min"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--scheme", default="W4A4")
    parser.add_argument("--zsq", default="build/bin/zsq")
    parser.add_argument("--draw", type=pathlib.Path)
    options = parser.parse_args()
    networks = json.loads(options.file.read_text(encoding="utf-8")) if options.file.exists() else {}
    if options.network:
        rows = networks.setdefault(options.network[0], [])
        for seed in options.seeds:
            for run in options.runs:
                if any(row["run"] == run and row["seed"] == seed for row in rows):
                    continue
                rows.append(measure(options.zsq, options.network, run, seed, options.scheme))
                print(options.network[0], rows[-1], flush=True)
                options.file.write_text(json.dumps(networks, indent=1) + "\n", encoding="utf-8")
    if options.draw:
        options.draw.write_text(svg(networks), encoding="utf-8")
        print("\n".join(table(networks)))


if __name__ == "__main__":
    main()
