#!/usr/bin/env python3
"""Writes docs/constants.md: every number that decides a policy of the library, with its unit and its reason.

Usage: constants.py [--check] [ROOT]     ROOT holds src/ and docs/; default: this repository

In the folders of LAYERS, every `#define` that is arithmetic with a number in it, and every constant of an `enum` that
is, is a constant of policy, unless its comment says that it is layout. The comment above it, or behind it in its line, reads

    /* Bytes: less than this is cleared by hand in less time than the system needs. */
    #define SYSTEM_ZERO_LEAST (32 * KIB)

that is, a unit of UNITS, a colon, and a first sentence that says why. Behind the unit stands in brackets, of what is no policy,
what kind of number it is: `Bytes (machine):` was measured, of the processor, the kernel or libc, so that another number would be
wrong there, not another choice; `Blocks (table):` is the length of a table or record that something has to have. Each kind has a
table and a count of its own. `Layout:` in place of a unit stands before what follows from a structure or from
the processor, where another number would not be another policy. A comment
holds for what stands below it without an empty line: the `#define`s of a group, the constants of an enum, where a
comment behind one of them gives a reason of its own.

A constant without a unit, or without a reason of at most REASON_MOST characters, or with the name of another one, is
refused: one line each, `file:line: what is wrong`, and exit status 1. --check writes nothing, and refuses a docs/constants.md that is not
what would be written.
"""

import re
import sys
from pathlib import Path

# Those whose constants have a unit and a reason.
LAYERS = "base provider meta profile pageheap retention cell slab magazine hardened heap".split()
UNITS = (
    "bytes; bytes a second; pages; units of 16 bytes; objects; slots; blocks; cells; lists; runs; slabs; magazines; segments; "
    "arenas; threads; calls; requests; frees; looks; purges; occasions; times; nanoseconds; one part in; parts of 64; "
    "log2; class; frames"
).split("; ")
LAYOUT = "layout"
# What a number is, the title of its table, and what stands below that.
KINDS = {
    "policy": ("Policy", "What the library decides by: thresholds, shares, delays, counts, which might be others."),
    "machine": ("Facts of the machine", "What something costs, or at which size it costs as much as something else."),
    "table": ("Lengths of tables", "How many of something a table, a record or an area of fixed size has room for."),
}
REASON_MOST = 150

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
UNIT = re.compile(r"([A-Za-z][\w ]*?)(?: \((\w+)\))?:\s+(.*)", re.DOTALL)
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+([A-Z]\w*)[ \t]+(\S.*)")
ENUM = re.compile(r"\benum\s*\w*\s*\{(.*?)\}", re.DOTALL)
MEMBER = re.compile(r"\s*([A-Z]\w*)\s*(?:=(.*))?", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d|\b[KMG]IB\b")
ARITHMETIC = re.compile(r"(?:(?!__)[\w\s()+*/<>&|~-])*")
CAST = re.compile(r"\((?:int|unsigned|size_t|uintptr_t|uint\d+_t)\)")


class Constant:
    """A name, its expression, where it stands, and the comments that hold for it, the nearest first."""

    def __init__(self, path, line, name, expression, comments):
        self.path, self.line, self.name, self.expression = path, line, name, " ".join(expression.split())
        self.unit, self.kind, self.reason = None, "policy", ""
        for comment in comments:
            words = re.sub(r"\n\s*\*", " ", comment[2:-2]).strip(" *\n")
            match = UNIT.match(words)
            if match and match.group(1).lower() in (LAYOUT, *UNITS):
                self.unit, self.kind, words = match.group(1).lower(), match.group(2) or "policy", match.group(3)
            self.reason = self.reason or first_sentence(words)
            if self.unit:
                break

    def wrong(self):
        if self.unit is None:
            return f"{self.name} is a number without a unit; its comment begins with one (see scripts/constants.py)"
        if self.kind not in KINDS:
            return f"{self.name} is a number of kind '{self.kind}'; there are {', '.join(KINDS)}"
        if self.unit != LAYOUT and not 8 <= len(self.reason) <= REASON_MOST:
            return f"{self.name} needs a reason, one sentence of at most {REASON_MOST} characters; not '{self.reason}'"
        return None


def first_sentence(words):
    words = " ".join(words.split())
    return re.split(r"(?<=[.])\s", words, maxsplit=1)[0].rstrip(".;")


def comment_above(text, offset):
    """The comment that ends in the line above `offset`, which begins a line; None without one."""
    above = text[:offset].rstrip(" \t")
    if not above.endswith("*/\n"):
        return None
    start = above.rindex("/*")
    return above[start:].rstrip() if above[: start].rpartition("\n")[2].strip() == "" else None


def comment_behind(text, offset):
    """The comment in the rest of the line from `offset`, which may go on below; None without one."""
    match = re.compile(r"[ \t]*,?[ \t]*(/\*.*?\*/)", re.DOTALL).match(text, offset)
    return match.group(1) if match else None


def defines_of(path, text):
    group = None  # the comment above the group of #defines
    after = -1  # where the line after the last one begins
    for match in re.compile(DEFINE.pattern, re.MULTILINE).finditer(text):
        if match.start() != after or comment_above(text, match.start()):
            group = comment_above(text, match.start())
        behind = COMMENT.search(match.group(2))
        value = COMMENT.sub("", match.group(2)).strip()
        after = text.find("\n", match.end()) + 1
        if NUMBER.search(value) and ARITHMETIC.fullmatch(value):
            line = text.count("\n", 0, match.start()) + 1
            comments = [behind.group(0) if behind else None, group]
            yield Constant(path, line, match.group(1), value, [each for each in comments if each])


def enums_of(path, text):
    code = COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment.group(0)), text)
    for match in ENUM.finditer(code):
        line_start = text.rfind("\n", 0, match.start()) + 1
        group = [comment_above(text, line_start), comment_behind(text, text.find(";", match.end()) + 1)]
        start = match.start(1)
        for member in match.group(1).split(","):
            parts = MEMBER.fullmatch(member.rstrip())
            end = start + len(member)
            if parts and parts.group(2) and NUMBER.search(parts.group(2)):
                at = start + parts.start(1)
                own_line = text.rfind("\n", 0, at) + 1
                above = comment_above(text, own_line) if text[own_line:at].strip() == "" else None
                if own_line > match.start() and above:
                    group = [above, *group]
                inside = COMMENT.search(text, at, end)
                comments = [inside.group(0) if inside else comment_behind(text, end), *group]
                line = text.count("\n", 0, at) + 1
                yield Constant(path, line, parts.group(1), parts.group(2), [each for each in comments if each])
            start = end + 1


