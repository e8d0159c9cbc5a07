# SPDX-License-Identifier: Apache-2.0
"""The program zsq: where it is, and one verb of it with its JSON."""
from __future__ import annotations

import json
import logging
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any, Dict, List, Sequence, Tuple

from ._errors import ACCURACY_GATE, STOPPED, USAGE, ZsqError
from ._progress import Progress, Viewer

PACKAGE = pathlib.Path(__file__).resolve().parent
LOG = logging.getLogger("zsq")
#: "images  12 %  0.219 it/s  ETA 2:40  cross_entropy 7.241", as the program writes it where stderr is no terminal.
PROGRESS = re.compile(r"(?P<phase>\S[^%]*?) +(?P<step>\d+) %(?:  \S+ it/s)?(?:  ETA [\d:]+)?"
                      r"(?P<metrics>(?:  \S+ \S+)*)$")


def find() -> str:
    """ZSQ_PROGRAM, else the program of the wheel, of the source tree, or on the path."""
    named = os.environ.get("ZSQ_PROGRAM")
    if named:
        return named
    builds = PACKAGE.parents[1] / "build"
    for path in (PACKAGE / "bin/zsq", builds / "bin/zsq", builds / "release/bin/zsq", builds / "cpu-release/bin/zsq"):
        if os.access(path, os.X_OK):
            return str(path)
    on_path = shutil.which("zsq")
    if on_path and not pathlib.Path(on_path).read_bytes()[:2] == b"#!":  # a script of pip would start this again
        return on_path
    raise ZsqError("the program zsq is not there; build it, install the package of zsq, or name it by the environment "
                   "variable ZSQ_PROGRAM", USAGE)


def _progress_of(line: str, begun: Dict[str, float]) -> Progress:
    match = PROGRESS.match(line)
    assert match is not None
    words = match["metrics"].split()
    metrics = {}
    for name, value in zip(words[::2], words[1::2]):
        try:
            metrics[name] = float(value)
        except ValueError:
            continue
    now = time.monotonic()
    seconds = now - begun.setdefault(match["phase"], now)
    return Progress(match["phase"], int(match["step"]), 100, seconds, metrics)


def _message(lines: Sequence[str]) -> str:
    """What follows "zsq: ", which may have several lines."""
    starts = [i for i, line in enumerate(lines) if line.startswith("zsq: ")]
    return "\n".join(lines[starts[-1]:])[len("zsq: "):] if starts else "\n".join(lines)


def _read(process: "subprocess.Popen[str]", show: Viewer) -> List[str]:
    """The lines of stderr that are no progress, which is shown; warnings and messages are logged."""
    lines: List[str] = []
    begun: Dict[str, float] = {}
    stopped = False
    assert process.stderr is not None
    for line in process.stderr:
        line = line.rstrip("\n")
        if PROGRESS.match(line):
            if not show.show(_progress_of(line, begun)) and not stopped:
                stopped = True  # a second signal would end it at once
                process.send_signal(signal.SIGINT)
            continue
        lines.append(line)
        warning = line.startswith("warning: ")
        if not line.startswith("zsq: "):
            LOG.log(logging.WARNING if warning else logging.INFO, "%s", line[len("warning: "):] if warning else line)
    return lines


def run(verb: str, *arguments: str, show: Viewer) -> Tuple[Dict[str, Any], int]:
    """What `zsq VERB ARGUMENT... --format json` prints, and 0, or 3 if there is a result nevertheless.

    KeyboardInterrupt, and an exception of a callback, stop the program as Ctrl-C does, wait for it and go on.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as result:
        # In a group of its own: else Ctrl-C of a terminal reaches it, too, and twice ends it at once.
        with subprocess.Popen([find(), verb, *arguments, "--format", "json"], stdout=result, stderr=subprocess.PIPE,
                              text=True, errors="replace", start_new_session=True) as process:
            try:
                lines = _read(process, show)
                code = process.wait()
            except BaseException:
                process.send_signal(signal.SIGINT)
                process.communicate()
                raise
            finally:
                show.close()
        result.seek(0)
        text = result.read()
    if code == 0 or (code == ACCURACY_GATE and text):
        return json.loads(text), code
    if code < 0:
        code = STOPPED if code == -signal.SIGINT else 1
    raise ZsqError(_message(lines) or f"`zsq {verb}` ended with exit code {code} without a message", code)
