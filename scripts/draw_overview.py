#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the overview of the README: generator, teacher, student, and what passes between them.

draw_overview.py FOLDER: writes overview_light.svg and overview_dark.svg, the same figure for pages of
either colour scheme. Backgrounds are transparent.
"""
import pathlib
import sys

WIDTH, HEIGHT = 980, 372
THEMES = {
    "light": {"ink": "#1f2328", "faint": "#59636e", "forward": "#59636e", "gradient": "#bc4c00",
              "generator": "#ddf4ff", "teacher": "#dafbe1", "student": "#fff1cc", "other": "#f6f8fa",
              "edge": "#8c959f"},
    "dark": {"ink": "#f0f6fc", "faint": "#9198a1", "forward": "#9198a1", "gradient": "#f0883e",
             "generator": "#12304f", "teacher": "#12361f", "student": "#463207", "other": "#21262d",
             "edge": "#6e7681"},
}


class Figure:
    def __init__(self, theme):
        self.theme, self.parts = theme, []

    def text(self, x, y, words, colour="ink", size=13, anchor="middle", weight="normal"):
        self.parts.append(f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" '
                          f'font-weight="{weight}" fill="{self.theme[colour]}">{words}</text>')

    def box(self, x, y, width, height, fill, title, lines=()):
        """A rounded box with a title and smaller lines, all centred."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" '
                          f'fill="{self.theme[fill]}" stroke="{self.theme["edge"]}"/>')
        top = y + height / 2 + 5 - 8 * len(lines)
        self.text(x + width / 2, top, title, size=15, weight="600")
        for row, line in enumerate(lines):
            self.text(x + width / 2, top + 18 + 16 * row, line, "faint", 12)

    def arrow(self, path, kind="forward"):
        dashes = ' stroke-dasharray="6 4"' if kind == "gradient" else ""
        self.parts.append(f'<path d="{path}" fill="none" stroke="{self.theme[kind]}" stroke-width="1.8" '
                          f'marker-end="url(#{kind})"{dashes}/>')

    def images(self, x, y, size):
        """A small stack of pictures."""
        for shift in (12, 6, 0):
            self.parts.append(f'<rect x="{x + shift}" y="{y - shift}" width="{size}" height="{size}" rx="3" '
                              f'fill="{self.theme["other"]}" stroke="{self.theme["edge"]}"/>')
        low = y + size
        self.parts.append(f'<circle cx="{x + 0.7 * size}" cy="{y + 0.3 * size}" r="{0.11 * size}" '
                          f'fill="{self.theme["gradient"]}" fill-opacity="0.7"/>')
        self.parts.append(f'<path d="M{x + 4} {low - 6}L{x + 0.38 * size} {y + 0.42 * size}L{x + 0.6 * size} '
                          f'{low - 18}L{x + 0.74 * size} {y + 0.6 * size}L{x + size - 4} {low - 6}Z" '
                          f'fill="{self.theme["faint"]}" fill-opacity="0.6"/>')

    def svg(self):
        heads = "".join(
            f'<marker id="{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10Z" fill="{self.theme[kind]}"/></marker>'
            for kind in ("forward", "gradient"))
        title = "A generator makes images; the student learns from the teacher's logits on them"
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" font-family="system-ui, sans-serif" role="img">',
            f"<title>{title}</title>", f"<defs>{heads}</defs>", *self.parts, "</svg>", ""])


def overview(theme):
    figure = Figure(theme)
    figure.text(60, 182, "class labels,", "faint")
    figure.text(60, 200, "noise", "faint")
    figure.arrow("M106 190H142")
    figure.box(146, 150, 150, 80, "generator", "generator", ("some images lie", "between classes"))
    figure.arrow("M298 190H344")
    figure.images(350, 158, 64)
    figure.text(382, 246, "synthetic images", "faint", 12)
    figure.arrow("M432 176C480 160 470 92 516 88")
    figure.arrow("M432 206C480 222 470 288 516 292")

    figure.box(520, 48, 190, 80, "teacher", "teacher", ("your network in float,", "never changed"))
    figure.box(520, 252, 190, 80, "student", "student", ("the same network", "with quantizers"))
    figure.arrow("M560 130V248")
    for row, line in enumerate(("ranges from BatchNorm,", "rounding, block", "reconstruction")):
        figure.text(570, 176 + 16 * row, line, "faint", 12, "start")

    figure.box(800, 152, 160, 64, "other", "KL divergence", ("of the two outputs",))
    figure.arrow("M712 88C800 88 880 100 880 148")
    figure.text(826, 90, "logits", "faint", 12, "start")
    figure.arrow("M712 276C800 272 910 280 910 220")
    figure.text(912, 254, "logits", "faint", 12, "start")
    figure.arrow("M798 192C740 194 690 204 686 248", "gradient")
    figure.text(716, 238, "gradient inundation", "gradient", 12, "start")

    figure.arrow("M518 66C400 30 221 50 221 146", "gradient")
    figure.text(372, 34, "gradient of cross-entropy and BatchNorm-statistics loss", "gradient", 12)

    figure.box(800, 300, 160, 56, "other", "model.onnx", ("runs in integers",))
    figure.arrow("M712 318H796")
    figure.text(146, 318, "forward", "faint", 12, "start")
    figure.arrow("M96 314H138")
    figure.text(146, 340, "gradient", "gradient", 12, "start")
    figure.arrow("M96 336H138", "gradient")
    return figure.svg()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, theme in THEMES.items():
        pathlib.Path(sys.argv[1], f"overview_{name}.svg").write_text(overview(theme), encoding="utf-8")


if __name__ == "__main__":
    main()
