#!/usr/bin/env python3
"""Draws how the ranking of `zsq select` relates to accuracy on real images, as SVG.

plot_selection.py --collect POINTS.json NAME=SELECT.json...: joins what `zsq select --format json` printed
with the top-1 in each run's report.json: a list of {network, name, divergence, agreement, loss}, loss in
points of top-1 against the network in float. (A run needs --eval_data for that.)
plot_selection.py OUT.svg POINTS.json: a diagram per network, and the rank correlations on stdout.
"""
import json
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 330, 58, 16, 54, 46
INK, GRID = "#333", "#ddd"
COLOURS = ["#1f5fa8", "#c2571a", "#3c8d40", "#8a4fa3", "#b8860b", "#d6336c", "#0c8599", "#868e96"]
# In pages of the dark colour scheme: paper, ink and grid in other colours.
DARK = ("<style>@media (prefers-color-scheme: dark) {{ [fill='white'] {{ fill: #0d1117 }} [fill='{0}'] {{ fill: #c9d1d9 }} "
        "[stroke='{1}'] {{ stroke: #30363d }} circle {{ fill-opacity: 1 }} [fill='#1f5fa8'] {{ fill: #58a6ff }} "
        "[fill='#8a4fa3'] {{ fill: #bc8cff }} }}</style>").format(INK, GRID)


def ranks(values):
    """1, 2, ...; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for i in order[start:end + 1]:
            result[i] = (start + end) / 2 + 1
        start = end + 1
    return result


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    mean = (len(a) + 1) / 2
    products = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    return products / math.sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))


def kendall(a, b):
    """tau-b."""
    def sign(x):
        return (x > 0) - (x < 0)
    pairs = [(sign(a[i] - a[j]), sign(b[i] - b[j])) for i in range(len(a)) for j in range(i)]
    return (sum(x * y for x, y in pairs) /
            math.sqrt(sum(x * x for x, _ in pairs) * sum(y * y for _, y in pairs)))


def collect(arguments):
    points = []
    for argument in arguments:
        network, name = argument.split("=", 1)
        for row in json.loads(pathlib.Path(name).read_text(encoding="utf-8"))["rows"]:
            folder = pathlib.Path(row["folder"])
            report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
            if report["student"]["top1"] is None:
                sys.exit(f"plot_selection: {folder} was not measured; run it with --eval_data")
            points.append({"network": network, "name": folder.name, "divergence": row["divergence"],
                           "agreement": row["agreement"],
                           "loss": report["teacher"]["top1"] - report["student"]["top1"]})
    return points


def text(x, y, words, anchor="middle", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{INK}">{words}</text>'


def families(points):
    """What stands before the first underscore of a name."""
    return sorted({point["name"].split("_")[0] for point in points})


def y_share(loss, top):
    """Losses from 0 to 100 on an axis that shows small ones: the square root."""
    return math.sqrt(max(loss, 0) / top)


def diagram(network, points, colours):
    xs = [point["divergence"] for point in points]
    low, high = math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs)))
    top = max(1.0, max(point["loss"] for point in points)) * 1.05
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(x, y):
        return (LEFT + (math.log10(x) - low) / (high - low) * (right - LEFT),
                bottom - y_share(y, top) * (bottom - TOP))
    losses = [point["loss"] for point in points]
    rho, tau = spearman(xs, losses), kendall(xs, losses)
    yield text(WIDTH / 2, 20, network, size=14)
    yield text(WIDTH / 2, 38, f"{len(points)} runs, rank correlation: Spearman {rho:.3f}, Kendall {tau:.3f}", size=11)
    for power in range(low, high + 1):
        x = place(10.0 ** power, 0)[0]
        yield f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="{GRID}"/>'
        yield text(x, bottom + 16, f"{10.0 ** power:g}")
    for loss in (0, 1, 3, 10, 20, 40, 60, 80):
        if loss <= top:
            y = place(10.0 ** low, loss)[1]
            yield f'<path d="M{LEFT} {y:.1f}H{right}" stroke="{GRID}"/>'
            yield text(LEFT - 6, y + 4, f"{loss}", "end")
    yield text((LEFT + right) / 2, HEIGHT - 8, "KL on synthetic images, nats")
    middle = (TOP + bottom) / 2
    yield f'<g transform="rotate(-90 16 {middle:.1f})">{text(16, middle, "top-1 lost on real images, points")}</g>'
    for point in points:
        x, y = place(point["divergence"], point["loss"])
        colour = colours[point["name"].split("_")[0]]
        yield (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity="0.75">'
               f'<title>{point["name"]}: KL {point["divergence"]:.3g}, {point["loss"]:.2f} points</title></circle>')
    kinds = families(points)
    for row, kind in enumerate(kinds):
        y = TOP + 14 + 16 * row
        yield f'<circle cx="{LEFT + 14}" cy="{y - 4}" r="4" fill="{colours[kind]}"/>'
        yield text(LEFT + 24, y, kind, "start", 11)


def svg(points):
    colours = {kind: COLOURS[i % len(COLOURS)] for i, kind in enumerate(families(points))}
    networks = list(dict.fromkeys(point["network"] for point in points))
    parts = []
    for column, network in enumerate(networks):
        own = [point for point in points if point["network"] == network]
        parts += [f'<g transform="translate({column * WIDTH} 0)">', *diagram(network, own, colours), "</g>"]
        xs, losses = [point["divergence"] for point in own], [point["loss"] for point in own]
        wrong = [1 - point["agreement"] for point in own]
        print(f"{network}: {len(own)} runs; KL: Spearman {spearman(xs, losses):.3f}, Kendall "
              f"{kendall(xs, losses):.3f}; agreement: Spearman {spearman(wrong, losses):.3f}, Kendall "
              f"{kendall(wrong, losses):.3f}")
    width = len(networks) * WIDTH
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" '
                      f'height="{HEIGHT}" font-family="sans-serif">', DARK,
                      f'<rect width="{width}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>", ""])


def main():
    if len(sys.argv) >= 4 and sys.argv[1] == "--collect":
        points = collect(sys.argv[3:])
        text_of = ",\n".join(json.dumps(point) for point in points)
        pathlib.Path(sys.argv[2]).write_text(f"[\n{text_of}\n]\n", encoding="utf-8")
    elif len(sys.argv) == 3:
        points = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
        pathlib.Path(sys.argv[1]).write_text(svg(points), encoding="utf-8")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
