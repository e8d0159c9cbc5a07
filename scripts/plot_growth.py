#!/usr/bin/env python3
"""Draws what `zsq bench --sweep ... --format json` found: time and peak memory against size, as SVG.

plot_growth.py OUT.svg SWEEP.json...: one row of two diagrams per sweep, all axes logarithmic. A dashed
line through the last point has the slope 1: what doubles when the size doubles.
"""
import json
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 250, 62, 14, 34, 44
INK, DATA, GUIDE = "#333", "#1f5fa8", "#aaa"
# In pages of the dark colour scheme: paper, ink and data in other colours.
DARK = ("<style>@media (prefers-color-scheme: dark) {{ [fill='white'] {{ fill: #0d1117 }} [fill='{0}'] {{ fill: #c9d1d9 }} "
        "[stroke='{0}'] {{ stroke: #c9d1d9 }} [fill='{1}'] {{ fill: #58a6ff }} [stroke='{1}'] {{ stroke: #58a6ff }} "
        "[stroke='{2}'] {{ stroke: #6e7681 }} }}</style>").format(INK, DATA, GUIDE)
AXES = {"batch": "images per step", "image": "pixels per side", "width": "channels of the first stage",
        "depth": "layers"}


def text(x, y, words, anchor="middle", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{INK}">{words}</text>'


def ticks(lo, hi):
    """1, 2, 5, 10, ... inside [lo, hi]."""
    power = 10.0 ** math.floor(math.log10(lo))
    while power <= hi:
        for mantissa in (1, 2, 5):
            if lo * 0.999 <= mantissa * power <= hi * 1.001:
                yield mantissa * power
        power *= 10


class Diagram:
    def __init__(self, xs, ys, title, x_title):
        self.xs, self.ys, self.title, self.x_title = xs, ys, title, x_title
        self.x_range = (min(xs) / 1.15, max(xs) * 1.15)
        self.y_range = (min(ys) / 1.6, max(ys) * 1.6)

    def place(self, x, y):
        def share(value, bounds):
            return math.log(value / bounds[0]) / math.log(bounds[1] / bounds[0])
        return (LEFT + share(x, self.x_range) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - share(y, self.y_range) * (HEIGHT - TOP - BOTTOM))

    def guide(self):
        """The part of the line of slope 1 through the last point that lies inside."""
        x1, y1 = self.xs[-1], self.ys[-1]
        x0 = max(self.x_range[0], x1 * self.y_range[0] / y1)
        (a, b), (c, d) = self.place(x0, y1 * x0 / x1), self.place(x1, y1)
        return f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" stroke="{GUIDE}" stroke-dasharray="5 4"/>'

    def draw(self):
        left, bottom = LEFT, HEIGHT - BOTTOM
        yield text(WIDTH / 2, 18, self.title, size=13)
        yield text((WIDTH + LEFT) / 2, HEIGHT - 8, self.x_title)
        yield f'<path d="M{left} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="{INK}"/>'
        for y in ticks(*self.y_range):
            height = self.place(self.xs[0], y)[1]
            yield f'<path d="M{left} {height:.1f}h-4" stroke="{INK}"/>'
            yield text(left - 8, height + 4, f"{y:g}", "end")
        for x in self.xs:
            at = self.place(x, self.ys[0])[0]
            yield f'<path d="M{at:.1f} {bottom}v4" stroke="{INK}"/>'
            yield text(at, bottom + 18, f"{x:g}")
        yield self.guide()
        points = [self.place(x, y) for x, y in zip(self.xs, self.ys)]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        yield f'<path d="M{line}" fill="none" stroke="{DATA}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{DATA}"/>' for x, y in points)


def diagrams(report):
    """Time and memory of one sweep."""
    rows = report["rows"]
    values = [row["value"] for row in rows]
    axis = AXES[report["sweep"]]
    yield Diagram(values, [row["step_seconds"] for row in rows], "seconds per training step", axis)
    yield Diagram(values, [row["memory_peak_bytes"] / 1e6 for row in rows], "peak memory, MB", axis)


def svg(reports):
    parts = []
    for row, report in enumerate(reports):
        for column, diagram in enumerate(diagrams(report)):
            parts += [f'<g transform="translate({column * WIDTH} {row * HEIGHT})">', *diagram.draw(), "</g>"]
    width, height = 2 * WIDTH, len(reports) * HEIGHT
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" font-family="sans-serif">', DARK,
                      f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>", ""])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    reports = []
    for name in sys.argv[2:]:
        report = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
        if "sweep" not in report:
            sys.exit(f"plot_growth: {name} holds no sweep; expected the output of `zsq bench --sweep WHAT "
                     "--format json`")
        reports.append(report)
    pathlib.Path(sys.argv[1]).write_text(svg(reports), encoding="utf-8")


if __name__ == "__main__":
    main()
