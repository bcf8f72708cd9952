#!/usr/bin/env python3
"""Makes a wheel for Python of the built tool and library, without a network: the same bytes from the same files.

Usage: wheel.py --version VERSION --tag PLATFORM --library FILE --tool FILE --licences FILE --to FOLDER

The date of all that is in it is SOURCE_DATE_EPOCH's. PLATFORM is a tag as manylinux_2_31_x86_64.
"""

import argparse
import base64
import hashlib
import os
import time
import zipfile
from pathlib import Path

PACKAGING = Path(__file__).resolve().parent.parent / "packaging" / "python"


def contents(options):
    """(name in the wheel, bytes, mode) of each file but RECORD."""
    info = f"snug-{options.version}.dist-info"
    readme = (PACKAGING / "README.md").read_text(encoding="utf-8")
    metadata = f"""Metadata-Version: 2.1
Name: snug
Version: {options.version}
Summary: Run Python, and any program, on the snug memory allocator
License: MIT
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""
    wheel = f"Wheel-Version: 1.0\nGenerator: snug\nRoot-Is-Purelib: false\nTag: py3-none-{options.tag}\n"
    licence = (PACKAGING.parent.parent / "LICENSE").read_bytes()
    for name in ("__init__.py", "__main__.py"):
        yield f"snug/{name}", (PACKAGING / name).read_bytes(), 0o644
    yield "snug/lib/libsnug.so.0", Path(options.library).read_bytes(), 0o755
    yield "snug/bin/snug", Path(options.tool).read_bytes(), 0o755
    yield f"{info}/LICENSE", licence, 0o644
    yield f"{info}/licences.txt", Path(options.licences).read_bytes(), 0o644
    yield f"{info}/entry_points.txt", b"[console_scripts]\nsnug = snug.__main__:main\n", 0o644
    yield f"{info}/METADATA", metadata.encode(), 0o644
    yield f"{info}/WHEEL", wheel.encode(), 0o644


def main():
    parser = argparse.ArgumentParser()
    for name in ("version", "tag", "library", "tool", "licences", "to"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    path = Path(options.to) / f"snug-{options.version}-py3-none-{options.tag}.whl"
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:

        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, data)

        for name, data, mode in contents(options):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, mode)
        name = f"snug-{options.version}.dist-info/RECORD"
        add(name, "".join(record + [f"{name},,\n"]).encode(), 0o644)


if __name__ == "__main__":
    main()
