#!/usr/bin/env python3
"""recipe_costs.py MODEL [--recipes NAME,NAME] [-- FLAG ...]: what recipes take, as a Markdown table.

Each runs with an empty cache: seconds as a user waits for them, seconds of all cores together, and the highest
resident memory. FLAGs go to every `zsq quantize` (--preset, --scheme, --threads, --set ...).

--against OLD_ZSQ runs two builds in turns, --rounds times, and prints medians of both and their ratios. Then each recipe
has a second row, with the cached images of the first run, unless --first_only; --eval_data PATH adds evaluation of the float
network and of the file that the last recipe has exported, by the same build.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def cost(command, cache):
    """Seconds, seconds of all cores and MB of one run."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"XDG_CACHE_HOME": str(cache)})
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: zsq ended with status {os.waitstatus_to_exitcode(status)}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def quantize(zsq, recipe, out, arguments, flags):
    return [zsq, "quantize", arguments.model, "--recipe", recipe, "-o", str(out), "--quiet", *flags]


def preset_of(flags):
    """What `zsq eval` needs of the flags of `zsq quantize`."""
    return [word for pair in zip(flags, flags[1:]) if pair[0] == "--preset" for word in pair]


def costs_of(zsq, arguments, flags):
    """{row: cost} of one build, once."""
    costs = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number, recipe in enumerate(arguments.recipes.split(",")):
            cache, out = folder / f"cache{number}", folder / f"out{number}"
            costs[f"`{recipe}`"] = cost(quantize(zsq, recipe, out, arguments, flags), cache)
            if arguments.against and not arguments.first_only:
                again = quantize(zsq, recipe, folder / f"again{number}", arguments, flags)
                costs[f"`{recipe}`, images cached"] = cost(again, cache)
        if arguments.eval_data:
            data = ["--data", arguments.eval_data, *preset_of(flags), "--quiet"]
            costs["`zsq eval`, float"] = cost([zsq, "eval", arguments.model, *data], cache)
            costs["`zsq eval`, exported file"] = cost([zsq, "eval", str(out), *data], cache)
    return costs


def medians(rounds):
    return {row: [statistics.median(column) for column in zip(*(costs[row] for costs in rounds))] for row in rounds[0]}


def main():
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--recipes", default="instant,instant+gptq,instant+gptq+tables,auto")
    parser.add_argument("--zsq", default="build/bin/zsq")
    parser.add_argument("--against", metavar="OLD_ZSQ", help="another build, which runs in turns with this one")
    parser.add_argument("--rounds", type=int, default=5, help="of both builds, with --against (default: 5)")
    parser.add_argument("--first_only", action="store_true", help="no rows with cached images")
    parser.add_argument("--eval_data", metavar="PATH", help="labelled images for rows of `zsq eval`")
    arguments = parser.parse_args(given[:end])
    flags = given[end + 1 :]

    if not arguments.against:
        print("| command | seconds | of all cores | peak memory |\n| --- | ---: | ---: | ---: |")
        for row, (seconds, cores, memory) in costs_of(arguments.zsq, arguments, flags).items():
            print(f"| {row} | {seconds:.0f} | {cores:.0f} | {memory:,.0f} MB |", flush=True)
        return
    rounds = {zsq: [] for zsq in (arguments.against, arguments.zsq)}
    for number in range(arguments.rounds):
        for zsq, costs in rounds.items():
            costs.append(costs_of(zsq, arguments, flags))
            print(f"round {number + 1} of {arguments.rounds}: {zsq}", file=sys.stderr, flush=True)
    old, new = (medians(rounds[zsq]) for zsq in (arguments.against, arguments.zsq))
    print("| command | seconds | ratio | of all cores | ratio | peak memory, MB | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in old:
        cells = [f"{a:,.{digits}f} -> {b:,.{digits}f} | {b / a:.2f}" for a, b, digits in zip(old[row], new[row], (1, 1, 0))]
        print(f"| {row} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
