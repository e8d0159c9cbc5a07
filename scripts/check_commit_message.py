#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a commit message: a subject of at most 72 characters without a full stop, an empty line, a body.

check_commit_message.py FILE: prints what is wrong and exits 1 if something is. The hook commit-msg of
.pre-commit-config.yaml; lines that start with # are git's.
"""
import pathlib
import sys

MAX_SUBJECT = 72
MADE_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")


def offences(text):
    text = text.split("# ------------------------ >8 ------------------------")[0]
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("#")]
    subject, rest = (lines or [""])[0], lines[1:]
    if subject.startswith(MADE_BY_GIT):
        return
    if not subject:
        yield "the first line is empty; say in it what the commit does"
    if len(subject) > MAX_SUBJECT:
        yield f"the subject has {len(subject)} characters; {MAX_SUBJECT} are the limit"
    if subject.endswith("."):
        yield "the subject ends with a full stop; leave it out"
    if rest and rest[0]:
        yield "the second line is not empty"
    if not any(rest):
        yield "there is no body; say why the change is made"


if __name__ == "__main__":
    found = list(offences(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")))
    for message in found:
        print(f"commit message: {message}", file=sys.stderr)
    sys.exit(bool(found))
