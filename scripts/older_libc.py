#!/usr/bin/env python3
"""Makes libraries to link with, so that what is linked runs on an older glibc than this machine's.

Usage: older_libc.py VERSION LIBC FOLDER
       older_libc.py VERSION LIBC --check FILE...    whether these could be linked so; says what they need that is newer

They define what LIBC, the glibc of this machine, defines, each name in the newest form that VERSION had, by the
versions that LIBC itself gives them. A name that VERSION did not have is not there: a weak reference to it stays
without a version, and is met where there is one; any other does not link, so nothing newer comes in unseen.
Before 2.34 threads and dlsym were in libraries of their own, which are asked for by name.
"""

import re
import subprocess
import sys
from pathlib import Path


# What packaging/older_libc.c defines.
REPLACED = {"fstat"}


def number(version):
    return [int(part) for part in version.split(".")]


def forms(libc, newest):
    """(name, version, type) of the form of each name that is to be linked with."""
    best = {}
    listed = subprocess.run(["readelf", "--dyn-syms", "-W", libc], check=True, capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        words = line.split()
        if len(words) < 8 or words[6] == "UND" or "@" not in words[7] or words[3] == "TLS":
            continue
        name, _, version = words[7].partition("@")
        version = version.lstrip("@")
        match = re.fullmatch(r"GLIBC_([0-9.]+)", version)
        if match and number(match[1]) <= newest:
            kind = "object" if words[3] == "OBJECT" else "function"
            best[name] = max(best.get(name, ([],)), (number(match[1]), version, kind, int(words[2], 0)))
    return best


def check(version, libc, files):
    """Prints what the files need that VERSION did not have; succeeds if there is nothing."""
    there, newer = forms(libc, number(version)), []
    for file in files:
        listed = subprocess.run(["nm", "-D", "--undefined-only", file], check=True, capture_output=True, text=True)
        for kind, name in re.findall(r"^ +(\S) (\S+?)@+GLIBC_\S+$", listed.stdout, re.MULTILINE):
            # What is not weak must have an older form, or be written for it in packaging/older_libc.c.
            if kind == "U" and name not in there and name not in REPLACED:
                newer.append(f"{file}: {name} is newer than glibc {version}")
    print("\n".join(newer) or f"nothing is newer than glibc {version}")
    return 1 if newer else 0


def make(folder, name, text="", versions=""):
    assembly = folder / f"{name}.s"
    script = folder / f"{name}.map"
    assembly.write_text(text)
    script.write_text(versions)
    command = ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", folder / name, assembly]
    subprocess.run(command + ([f"-Wl,--version-script={script}"] if versions else []), check=True)


def main(version, libc, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text, versions = [".data"], set()
    for index, (name, (_, form, kind, size)) in enumerate(sorted(forms(libc, number(version)).items())):
        label = f"form_{index}"
        text += [f".globl {label}", f".type {label}, %{kind}", f".size {label}, {size}", f"{label}: .zero {max(size, 1)}"]
        text += [f".symver {label}, {name}@@{form}, remove"]
        versions.add(form)
    make(folder, "libc.so.6", "\n".join(text) + "\n", "".join(f"{form} {{ }};\n" for form in sorted(versions)))
    make(folder, "libpthread.so.0")
    make(folder, "libdl.so.2")
    for library in ("libc.so.6", "libpthread.so.0", "libdl.so.2"):
        link = folder / f"{library.split('.')[0]}.so"
        link.unlink(missing_ok=True)
        link.symlink_to(library)


if __name__ == "__main__":
    if len(sys.argv) > 4 and sys.argv[3] == "--check":
        sys.exit(check(sys.argv[1], sys.argv[2], sys.argv[4:]))
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
