#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how the documents are written: sentences of at most 35 words, and the field's terms.

prose.py [ROOT]: prints each offence as file:line: message and exits 1 if there is one. scripts/check_docs.py
checks the same. A sentence is counted in Markdown outside of code blocks, tables and headings; inline code,
a link's address and a picture are one word, and a list item, a table or a blank line ends a sentence. Terms
are checked in Markdown, in comments and in strings of the sources. docs/log/, which keeps measurements as
they were made, and CHANGELOG.md may have longer sentences.
"""
import os
import pathlib
import re
import sys

MAX_WORDS = 35

# What was written before -> the field's term. Matched as whole phrases, in any case, also over line ends.
TERMS = {
    "nothing was chosen on": "held-out network",
    "no choice of the engine was made on": "held-out network",
    "what the teacher says": "the teacher's logits",
    "steadier than its word": "averaged over augmented views",
    "teacher asked twice": "teacher logits averaged over two views",
    "teacher that is asked twice": "averaging teacher logits over two views",
    "which images tell": "which held-out images predict accuracy",
    "strength back": "restores each channel's mean and standard deviation",
    "mean and strength": "mean and standard deviation",
    "way of channels": "inverted bottleneck",
    "through both block after block": "runs both networks block by block",
    "thought to take": "estimated time",
    "thought to need": "estimated memory",
    "thought to fit": "estimated to fit",
    "compute in other bits": "CPUs round differently",
    "answered most like its teacher": "lowest KL to the teacher",
    "no step of its phase": "outside the iteration count",
    "what the papers show": "analyses of AIT and Qimera",
    "the way back": "backward pass",
    "nats an image": "nats per image",
    "told by BatchNorm": "inferred from the BatchNorm running statistics",
    "scales that learn": "learnable scales",
    "that no row had a part in": "held-out synthetic images",
    "rounded to the second order": "GPTQ-style rounding",
}
# Words that stand in code as names too, so strings and code are not searched for them.
COMMENT_TERMS = {"behind": "after"}
ALLOWED = re.compile(r"\b(?:left|leaves|leave) (?:\w+ )?behind\b", re.I)

SOURCES = {".h", ".cpp", ".cu", ".cuh", ".c", ".py", ".sh", ".cmake", ".yaml", ".txt"}
SKIPPED = re.compile(r"\.git|\.deps|out|build.*|__pycache__")  # folders
QUOTING = {"prose.py", "check_docs_test.py", "prose_test.py"}  # they name the words themselves

FENCE = re.compile(r"^\s*(```|~~~)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
BREAK = re.compile(r"^\s*(?:$|#{1,6}\s|\||<!--|</?(?:picture|source|img|div|p|details|summary)\b|-{3,}$)")
GENERATED = ("<!-- operators of", "<!-- end of operators")  # lists that scripts/check_docs.py --write makes
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|et al|al|cf|vs|approx|Fig|Eq|No|St)\.$")
END = re.compile(r"[.!?][)\"'*_]*(?=\s|$)")


def plain(text):
    """Prose as a reader counts it: inline code, pictures and addresses are one word each."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "picture", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^<> ][^<>]*>", "", text)
    return re.sub(r"https?://\S+", "address", text)


def paragraphs(text):
    """(line number, text) of each paragraph and list item of Markdown, code blocks, tables and headings left out."""
    held, start, fenced = [], 0, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        fence = FENCE.match(line)
        if fence or fenced or BREAK.match(line) or ITEM.match(line):
            if held:
                yield start, held
            held = []
        if fence:
            fenced = not fenced
        elif line.startswith(GENERATED):
            fenced = not fenced
        elif not fenced and not BREAK.match(line):
            start = start if held else number
            held.append(ITEM.sub("", line) if ITEM.match(line) else line.strip().removeprefix("> "))


def sentences(text):
    """(line number, number of words) of each sentence."""
    for start, lines in paragraphs(text):
        joined = plain("\n".join(lines))
        at = 0
        for end in [*END.finditer(joined), None]:
            stop = end.end() if end else len(joined)
            if end and ABBREVIATION.search(joined[at:end.start() + 1]):
                continue
            words = [word for word in joined[at:stop].split() if re.search(r"\w", word)]
            first = re.search(r"\S", joined[at:stop])
            if words:
                yield start + joined[:at + first.start()].count("\n"), len(words)
            at = stop


def long_sentences(text):
    for number, words in sentences(text):
        if words > MAX_WORDS:
            yield number, f"a sentence of {words} words; {MAX_WORDS} are the limit"


def pattern(phrase):
    """The phrase as whole words, also over a line end with the marks of a comment, a quote or a string."""
    words = r"(?:[ \t]|\"?\n[ \t]*(?://|#|>|\")?[ \t]*)+".join(re.escape(word) for word in phrase.split())
    return re.compile(rf"(?<![\w]){words}(?![\w])", re.I)


PATTERNS = [(pattern(phrase), phrase, term) for phrase, term in TERMS.items()]
COMMENT_PATTERNS = [(pattern(phrase), phrase, term) for phrase, term in COMMENT_TERMS.items()]


def comments(text):
    """The text with everything but comments blanked, so that places stay."""
    kept = []
    for line in text.split("\n"):
        match = re.search(r"(?<![:\"\w])(?://|#(?!include|define|if|endif|pragma)).*", line)
        kept.append(" " * match.start() + match[0] if match else "")
    return "\n".join(kept)


def home_made(text, markdown):
    """(line number, message) of each phrase for which the field has a term."""
    prose = text if markdown else comments(text)
    prose = ALLOWED.sub(lambda match: " " * len(match[0]), prose)
    if markdown:
        prose = re.sub(r"`[^`\n]*`", lambda match: " " * len(match[0]), prose)
    for searched, patterns in ((text, PATTERNS), (prose, COMMENT_PATTERNS)):
        for regex, phrase, term in patterns:
            for match in regex.finditer(searched):
                yield searched[:match.start()].count("\n") + 1, f'"{phrase}"; the field says: {term}'


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not SKIPPED.fullmatch(name))
        for name in sorted(names):
            if pathlib.Path(name).suffix in SOURCES | {".md"} and name not in QUOTING:
                yield pathlib.Path(folder) / name


def offences(root):
    """(path, line number, message) of everything that this module checks."""
    for path in files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        markdown = path.suffix == ".md"
        if markdown and name != "CHANGELOG.md" and not name.startswith("docs/log/"):
            yield from ((path, *found) for found in long_sentences(text))
        if name != "CHANGELOG.md":
            yield from ((path, *found) for found in home_made(text, markdown))


def main():
    root = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parents[1]).resolve()
    found = list(offences(root))
    for path, number, message in found:
        print(f"{path.relative_to(root)}:{number}: {message}")
    if not found:
        print("the documents are in short sentences and the field's terms")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
