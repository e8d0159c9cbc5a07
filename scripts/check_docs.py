#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documents: links, anchors and paths lead somewhere, and what they name exists.

check_docs.py [--root FOLDER] [--zsq PROGRAM]: prints each offence as file:line: message and exits 1 if
there is one. Without PROGRAM only links, anchors and paths of *.md, docs/ and docs/log/ are checked; with it also
every recipe, recipe key and flag of `zsq` that they show, and the lists of operators between the lines
<!-- operators of KIND --> and <!-- end of operators -->, which --write makes anew from what the program says. KIND is
onnx, onnx_constants, aten or counts. CHANGELOG.md and docs/log/ may name what was. scripts/prose.py
adds how the documents are written: the length of sentences, and the field's terms, in the sources too.
"""
import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import types

import prose

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
EXTERNAL = re.compile(r"(https?|mailto):")
FENCE = re.compile(r"^\s*```(\w*)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
CODE = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"(?:^|[\s(])(?:build/bin/)?zsq\s+(.*)")
FLAG = re.compile(r"(?<![\w-])--([a-z][\w-]*)")
SET = re.compile(r"--set[ =]([a-z][a-z0-9_.]*=[^\s`\"']+)")
KEY = re.compile(r"(?<![\w./-])((?:model|data|generate|quantize|mixed|reconstruct|finetune|export|process)"
                 r"(?:\.[a-z_]+)+)(?![\w/]|\.[\w])")
FILE_SUFFIXES = {"onnx", "safetensors", "h", "cpp", "py", "pth", "md", "yaml", "json", "html", "npz"}
RECIPE = re.compile(r"--recipe[ =]([a-z][\w/+]*)(?![\w.])")
FULL_RECIPE = re.compile(r"(?<![\w/.])((?:paper|ablation)/[a-z0-9_]+)(?![\w.*/])")
ABLATION_ROW = re.compile(r"(?<![\w/])(\d\d_[a-z_]+)(?![\w.*])")
SOURCE_FILE = re.compile(r"(?:\w[\w.-]*/)+[\w.-]+\.(?:h|cpp|cu|py|sh|yaml|cmake|svg|json)")
YAML_LINE = re.compile(r"^(\s*)([a-z_]+):\s*(\S?)")
INCLUDE = re.compile(r"\s*#include\s*([<\"][^>\"]+\.h[>\"])")
OPERATORS = re.compile(r"(<!-- operators of (\w+) -->\n)(.*?)(<!-- end of operators -->)", re.S)
YAML_EXTRA = {"extends", "about", "expects"}


class Document:
    """Lines of a Markdown file, each with the language of the fence that it is in ('' for prose)."""

    def __init__(self, path):
        self.path, self.lines = path, []
        fence = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := FENCE.match(line):
                fence = None if fence is not None else (match[1] or "text")
                continue
            self.lines.append((number, line, fence or ""))

    def prose(self):
        return ((number, line) for number, line, fence in self.lines if not fence)

    def fenced(self, *languages):
        return ((number, line) for number, line, fence in self.lines if fence in languages)

    def anchors(self):
        """As GitHub makes them: lower case, punctuation gone, spaces as dashes, repeats numbered."""
        seen, result = {}, set()
        for _, line in self.prose():
            for name in re.findall(r'<a (?:name|id)="([^"]+)"', line):
                result.add(name)
            if match := HEADING.match(line):
                text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).replace("`", "")
                slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
                count = seen.get(slug, 0)
                seen[slug] = count + 1
                result.add(f"{slug}-{count}" if count else slug)
        return result

    def commands(self):
        """(line number, arguments) of each `zsq ...`, in fences (joined over backslashes) and in prose."""
        held, start = "", 0
        for number, line in self.fenced("sh", "bash", "console"):
            start = start if held else number
            held += line.split(" #")[0].rstrip()
            if held.endswith("\\"):
                held = held[:-1]
                continue
            if match := COMMAND.search(held):
                yield start, match[1]
            held = ""
        for number, line in self.prose():
            for code in CODE.findall(line):
                if match := COMMAND.match(code):
                    yield number, match[1]

    def shown(self):
        """(line number, text) of all that is code: shell fences and inline code."""
        yield from self.fenced("sh", "bash", "console")
        for number, line in self.prose():
            yield from ((number, code) for code in CODE.findall(line))

    def yaml_keys(self):
        path = []
        for number, line in self.fenced("yaml"):
            if match := YAML_LINE.match(line):
                indent = len(match[1])
                path = [(at, key) for at, key in path if at < indent] + [(indent, match[2])]
                if match[3] and path[0][1] not in YAML_EXTRA:
                    yield number, ".".join(key for _, key in path)


class Program:
    """What `zsq` itself says that exists."""

    def __init__(self, path):
        self.path = path
        self.keys = set(re.findall(r"^([a-z][\w.]*):", self.run("recipes", "--settings"), re.M))
        self.sections = {key[:at] for key in self.keys for at in range(len(key)) if key[at] == "."}
        self.recipes = set(re.findall(r"^  (\S+)", self.run("recipes", "--all"), re.M))
        self.verbs = set(re.findall(r"^  ([a-z]+) ", self.run("--help"), re.M))

    def run(self, *arguments):
        done = subprocess.run([self.path, *arguments], capture_output=True, text=True)
        return done.stdout + done.stderr

    @functools.cache
    def flags(self, verb):
        """With underscores; `zsq` takes dashes as well."""
        return {flag.replace("-", "_") for flag in FLAG.findall(self.run(verb, "--help"))} | {"help"}

    @functools.cached_property
    def operators(self):
        return json.loads(self.run("inspect", "--list_operators", "--format", "json"))

    def operators_text(self, kind):
        """What stands between the two lines of OPERATORS; None if there is no such kind."""
        lists = self.operators
        if kind == "counts":
            text = (f"ONNX of opsets {lists['first_opset']} to {lists['last_opset']}: {len(lists['onnx'])} operators, and "
                    f"{len(lists['onnx_constants'])} on constants and sizes; TorchScript and `.pt2`: "
                    f"{len(lists['aten'])} operators of ATen")
        elif isinstance(lists.get(kind), list):
            text = ", ".join(f"`{name}`" for name in lists[kind])
        else:
            return None
        return "\n".join(textwrap.wrap(text, 118, break_on_hyphens=False)) + "\n"

    def rejects(self, recipe, settings):
        """What is said of `--set` arguments that the recipe does not take; empty: it takes them."""
        arguments = [part for setting in settings for part in ("--set", setting)]
        done = subprocess.run([self.path, "recipes", recipe, *arguments], capture_output=True, text=True)
        return done.stderr.strip() if done.returncode else ""


def check_links(root, documents):
    by_path = {document.path.resolve(): document for document in documents}
    for document in documents:
        for number, line in document.prose():
            for target in (a or b for a, b in LINK.findall(CODE.sub("", line))):
                if EXTERNAL.match(target):
                    continue
                name, _, anchor = target.partition("#")
                path = (document.path.parent / name).resolve() if name else document.path.resolve()
                if not path.exists():
                    yield document, number, f"links to {target}, which does not exist"
                elif root not in path.parents and path != root:
                    yield document, number, f"links to {target}, outside of the repository"
                elif anchor and (path not in by_path or anchor not in by_path[path].anchors()):
                    yield document, number, f"links to {target}, but there is no such heading"


def check_source_files(root, document):
    """Inline code that is a path of the repository; my_* stands for what a reader adds.

    Folders that git ignores hold what commands have made here, and others elsewhere.
    """
    ignored = root / ".gitignore"
    made = {line.strip().strip("/") for line in ignored.read_text().splitlines()} if ignored.exists() else set()
    for number, line in document.prose():
        for code in CODE.findall(line):
            first = code.split("/")[0]
            ours = SOURCE_FILE.fullmatch(code) and (root / first).is_dir() and first not in made and "/my_" not in code
            if ours and not (root / code).exists():
                yield document, number, f"there is no file {code}"


def check_includes(root, document):
    """C++ is shown as users write it: public headers, as <zsq/...>."""
    listed = root / "cmake/public_headers.txt"
    public = {f"<zsq/{line}>" for line in listed.read_text().splitlines()} if listed.is_file() else set()
    for number, line in document.fenced("cpp"):
        if (match := INCLUDE.match(line)) and match[1] not in public:
            yield document, number, f"{match[1]} is no public header; they are in cmake/public_headers.txt"


def check_keys(program, document):
    found = [(number, key) for number, text in document.shown() for key in KEY.findall(text)]
    for number, key in found + list(document.yaml_keys()):
        if key.rsplit(".", 1)[1] in FILE_SUFFIXES and key not in program.keys:
            continue
        if key not in program.keys and key not in program.sections:
            yield document, number, f"there is no setting {key}"


def check_settings(program, document):
    """The settings of a command together, values too, on the recipe that it names."""
    for number, command in document.commands():
        settings, recipe = SET.findall(command), RECIPE.search(command)
        recipe = recipe[1] if recipe else "deploy"
        if settings and all(name in program.recipes for name in recipe.split("+")):
            if said := program.rejects(recipe, settings):
                yield document, number, said.splitlines()[0]


def check_recipes(program, document):
    for number, text in document.shown():
        names = [name for joined in RECIPE.findall(text) for name in joined.split("+")]
        names += FULL_RECIPE.findall(text)
        names += [f"ablation/{row}" for row in ABLATION_ROW.findall(text)]
        for name in names:
            if name not in program.recipes:
                yield document, number, f"there is no recipe {name}"


def check_flags(program, document, scripts):
    """Of a whole command: flags of its verb. Of a flag alone: of any verb, or of a script."""
    anywhere = set().union(*(program.flags(verb) for verb in program.verbs)) | {"version"}
    for number, command in document.commands():
        verb = command.split()[0]
        if verb.startswith("-") or verb.isupper():
            continue
        if verb not in program.verbs:
            yield document, number, f"there is no verb zsq {verb}"
            continue
        for flag in FLAG.findall(command):
            if flag.replace("-", "_") not in program.flags(verb):
                yield document, number, f"zsq {verb} has no flag --{flag}"
    for number, line in document.prose():
        for code in CODE.findall(line):
            if code.startswith("--"):
                for flag in FLAG.findall(code):
                    if flag.replace("-", "_") not in anywhere and f"--{flag}" not in scripts:
                        yield document, number, f"nothing has a flag --{flag}"


def check_operators(program, document, write=False):
    """The blocks are what the program says; `write` makes them so."""
    text = document.path.read_text(encoding="utf-8")
    for block in OPERATORS.finditer(text):
        number, said = text[:block.start()].count("\n") + 1, program.operators_text(block[2])
        if said is None:
            yield document, number, f"there are no operators of {block[2]}"
        elif block[3] != said and not write:
            yield document, number, f"the operators of {block[2]} are others now; scripts/check_docs.py --write"
    if write:
        path, changed = document.path, OPERATORS.sub(lambda b: b[1] + (program.operators_text(b[2]) or b[3]) + b[4], text)
        if changed != text:
            path.write_text(changed, encoding="utf-8")


def offences(root, zsq, write=False):
    documents = [Document(path) for folder in ("", "docs/", "docs/log/") for path in sorted(root.glob(f"{folder}*.md"))]
    yield from check_links(root, documents)
    documents = [document for document in documents if document.path.name != "CHANGELOG.md"]
    for document in documents:
        yield from check_source_files(root, document)
    documents = [document for document in documents if document.path.parent.name != "log"]
    for document in documents:
        yield from check_includes(root, document)
    for path, number, message in prose.offences(root):
        yield types.SimpleNamespace(path=path), number, message
    if zsq is None:
        return
    program = Program(zsq)
    scripts = "".join(path.read_text(encoding="utf-8") for folder in ("scripts", "cmake", ".")
                      for path in (root / folder).glob("*") if path.suffix in {".py", ".sh", ".cmake", ".txt"})
    for document in documents:
        yield from check_keys(program, document)
        yield from check_settings(program, document)
        yield from check_recipes(program, document)
        yield from check_flags(program, document, scripts)
        yield from check_operators(program, document, write)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
    parser.add_argument("--zsq", help="the program, to check what it offers")
    parser.add_argument("--write", action="store_true", help="the lists of operators, from the program")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    found = list(offences(root, arguments.zsq, arguments.write))
    for document, number, message in found:
        print(f"{document.path.resolve().relative_to(root)}:{number}: {message}")
    if not found:
        print("the documents keep their promises")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