def read_constants(root, folder):
    for path in sorted(Path(root, "src", folder).glob("**/*.[ch]")):
        text = path.read_text(encoding="utf-8")
        found = [*defines_of(path.relative_to(root), text), *enums_of(path.relative_to(root), text)]
        yield from sorted(found, key=lambda constant: constant.line)


def all_values(root):
    """The value of every constant of the library that is arithmetic on others."""
    expressions = {}
    folders = sorted(each.name for each in Path(root, "src").iterdir() if each.is_dir())
    for folder in sorted(folders, key=lambda name: name not in LAYERS):  # elsewhere a name may be another's
        for constant in read_constants(root, folder):
            expressions.setdefault(constant.name, constant.expression)
    values = {}

    def value_of(name, above=()):
        if name not in values and name in expressions and name not in above:
            text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", CAST.sub("", expressions[name])).replace("/", "//")
            names = set(re.findall(r"[A-Za-z_]\w*", text))
            known = {each: value_of(each, (*above, name)) for each in names}
            if ARITHMETIC.fullmatch(text) and None not in known.values():
                values[name] = eval(text, {"__builtins__": {}}, known)  # numbers and operators alone
        return values.get(name)

    return {name: value_of(name) for name in expressions}


def name_faults(constants):
    """Two numbers of one name, of which the table would show one."""
    first = {}
    for each in constants:
        other = first.setdefault(each.name, each)
        if other is not each:
            yield f"{each.path}:{each.line}: {each.name} is a number of {other.path}, too"


def written(value, unit, expression):
    if value is None:
        return f"`{expression}`"
    if unit.startswith("bytes") and value:
        for shift, suffix in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
            if value % (1 << shift) == 0:
                return f"{value >> shift:,} {suffix}"
    return f"{value:,}"


HEAD = """<!-- Written by scripts/constants.py from the sources; do not edit. -->
# Constants

Every number by which the library decides, and beside them what it knows of the machine, and how long its tables are.
Sizes of structures and what else follows from the layout of memory are not among them. What a user may set stands in
[options.md](options.md). The first sentence of the comment at each constant is its reason here; more may stand there.

{counts}
"""


def table_of(constants, values):
    lines = ["| constant | value | unit | why | file |", "| --- | --- | --- | --- | --- |"]
    for each in constants:
        value = written(values.get(each.name), each.unit, each.expression)
        reason = each.reason.replace("|", "\\|")
        lines.append(f"| `{each.name}` | {value} | {each.unit} | {reason} | {'/'.join(each.path.parts[1:])} |")
    return [*lines, ""]


def document(root, constants):
    values = all_values(root)
    of_kind = {kind: [each for each in constants if each.kind == kind] for kind in KINDS}
    counts = ", ".join(f"{title.lower()}: {len(of_kind[kind])}" for kind, (title, _) in KINDS.items())
    lines = [HEAD.format(counts=counts[0].upper() + counts[1:] + ".")]
    for kind, (title, text) in KINDS.items():
        lines += [f"## {title}", "", text, ""]
        for layer in LAYERS if kind == "policy" else ():
            rows = [each for each in of_kind[kind] if each.path.parts[1] == layer]
            lines += [f"### {layer}", "", *table_of(rows, values)] if rows else []
        lines += [] if kind == "policy" else table_of(of_kind[kind], values)
    return "\n".join(lines)


def main(arguments):
    check = "--check" in arguments
    places = [each for each in arguments if each != "--check"]
    root = Path(places[0]) if places else Path(__file__).resolve().parents[1]
    constants = [each for layer in LAYERS for each in read_constants(root, layer)]
    faults = [f"{each.path}:{each.line}: {each.wrong()}" for each in constants if each.wrong()]
    faults += name_faults(constants)
    table = root / "docs/constants.md"
    text = document(root, [each for each in constants if each.unit not in (None, LAYOUT)])
    if not check and not faults:
        table.write_text(text, encoding="utf-8")
    elif check and (not table.exists() or table.read_text(encoding="utf-8") != text):
        faults.append("docs/constants.md: not what the sources say; run python3 scripts/constants.py")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
