#!/usr/bin/env python3
"""recipe_costs.py MODEL [--recipes NAME,NAME] [-- FLAG ...]: what recipes take, as a Markdown table.

Each runs once, with an empty cache: seconds as a user waits for them, seconds of all cores together, and the highest
resident memory. FLAGs go to every `zsq quantize` (--preset, --scheme, --threads, --set ...).
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("--recipes", default="instant,instant+gptq,instant+gptq+tables,auto")
parser.add_argument("--zsq", default="build/bin/zsq")
given = sys.argv[1:]
end = given.index("--") if "--" in given else len(given)
arguments = parser.parse_args(given[:end])
flags = given[end + 1 :]

print("| recipe | seconds | of all cores | peak memory |\n| --- | ---: | ---: | ---: |")
for recipe in arguments.recipes.split(","):
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.zsq, "quantize", arguments.model, "--recipe", recipe, "-o", folder + "/out", "--quiet"]
        begin = time.monotonic()
        process = subprocess.Popen(
            command + flags, stdout=subprocess.DEVNULL, env=os.environ | {"XDG_CACHE_HOME": folder + "/cache"}
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
    if status != 0:
        raise SystemExit(f"{recipe}: zsq ended with status {os.waitstatus_to_exitcode(status)}")
    cores = used.ru_utime + used.ru_stime
    print(f"| `{recipe}` | {seconds:.0f} | {cores:.0f} | {used.ru_maxrss / 1024:,.0f} MB |", flush=True)
