#!/usr/bin/env python3
"""Checks the layers of the library: which file may include which, and that none call each other in circles.

Usage: check_layers.py [ROOT]     ROOT holds src/ and include/; default: this repository

The folders in src/ are layers, in the order of LAYERS, lowest first. Rules:
  - a file includes only files of its own layer and of lower ones;
  - public headers (include/) are for the layers in MAY_INCLUDE_PUBLIC;
  - no chain of includes leads back to where it began;
  - no chain of calls between files of one layer does (c_calls.py says what a call is), nor between
    modules of the tool, if there is a tool/src (rust_uses.py);
  - in a layer that has FLOORS, no file includes or calls one of a higher floor, and each has its floor;
  - an included file of ours exists; what is included is written out, not a macro;
  - every source file is in a layer, and no file in src/ has more than MAX_LINES lines;
  - there are floating-point numbers in the files of MAY_FLOAT alone: a program may have what is not exact
    trapped, and look at the marks that its own arithmetic left (platform/floats.h).
Each violation is one line, `file:line: what is wrong`. The exit status is 1 if there is any.
"""

import re
import sys
from pathlib import Path, PurePosixPath

from c_calls import read_calls
from circles import find_groups, shortest_circle
from rust_uses import read_uses

LAYERS = (
    "base platform options stats provider meta profile retention pageheap cell slab magazine hardened heap report api"
).split()
# Files of a layer, without their endings, from the lowest floor up: what a mechanism may not know of.
FLOORS = {
    "pageheap": (
        "segment span segment_cache runs large_table large_sizes pages_in_use huge_price page_heap_state large_margin",  # structures
        "run segments sparse recent nearby block_zero",  # what is done with them: cut, join, grow, drop, clear
        "page_heap_purge run_find huge_pages meta_pages",  # what is decided: what is kept, and which run serves
        "page_heap large_recent large page_heap_clear page_heap_check",  # taking and freeing, of both of these
    )
}
MAY_INCLUDE_PUBLIC = {"api", "heap", "report"}
MAX_LINES = 600
# What computes in a state of its own; a conversion that is exact; a number of the program; a program that writes docs/.
MAY_FLOAT = set("profile/profile profile/sampler profile/sites base/bits api/provider options/options_doc".split())
FLOAT = re.compile(r"\b(?:double|float)\b|\b\d+\.\d")

