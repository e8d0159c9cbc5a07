#!/usr/bin/env python3
"""The binary interface of libzsq.so is the one that is written down: symbols_test.py LIBRARY NM.

A symbol that is missing breaks programs in use, one too many is a promise that nobody meant to make. A new
function is a new line of symbols.txt; a line goes or changes only together with the SONAME.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
library, nm = sys.argv[1:]


def exported():
    """name@@VERSION of each symbol that the library defines, without the names of the versions themselves."""
    lines = subprocess.run([nm, "--dynamic", "--defined-only", "--with-symbol-versions", library],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    return {fields[-1] for fields in map(str.split, lines) if fields[-2] != "A"}


def declared():
    """The functions of the header."""
    text = (HERE / "../../sdk/zsq.h").read_text(encoding="utf-8")
    return set(re.findall(r"^ZSQ_API [^;(]*?(\w+)\(", text, re.M))


promised = set((HERE / "symbols.txt").read_text(encoding="utf-8").split())
faults = [f"{name} is promised, but not exported" for name in sorted(promised - exported())]
faults += [f"{name} is exported, but not in symbols.txt" for name in sorted(exported() - promised)]
names = {symbol.split("@")[0] for symbol in promised}
faults += [f"{name} is in only one of zsq.h and symbols.txt" for name in sorted(names ^ declared())]
print("\n".join(faults) or f"{len(promised)} symbols, as promised")
sys.exit(bool(faults))
