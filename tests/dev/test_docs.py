#!/usr/bin/env python3
"""What the pages name is there: files and headings that they link to, options, functions, and each other.

    test_docs.py [ROOT]

Addresses elsewhere are not fetched. The planted faults are a copy of the pages with one of each.
"""

import pathlib
import re
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def pages(root):
    return sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")])


def without_code(text):
    return re.sub(r"^(```|    ).*$|`[^`\n]*`", "", text, flags=re.MULTILINE)


def anchors(text):
    """The names of headings, as the common viewers make them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(root):
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        for match in LINK.finditer(without_code(text)):
            target = match.group(1) or match.group(2)
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists():
                yield f"{page.relative_to(root)}: {target} does not exist"
            elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
                yield f"{page.relative_to(root)}: {target} has no such heading"


def unknown_names(root):
    table = (root / "src/options/options.def").read_text(encoding="utf-8")
    options = set(re.findall(r"^OPTION_\w+\((\w+),", table, re.MULTILINE))
    functions = set(re.findall(r"\bsnug_\w+", (root / "include/snug/snug.h").read_text(encoding="utf-8")))
    for name in ("tuning", "coming-from", "faq"):
        page = root / "docs" / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        for option in re.findall(r"`SNUG_(\w+)", text):
            if option not in options:
                yield f"{page.name}: there is no option SNUG_{option}"
        for function in re.findall(r"\bsnug_\w+", text):
            if function not in functions:
                yield f"{page.name}: there is no {function}"


def unreachable(root):
    """Pages that no way leads to from the README."""
    found, waiting = set(), [root / "README.md", root / "CONTRIBUTING.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in found or page.suffix != ".md" or not page.exists():
            continue
        found.add(page)
        for match in LINK.finditer(without_code(page.read_text(encoding="utf-8"))):
            target = (match.group(1) or match.group(2)).partition("#")[0]
            if target.endswith("/"):
                waiting += (page.parent / target).glob("*.md")
            elif target and ":" not in target:
                waiting.append(page.parent / target)
    return [f"no way leads to {page.relative_to(root)}" for page in pages(root) if page.resolve() not in found]


def misdrawn(root):
    """Functions of the drawings in architecture.md that are not in the file beside them."""
    text = (root / "docs/architecture.md").read_text(encoding="utf-8")
    for name, file in re.findall(r"^[ │├└]+ (\w+) +(\w+/\w+\.[ch])  ", text, re.MULTILINE):
        path = root / "src" / file
        code = path.read_text(encoding="utf-8") if path.exists() else ""
        if not re.search(rf"^\w[^;\n=]*\b{name}\(", code, re.MULTILINE):
            yield f"architecture.md: there is no {name} in {file}"


def complaints(root):
    return [*broken_links(root), *unknown_names(root), *unreachable(root), *misdrawn(root)]


class Docs(unittest.TestCase):
    def test_what_is_named_is_there(self):
        self.assertEqual(complaints(ROOT), [])

    def test_planted_faults_are_found(self):
        faults = {
            "docs/faq.md": ("[x](nowhere.md) [x](heaps.md#no-such-heading)", ["nowhere.md does", "no such heading"]),
            "docs/tuning.md": ("`SNUG_NONSENSE=1` snug_nonsense", ["option SNUG_NONSENSE", "no snug_nonsense"]),
            "docs/architecture.md": ("\n  nobody   heap/alloc.c    ?\n", ["no nobody in heap/alloc.c"]),
            "docs/lonely.md": ("# Lonely", ["no way leads to docs/lonely.md"]),
        }
        with tempfile.TemporaryDirectory() as place:
            copy = pathlib.Path(place).resolve()
            code = ["src/options/options.def", "include/snug/snug.h", "src/heap/alloc.c"]
            for name in [*(page.relative_to(ROOT) for page in pages(ROOT)), *code]:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
            for name, (text, _) in faults.items():
                with open(copy / name, "a", encoding="utf-8") as page:
                    page.write(text)
            said = "\n".join(complaints(copy))
            for _, expected in faults.values():
                for words in expected:
                    self.assertIn(words, said)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