# Files of this repository that still call each other in circles, to be taken apart. The list cannot
# rot: what stands here and is no such group, exactly, is a fault as well.
KNOWN_GROUPS = ()
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
        self.texts = {}  # path -> text, of the C files in a layer
        for folder in ("src", "include"):
            for file in sorted((root / folder).rglob("*")):
                if file.is_file():
                    self.read(PurePosixPath(file.relative_to(root).as_posix()))
        self.modules = {
            PurePosixPath(file.relative_to(root).as_posix()): file.read_text(encoding="utf-8")
            for file in (root / "tool" / "src").rglob("*.rs")
        }

    def fault(self, path, line, message):
        self.faults.append(f"{path}:{line}: {message}")

    def read(self, path):
        text = (self.root / path).read_text(encoding="utf-8", errors="replace")
        lines = len(text.splitlines())
        if path.parts[0] == "src" and lines > MAX_LINES:
            self.fault(path, lines, f"{lines} lines; a file in src/ has at most {MAX_LINES}")
        if path.suffix not in SOURCE_SUFFIXES:
            return
        if path.parts[0] == "src":
            self.check_floats(path, text)
        if path.parts[0] == "src" and layer_of(path) is None:
            self.fault(path, 1, f"not in a layer; the layers are {' '.join(LAYERS)}")
        elif path.suffix in (".c", ".h") and path.parts[0] == "src":
            self.texts[path] = text
        self.includes[path] = []
        for line, written in includes_of(text):
            target = self.resolve(path, line, written)
            if target is not None:
                self.includes[path].append((line, target))
                self.check_direction(path, line, target)

    def check_floats(self, path, text):
        if "/".join(path.with_suffix("").parts[1:]) in MAY_FLOAT:
            return
        for line, code in enumerate(re.sub(r'"(?:\\.|[^"\\\n])*"', '""', without_comments(text)).splitlines(), 1):
            if FLOAT.search(code):
                self.fault(path, line, "floating-point numbers are for the files of MAY_FLOAT alone")

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

    def find_circles(self, known):
        """Reports each group of files in a layer that call each other in a circle, unless it is known,
        by one of its circles; and what is known and is no group."""
        graph = read_calls(self.texts)
        known = set(known)
        for group in find_groups(graph):
            files = " ".join(sorted(self.file_of(unit) for unit in group))
            if files in known:
                known.remove(files)
                continue
            self.report_circle("call", graph, group, self.file_of)
        for files in sorted(known):
            self.fault(
                files.split()[0], 1, f"not a group of circles any more, but in KNOWN_GROUPS: {files}"
            )

    def find_upward(self, floors):
        """Reports what a file includes or calls of a higher floor of its layer, files without a floor, and
        names without a file."""
        floor_of = {
            PurePosixPath("src", layer, name): number
            for layer, names in floors.items()
            for number, floor in enumerate(names)
            for name in floor.split()
        }
        units = {path.with_suffix("") for path in self.texts}
        for unit in sorted(units | set(floor_of)):
            if unit not in units:
                self.fault(unit, 1, "no such file, but it is in FLOORS")
            elif unit.parts[1] in floors and unit not in floor_of:
                self.fault(self.file_of(unit), 1, f"{unit.parts[1]} has floors, but this file is on none")
        uses = [
            (path.with_suffix(""), target.with_suffix(""), path, line, f"include {target}")
            for path, targets in self.includes.items()
            for line, target in targets
        ]
        for unit, called in read_calls(self.texts).items():
            for other, (path, line, name) in called.items():
                uses.append((unit, other, path, line, f"call {name} of {self.file_of(other)}"))
        for unit, other, path, line, how in uses:
            if unit.parent == other.parent and floor_of.get(unit, 0) < floor_of.get(other, 0):
                self.fault(path, line, f"may not {how}, which is on a higher floor")

    def find_circles_of_tool(self):
        graph = read_uses(self.modules, PurePosixPath("tool/src"))
        for group in find_groups(graph):
            self.report_circle("module", graph, group, str)

    def report_circle(self, kind, graph, group, name_of):
        """At the place of its first call. Where the group has more files than that circle, all are named."""
        circle = shortest_circle(graph, group)
        path, line, *_ = graph[circle[0]][circle[1]]
        text = name_of(circle[0])
        for user, used in zip(circle, circle[1:]):
            function = graph[user][used][2:]
            text += f" -> {name_of(used)}" + (f" ({function[0]})" if function else "")
        if len(group) > len(circle) - 1:
            text += "; all that are in circles with these: " + " ".join(sorted(map(name_of, group)))
        self.fault(path, line, f"{kind} circle: {text}")

    def file_of(self, unit):
        """The file that a file and its header are called by."""
        source = unit.with_suffix(".c")
        return str(source if source in self.texts else unit.with_suffix(".h"))


def check(root, known, floors):
    """All that is wrong with a tree, as lines, and the number of its files."""
    tree = Tree(root)
    tree.find_cycles()
    tree.find_circles(known)
    tree.find_upward(floors)
    tree.find_circles_of_tool()
    if not any(path.parts[0] == "src" for path in tree.includes):
        tree.fault("src", 1, "no source files found")
    return tree.faults, len(tree.includes)


def main(arguments):
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__.strip())
        return 0 if arguments[0] in ("-h", "--help") else 2
    repository = Path(__file__).resolve().parent.parent
    root = Path(arguments[0] if arguments else repository).resolve()
    own = root == repository
    faults, files = check(root, KNOWN_GROUPS if own else (), FLOORS if own else {})
    for fault in faults:
        print(fault)
    if not faults:
        print(f"layers: {files} files, all in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
