#!/usr/bin/env python3
"""wheel_notices.py WHEEL: adds the licences of what the wheel holds of others, as their Debian packages state them.

Of the libraries that auditwheel copied into zsq.libs, and of the headers and static libraries that are compiled in.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Of libraries without a file of their own in the wheel.
HEADERS = [line for line in (pathlib.Path(__file__).parents[1] / "cmake/third_party.txt").read_text().splitlines()
           if not line.startswith("#")]
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu")


def package_with(*patterns: str) -> str:
    """The Debian package that one of the files is of, without headers where there is a choice."""
    for pattern in patterns:
        found = subprocess.run(["dpkg-query", "-S", pattern], capture_output=True, text=True, check=False).stdout
        packages = {line.split(":")[0] for line in found.splitlines()}
        if packages:
            return min(packages, key=lambda package: (package.endswith("-dev"), package))
    sys.exit(f"wheel_notices: no Debian package has {patterns[0]}, so that its licence is not known")


def package_of(library: pathlib.Path) -> str:
    """The Debian package of zsq.libs/libzip-1a2b3c4d.so.5.5."""
    name = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library.name)
    return package_with(*(f"{folder}/{name}{end}" for folder in FOLDERS for end in ("", "*")))


def main(wheel: pathlib.Path) -> None:
    run = [sys.executable, "-m", "wheel"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*run, "unpack", wheel, "-d", folder], check=True, stdout=subprocess.DEVNULL)
        (tree,) = pathlib.Path(folder).iterdir()
        (info,) = tree.glob("*.dist-info")
        notices = info / "licenses/third_party"
        notices.mkdir(parents=True)
        packages = {package_of(library) for library in (tree / "zsq.libs").iterdir()}
        packages |= {package_with(f"/usr/include/{header}") for header in HEADERS}
        for package in sorted(packages):
            copyright_file = pathlib.Path("/usr/share/doc") / package / "copyright"
            if not copyright_file.exists():
                sys.exit(f"wheel_notices: {copyright_file} is missing: install {package}")
            (notices / f"{package}.txt").write_bytes(copyright_file.read_bytes())
        wheel.unlink()
        subprocess.run([*run, "pack", tree, "-d", wheel.parent], check=True, stdout=subprocess.DEVNULL)
    print("wheel_notices: licences of " + ", ".join(sorted(packages)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
