#!/usr/bin/env python3
"""Checks the layers of the library: which file may include which.

Usage: check_layers.py [ROOT]     ROOT holds src/ and include/; default: this repository

The folders in src/ are layers, in the order of LAYERS, lowest first. Rules:
  - a file includes only files of its own layer and of lower ones;
  - public headers (include/) are for the layers in MAY_INCLUDE_PUBLIC;
  - no chain of includes leads back to where it began;
  - an included file of ours exists; what is included is written out, not a macro;
  - every source file is in a layer, and no file in src/ has more than MAX_LINES lines.
Each violation is one line, `file:line: what is wrong`. The exit status is 1 if there is any.
"""

import re
import sys
from pathlib import Path, PurePosixPath

LAYERS = (
    "base platform options stats provider meta segment span cell slab magazine heap report api"
).split()
MAY_INCLUDE_PUBLIC = {"api", "heap", "report"}
MAX_LINES = 600
SOURCE_SUFFIXES = {".c", ".h", ".cc", ".cpp", ".hpp", ".def", ".inc", ".S"}

# Comments and string literals; what follows `#include` is no literal to the preprocessor, so it is
# kept apart by being matched first.
TOKENS = re.compile(
    r'(?P<include>^[ \t]*#[ \t]*include[ \t]*(?:"[^"\n]*"|<[^>\n]*>))'
    r'|(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'",
    re.MULTILINE | re.DOTALL,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?\b[ \t]*(.*?)[ \t]*$', re.MULTILINE)


def without_comments(text):
    """The text with comments blanked out, line numbers kept."""

    def blank(match):
        if match.group("comment") is None:
            return match.group(0)
        return " " + "\n" * match.group(0).count("\n")

    return TOKENS.sub(blank, text)


def includes_of(text):
    """Yields (line number, what stands after #include) for each include directive."""
    text = without_comments(text)
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def layer_of(path):
    """The layer of a path below src/, or None if it is in none."""
    parts = path.parts
    return parts[1] if len(parts) > 2 and parts[0] == "src" and parts[1] in LAYERS else None


class Tree:
    """The source files below a root, their includes and what is wrong with them."""

    def __init__(self, root):
        self.root = root
        self.faults = []
        self.includes = {}  # path -> [(line, path included)], both relative to the root
        for folder in ("src", "include"):
            for file in sorted((root / folder).rglob("*")):
                if file.is_file():
                    self.read(PurePosixPath(file.relative_to(root).as_posix()))

    def fault(self, path, line, message):
        self.faults.append(f"{path}:{line}: {message}")

    def read(self, path):
        text = (self.root / path).read_text(encoding="utf-8", errors="replace")
        lines = len(text.splitlines())
        if path.parts[0] == "src" and lines > MAX_LINES:
            self.fault(path, lines, f"{lines} lines; a file in src/ has at most {MAX_LINES}")
        if path.suffix not in SOURCE_SUFFIXES:
            return
        if path.parts[0] == "src" and layer_of(path) is None:
            self.fault(path, 1, f"not in a layer; the layers are {' '.join(LAYERS)}")
        self.includes[path] = []
        for line, written in includes_of(text):
            target = self.resolve(path, line, written)
            if target is not None:
                self.includes[path].append((line, target))
                self.check_direction(path, line, target)

    def resolve(self, path, line, written):
        """The file of ours that an include names, or None if it is the system's or at fault."""
        match = re.match(r'(?:"([^"]+)"|<([^>]+)>)', written)
        if not match:
            self.fault(path, line, f"#include {written}: write the file's name out")
            return None
        quoted, name = match.group(1) is not None, match.group(1) or match.group(2)
        places = [PurePosixPath("src"), PurePosixPath("include")]
        if quoted:
            places.insert(0, path.parent)
        for place in places:
            found = (self.root / place / name).resolve()
            if found.is_file() and found.is_relative_to(self.root):
                return PurePosixPath(found.relative_to(self.root).as_posix())
        if quoted or name.startswith("snug/"):
            self.fault(path, line, f"#include {written}: there is no such file")
        return None

    def check_direction(self, path, line, target):
        layer, lower = layer_of(path), layer_of(target)
        if path.parts[0] == "include":
            if target.parts[0] != "include":
                self.fault(path, line, f"a public header may not include {target}")
        elif layer is None:
            return  # reported already
        elif target.parts[0] == "include":
            if layer not in MAY_INCLUDE_PUBLIC:
                self.fault(path, line, f"{layer} may not include the public header {target}")
        elif lower is not None and LAYERS.index(lower) > LAYERS.index(layer):
            self.fault(path, line, f"{layer} may not include {target}: {lower} is a higher layer")

    def find_cycles(self):
        """Reports each include that closes a circle, by a depth-first walk."""
        done, trail = set(), []

        def walk(path):
            trail.append(path)
            for line, target in self.includes.get(path, ()):
                if target in trail:
                    circle = [*trail[trail.index(target) :], target]
                    self.fault(path, line, "include cycle: " + " -> ".join(map(str, circle)))
                elif target not in done:
                    walk(target)
            done.add(trail.pop())

        for path in self.includes:
            if path not in done:
                walk(path)


def main(arguments):
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__.strip())
        return 0 if arguments[0] in ("-h", "--help") else 2
    root = Path(arguments[0] if arguments else Path(__file__).parent.parent).resolve()
    tree = Tree(root)
    tree.find_cycles()
    if not any(path.parts[0] == "src" for path in tree.includes):
        tree.fault("src", 1, "no source files found")
    for fault in tree.faults:
        print(fault)
    if not tree.faults:
        print(f"layers: {len(tree.includes)} files, all in order")
    return 1 if tree.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
