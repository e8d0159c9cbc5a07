#!/usr/bin/env python3
"""Runs a command and records what it holds while it runs: memory, open files and threads.

  scripts/soak.py OUT.csv -- build/bin/zsq quantize MODEL --recipe deploy --time_budget 2h -o out

One line per --every seconds (10). At its end it prints the memory at the tenth, the middle and the last part of the
run, and the slope of a straight line through the second half. Exits with the command's code if it failed, and with 1
if memory grew by more than --allowed (1) per cent an hour or open files grew at all. --svg OUT.svg draws the curve.
"""
import argparse
import csv
import pathlib
import subprocess
import sys
import time

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 240, 60, 40, 16, 16


def sample(pid):
    """(resident MiB, open files, threads), or nothing once the process has ended."""
    folder = pathlib.Path("/proc") / str(pid)
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        return int(status["VmRSS"].split()[0]) / 1024, len(list((folder / "fd").iterdir())), int(status["Threads"])
    except (OSError, KeyError):
        return None


def record(command, out, every):
    """Samples as (seconds, MiB, files, threads), and the command's exit code."""
    samples = []
    with open(out, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["seconds", "resident_mib", "open_files", "threads"])
        begin = time.monotonic()
        process = subprocess.Popen(command)
        try:
            while process.poll() is None:
                if (now := sample(process.pid)) is not None:
                    samples.append((time.monotonic() - begin, *now))
                    table.writerow([f"{samples[-1][0]:.1f}", f"{now[0]:.1f}", *now[1:]])
                    file.flush()
                try:
                    process.wait(every)
                except subprocess.TimeoutExpired:
                    pass
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    return samples, process.returncode


def slope(xs, ys):
    """Of the line of least squares; 0 for a single point."""
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x0) ** 2 for x in xs)
    return sum((x - x0) * (y - y0) for x, y in zip(xs, ys)) / spread if spread else 0.0


def growth(samples):
    """Per cent of the memory by which the second half grows in an hour, and open files gained in it."""
    half = samples[len(samples) // 2:]
    memory = [s[1] for s in half]
    per_hour = 3600 * slope([s[0] for s in half], memory)
    return 100 * per_hour / (sum(memory) / len(memory)), max(s[2] for s in half) - half[0][2]


def svg(samples):
    top = max(s[1] for s in samples) * 1.1
    end = samples[-1][0] or 1

    def place(s):
        return (LEFT + s[0] / end * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - s[1] / top * (HEIGHT - TOP - BOTTOM))

    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(place, samples))
    words = []
    for part in range(5):
        x, y = place((end * part / 4, top * part / 4))
        words.append(f'<text x="{x:.0f}" y="{HEIGHT - 22}" text-anchor="middle">{end * part / 4 / 60:.0f}</text>')
        words.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{top * part / 4:.0f}</text>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#777">',
        "<style>path{fill:none}</style>",
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" stroke="#777"/>',
        f'<path d="M{line}" stroke="#1f77b4" stroke-width="2"/>', *words,
        f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">minutes</text>',
        f'<text x="{LEFT + 8}" y="{TOP + 12}">resident memory, MiB</text>', "</svg>", ""])


def main():
    own, command = sys.argv[1:], []
    if "--" in own:
        own, command = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--every", type=float, default=10)
    parser.add_argument("--allowed", type=float, default=1)
    parser.add_argument("--svg")
    options = parser.parse_args(own)
    if not command:
        parser.error("no command: put it after --")
    samples, code = record(command, options.out, options.every)
    if len(samples) < 4:
        sys.exit(f"soak: the command ended with {code} before four samples were taken; choose a smaller --every")
    if options.svg:
        pathlib.Path(options.svg).write_text(svg(samples), encoding="utf-8")
    per_hour, files = growth(samples)
    at = [samples[int(share * (len(samples) - 1))][1] for share in (0.1, 0.5, 1)]
    print(f"{samples[-1][0] / 60:.1f} minutes, {len(samples)} samples, exit code {code}\n"
          f"resident MiB at a tenth, half and the end: {at[0]:.1f}, {at[1]:.1f}, {at[2]:.1f}\n"
          f"second half: {per_hour:+.2f} % per hour, {files:+d} open files, {samples[-1][3]} threads")
    sys.exit(code or int(per_hour > options.allowed or files > 0))


if __name__ == "__main__":
    main()
