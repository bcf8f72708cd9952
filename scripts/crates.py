#!/usr/bin/env python3
"""What is built into the tool besides our own code: the crates, their licences and sources.

    crates.py licences CRATE_DIRECTORY     a text with each crate's licence, for who gets the tool
    crates.py sbom CRATE_DIRECTORY         a bill of materials, CycloneDX 1.5 in JSON

Both are made of `cargo metadata`, which knows the crates of Cargo.lock: those that end up in the
program, without tests, build scripts and derive macros. The output depends on Cargo.lock alone.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)


def host():
    said = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return re.search(r"^host: (.*)$", said, re.MULTILINE).group(1)


def crates_in(directory):
    """The package of the directory, and the packages that are linked into its program, by name."""
    command = ["cargo", "metadata", "--quiet", "--format-version=1", "--locked", "--filter-platform", host()]
    ran = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=directory)
    if ran.returncode != 0:
        sys.exit(1)  # cargo has said why
    data = json.loads(ran.stdout)
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    root = data["resolve"]["root"]
    found, waiting = {root}, [root]
    while waiting:
        for needed in nodes[waiting.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in needed["dep_kinds"])
            if is_linked and needed["pkg"] not in found and not is_macro(packages[needed["pkg"]]):
                found.add(needed["pkg"])
                waiting.append(needed["pkg"])
    found.remove(root)
    linked = sorted((packages[name] for name in found), key=lambda crate: (crate["name"], crate["version"]))
    return packages[root], linked


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def licence_texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and LICENCE_FILE.match(path.name))
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in files)
    return ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in texts]


def licences(directory):
    root, crates = crates_in(directory)
    users = collections.defaultdict(list)
    lines = [f"{root['name']} {root['version']} contains these crates:", ""]
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        lines.append(f"  {name}: {crate['license'] or 'see below'}; {crate['repository'] or 'crates.io'}")
        for text in licence_texts(crate):
            users[text].append(name)
    for text, names in users.items():
        lines += ["", "-" * 80, "", f"{', '.join(names)}:", "", text]
    return "\n".join(lines) + "\n"


def component(package):
    known = {
        "type": "library",
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
    }
    if package["license"]:
        known["licenses"] = [{"expression": re.sub(" */ *", " OR ", package["license"])}]
    return known


def sbom(directory):
    root, crates = crates_in(directory)
    whole = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**component(root), "type": "application"}},
        "components": [component(crate) for crate in crates],
    }
    return json.dumps(whole, indent=1) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("licences", "sbom"):
        sys.exit("usage: crates.py licences|sbom CRATE_DIRECTORY")
    print({"licences": licences, "sbom": sbom}[sys.argv[1]](sys.argv[2]), end="")
