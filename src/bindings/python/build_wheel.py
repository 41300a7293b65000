"""Packs a wheel around a program that is built already, without building it anew as maturin would.

    python build_wheel.py PROGRAM FOLDER

What is in it is what `pyproject.toml` says; the format is that of https://packaging.python.org/specifications.
"""

import base64
import hashlib
import os
import platform
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def project():
    """The name, the version and the description; without a parser of TOML, which Python has since 3.11 only."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        text = file.read()
    return {key: re.search(rf'^{key} = "(.+)"$', text, re.MULTILINE).group(1) for key in ("name", "version", "description")}


def files(program, about):
    """What is in the wheel: path, content, mode."""
    package = os.path.join(HERE, "kubarium")
    for name in sorted(os.listdir(package)):
        if name.endswith(".py"):
            yield f"kubarium/{name}", read(os.path.join(package, name)), 0o644
    yield f"kubarium-{about['version']}.data/scripts/kubarium", read(program), 0o755
    info = f"kubarium-{about['version']}.dist-info"
    tag = f"py3-none-{platform.system().lower()}_{platform.machine()}"
    wheel = f"Wheel-Version: 1.0\nGenerator: kubarium\nRoot-Is-Purelib: false\nTag: {tag}\n"
    metadata = f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\nSummary: {about['description']}\n"
    yield f"{info}/WHEEL", wheel.encode(), 0o644
    yield f"{info}/METADATA", metadata.encode(), 0o644
    yield f"{info}/entry_points.txt", b"[pytest11]\nkubarium = kubarium.pytest_plugin\n", 0o644


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main(program, folder):
    about = project()
    tag = f"py3-none-{platform.system().lower()}_{platform.machine()}"
    target = os.path.join(folder, f"kubarium-{about['version']}-{tag}.whl")
    record = []
    os.makedirs(folder, exist_ok=True)
    # Nothing is compressed: it is for this machine alone, and soon gone.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as wheel:
        for path, content, mode in files(program, about):
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(content)}\n")
        path = f"kubarium-{about['version']}.dist-info/RECORD"
        wheel.writestr(path, "".join(record) + f"{path},,\n")
    print(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
